// Submits one-task jobs back to back, as one client, and waits for the last end.
//
//   job_rate DIR COUNT [PROGRAM]
//
// On stdout: "rate <jobs> <seconds until the last answer> <seconds until the last end>".
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "msa/adapters/process/child_process.h"

#include "client/system_client.h"

namespace msa::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Answers that are outstanding at once: `msactl submit --from` keeps at most 1,024, fewer hide the latency of
// a commit as well.
constexpr int kInFlight = 8;
// Between two looks at the number of jobs that are left: one call costs the controller some 50 us.
constexpr useconds_t kLookMicros = 20'000;

JobSpec OneTask(const std::string& program) {
  JobSpec spec;
  spec.components.resize(1);
  spec.components[0].argv = {program};
  spec.components[0].resources.ntasks = 1;
  spec.env = CurrentEnvironment();
  spec.cwd = "/tmp";
  spec.stdio.out = "none";
  return spec;
}

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

int Fail(const Status& status) {
  fmt::print(stderr, "job_rate: {}\n", status.message());
  ::_exit(1);
}

int Measure(const std::string& dir, int count, const std::string& program) {
  const auto endpoint = FindEndpoint(dir);
  if (!endpoint.ok()) return Fail(endpoint.status());
  const auto watcher = SystemClient::Connect(*endpoint);
  if (!watcher.ok()) return Fail(watcher.status());
  // All others of the system have ended before.
  const auto left = [&] {
    const auto status = (*watcher)->GetStatus();
    if (!status.ok()) Fail(status.status());
    return status->jobs_pending + status->jobs_running;
  };
  const JobSpec spec = OneTask(program);
  std::atomic<int> next = 0;
  const auto begin = Clock::now();
  std::vector<std::thread> clients;
  for (int i = 0; i < kInFlight; ++i)
    clients.emplace_back([&] {
      const auto client = SystemClient::Connect(*endpoint);
      if (!client.ok()) Fail(client.status());
      for (int number = next++; number < count; number = next++) {
        const auto id = (*client)->Submit(spec, fmt::format("rate-{}-{}", ::getpid(), number));
        if (!id.ok()) Fail(id.status());
      }
    });
  for (std::thread& client : clients) client.join();
  const auto submitted = Clock::now();
  while (left() > 0) ::usleep(kLookMicros);
  fmt::print("rate {} {:.3f} {:.3f}\n", count, Seconds(submitted - begin), Seconds(Clock::now() - begin));
  std::fflush(stdout);
  // gRPC's threads need no farewell.
  ::_exit(0);
}

}  // namespace
}  // namespace msa::cli

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: job_rate DIR COUNT [PROGRAM]\n", stderr);
    return 2;
  }
  return msa::cli::Measure(argv[1], ::atoi(argv[2]), argc > 3 ? argv[3] : "true");
}
