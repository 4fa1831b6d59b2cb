#include "options/run_environment.h"

#include <algorithm>
#include <array>
#include <map>

namespace msa::cli {
namespace {

// HOME and the like: without PATH not even `env` would be found.
constexpr std::array<std::string_view, 5> kLogin = {"HOME", "LOGNAME", "PATH", "SHELL", "USER"};

// Variables of a launcher around us would make the programs believe that they belong to it.
constexpr std::array<std::string_view, 6> kForeignPrefixes = {
    "PMIX_", "PMI_", "OMPI_COMM_WORLD_", "OMPI_MCA_orte_", "OMPI_MCA_ess", "PRTE_"};
constexpr std::array<std::string_view, 15> kForeign = {
    "MSA_JOB_ID",    "MSA_STEP_ID",     "MSA_NODE",  "MSA_MODULE",        "MSA_MODULE_ID",
    "MSA_COMPONENT", "MSA_MODULE_KIND", "MSA_RANK",  "MSA_LOCAL_RANK",    "MSA_WORLD_SIZE",
    "MSA_NODELIST",  "MSA_JOB_SOCKET",  "MSA_FAULT", "PSP_MSA_MODULE_ID", "MSA_JOBD_COOKIE"};

std::string_view NameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

bool IsForeign(std::string_view name) {
  return std::find(kForeign.begin(), kForeign.end(), name) != kForeign.end() ||
         std::any_of(kForeignPrefixes.begin(), kForeignPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool IsName(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         name.find_first_of("= \t\n\0") == std::string_view::npos;
}

}  // namespace

Result<std::vector<std::string>> ExportEnvironment(std::string_view expression,
                                                   const std::vector<std::string>& env) {
  std::map<std::string_view, std::string_view> have;
  for (const std::string& entry : env)
    if (!IsForeign(NameOf(entry)) && entry.find('=') != std::string::npos) have.emplace(NameOf(entry), entry);
  bool all = false;
  std::map<std::string, std::string> out;
  for (std::string_view rest = expression;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const bool assigns = item.find('=') != std::string_view::npos;
    if (item == "ALL") {
      all = true;
    } else if (item != "NONE") {
      if (!IsName(NameOf(item)))
        return Error(Code::kInvalidArgument,
                     "'{}' is not a variable; expected ALL, NONE, or names as in A,B=value", item);
      const auto found = have.find(item);
      if (assigns) {
        out[std::string(NameOf(item))] = item;
      } else if (found != have.end()) {
        out[std::string(item)] = found->second;
      }
    }
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  for (const auto& [name, entry] : have)
    if (all || std::find(kLogin.begin(), kLogin.end(), name) != kLogin.end())
      out.emplace(std::string(name), std::string(entry));
  std::vector<std::string> list;
  list.reserve(out.size());
  for (auto& [name, entry] : out) list.push_back(std::move(entry));
  return list;
}

}  // namespace msa::cli
