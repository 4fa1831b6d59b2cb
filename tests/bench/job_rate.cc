// Submits one-task jobs back to back by `msactl submit --from`, and waits for the last end.
//
//   job_rate DIR COUNT MSACTL [PROGRAM]
//
// On stdout: "rate <jobs> <seconds until the last answer> <seconds until the last end>".
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "client/system_client.h"

namespace msa::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at the number of jobs that are left: one call costs the controller some 50 us.
constexpr useconds_t kLookMicros = 20'000;

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

int Fail(const std::string& why) {
  fmt::print(stderr, "job_rate: {}\n", why);
  ::_exit(1);
}

int Measure(const std::string& dir, int count, const std::string& msactl, const std::string& program) {
  const auto endpoint = FindEndpoint(dir);
  if (!endpoint.ok()) return Fail(endpoint.status().message());
  const auto watcher = SystemClient::Connect(*endpoint);
  if (!watcher.ok()) return Fail(watcher.status().message());
  // All others of the system have ended before.
  const auto left = [&] {
    const auto status = (*watcher)->GetStatus();
    if (!status.ok()) Fail(status.status().message());
    return status->jobs_pending + status->jobs_running;
  };
  const auto begin = Clock::now();
  std::FILE* const lines =
      ::popen(fmt::format("cd /tmp && exec '{}' submit --dir '{}' --from - >&2", msactl, dir).c_str(), "w");
  if (lines == nullptr) return Fail("cannot start " + msactl);
  for (int i = 0; i < count; ++i) fmt::print(lines, "-n 1 -o none {}\n", program);
  if (::pclose(lines) != 0) return Fail(msactl + " submit failed");
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
  if (argc < 4) {
    std::fputs("usage: job_rate DIR COUNT MSACTL [PROGRAM]\n", stderr);
    return 2;
  }
  return msa::cli::Measure(argv[1], ::atoi(argv[2]), argv[3], argc > 4 ? argv[4] : "true");
}
