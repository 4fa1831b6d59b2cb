#include "commands/node_names.h"

#include "msa/topology/host_list.h"

namespace msa::cli {

Result<std::vector<std::string>> ExpandNodeNames(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    MSA_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandHostList(word));
    out.insert(out.end(), names.begin(), names.end());
  }
  return out;
}

}  // namespace msa::cli
