#include "commands/invocation.h"
#include "options/values.h"
#include "output/grant_texts.h"

namespace msa::cli {

Result<int> AllocShow(const Args& args) {
  Invocation call({"msactl alloc show", "[OPTIONS] GRANT",
                   "Show all of one grant: who has which cores of which nodes, since when, and for what."});
  call.WithFormat(Shows::kOne);
  MSA_ASSIGN_OR_RETURN(const bool go, call.Parse(args, {.min = 1, .max = 1, .what = "a grant's id"}));
  if (!go) return 0;
  MSA_ASSIGN_OR_RETURN(const std::uint64_t id, ParseGrantId(call.operands()[0]));
  MSA_ASSIGN_OR_RETURN(const auto client, call.Connect());
  MSA_ASSIGN_OR_RETURN(const std::vector<GrantInfo> grants, client->ListGrants({.ids = {id}}));
  if (grants.empty()) return Error(Code::kNotFound, "grant {}: no such grant; see 'msactl alloc list'", id);
  MSA_RETURN_IF_ERROR(call.Show(GrantDetails(grants[0])));
  return 0;
}

}  // namespace msa::cli
