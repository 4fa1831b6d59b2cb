// How fast jobs are taken: submit_bench DIR MANY FEW submits MANY jobs over one stream (msactl submit --from)
// and FEW one call after the other, to the controller in DIR, with this process's environment. Prints both
// times in seconds and the highest round trip of a single call. No node need be up.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "msa/adapters/process/child_process.h"

#include "client/bulk_submitter.h"
#include "client/system_client.h"
#include "options/run_options.h"
#include "run/token.h"

namespace msa::cli {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<std::vector<Submission>> Jobs(std::size_t count) {
  MSA_ASSIGN_OR_RETURN(
      const RunRequest request,
      ParseRun({"-n", "1", "-o", "none", "true"}, {.cwd = "/", .env = CurrentEnvironment(), .queued = true}));
  std::vector<Submission> out;
  for (std::size_t i = 0; i < count; ++i) {
    MSA_ASSIGN_OR_RETURN(std::string token, MakeToken());
    out.push_back({request.spec, std::move(token)});
  }
  return out;
}

Status Run(const std::string& dir, std::size_t many, std::size_t few) {
  MSA_ASSIGN_OR_RETURN(const Endpoint endpoint, FindEndpoint(dir));
  MSA_ASSIGN_OR_RETURN(const std::vector<Submission> jobs, Jobs(many + few));
  const std::vector<Submission> streamed(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(many));
  std::size_t taken = 0;
  auto begin = std::chrono::steady_clock::now();
  MSA_RETURN_IF_ERROR(SubmitAll(endpoint, streamed,
                                [&](std::size_t, const Result<JobId>& job) { taken += job.ok() ? 1 : 0; }));
  const double stream = SecondsSince(begin);
  if (taken != many) return Error(Code::kInternal, "{} of {} jobs were taken", taken, many);
  MSA_ASSIGN_OR_RETURN(const auto client, SystemClient::Connect(endpoint));
  double highest = 0;
  begin = std::chrono::steady_clock::now();
  for (std::size_t i = many; i < jobs.size(); ++i) {
    const auto call = std::chrono::steady_clock::now();
    MSA_RETURN_IF_ERROR(client->Submit(jobs[i].spec, jobs[i].token).status());
    highest = std::max(highest, SecondsSince(call));
  }
  std::printf("%.6f %.6f %.6f\n", stream, SecondsSince(begin), highest);
  return Status::Ok();
}

}  // namespace
}  // namespace msa::cli

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: submit_bench DIR MANY FEW\n");
    return 2;
  }
  const msa::Status status =
      msa::cli::Run(argv[1], std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10));
  if (!status.ok()) std::fprintf(stderr, "submit_bench: %s\n", status.message().c_str());
  std::fflush(stdout);
  std::_Exit(status.ok() ? 0 : 1);  // threads of gRPC still run
}
