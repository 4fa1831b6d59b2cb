#include "commands/invocation.h"
#include "commands/print.h"
#include "options/values.h"
#include "output/text.h"

namespace msa::cli {
namespace {

std::string Released(const GrantInfo& grant) {
  if (grant.state == GrantState::kReleased)
    return fmt::format("grant {} of job {} is released\n", grant.id, grant.job);
  return fmt::format("grant {} of job {} is being released: {} on it {} ended\n", grant.id, grant.job,
                     Count(grant.namespaces.size(), "namespace"),
                     grant.namespaces.size() == 1 ? "is" : "are");
}

}  // namespace

Result<int> AllocRelease(const Args& args) {
  Invocation call(
      {"msactl alloc release", "[OPTIONS] GRANT...",
       "Give nodes back that a job of yours has borrowed. One in use is refused unless --force is "
       "given."});
  bool force = false;
  call.options().Flag(0, "force",
                      "end what runs on it: SIGTERM, SIGKILL 2 s later; as when a child fails, whoever is "
                      "still connected to it is ended too, unless the job runs with --on-child-failure=event",
                      &force);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1000, .what = "ids of grants"}));
  if (!go) return 0;
  std::vector<std::uint64_t> ids;
  for (const std::string& word : call.operands()) {
    MSA_ASSIGN_OR_RETURN(const std::uint64_t id, ParseGrantId(word));
    ids.push_back(id);
  }
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  std::size_t failed = 0;
  Status first;
  for (const std::uint64_t id : ids) {
    const auto grant =
        client->ReleaseGrant(id, force ? SystemClient::InUse::kEndNamespaces : SystemClient::InUse::kRefuse);
    if (grant.ok()) {
      MSA_RETURN_IF_ERROR(Print(Released(*grant)));
      continue;
    }
    if (failed++ == 0) first = grant.status();
    if (ids.size() > 1) PrintError(grant.status());
  }
  if (failed == 0) return 0;
  if (ids.size() == 1) return first;
  return failed == ids.size() ? ExitCodeOf(first.code()) : kPartialExitCode;
}

}  // namespace msa::cli
