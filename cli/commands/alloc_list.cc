#include "commands/invocation.h"
#include "options/values.h"
#include "output/grant_texts.h"

namespace msa::cli {

Result<int> AllocList(const Args& args) {
  Invocation call(
      {"msactl alloc list", "[OPTIONS] [JOB]",
       "List grants: nodes that running jobs have borrowed for processes that they spawn, and what\n"
       "they wait for."});
  call.WithFormat(Shows::kList);
  GrantQuery query;
  call.options()
      .Flag('a', "all", "also those that were given back, of jobs that still run", &query.released)
      .Text('u', "user", "USER", "grants of one user's jobs, by name or uid", &query.user);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.max = 1}));
  if (!go) return 0;
  if (!call.operands().empty()) {
    MSA_ASSIGN_OR_RETURN(query.job, ParseJobId(call.operands()[0]));
  }
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<GrantInfo> grants, client->ListGrants(query));
  MSA_RETURN_IF_ERROR(call.Show(GrantListing(grants)));
  return 0;
}

}  // namespace msa::cli
