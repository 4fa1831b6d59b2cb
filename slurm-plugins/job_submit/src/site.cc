#include "site.h"

#include <algorithm>
#include <charconv>

#include "msa/topology/size_text.h"

namespace msa::job_submit {
namespace {

// A partition, feature or licence of Slurm that may stand in a list of them.
bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

struct Pair {
  std::string_view key;
  std::string_view value;
};

Result<Pair> SplitPair(std::string_view word) {
  const std::size_t at = word.find('=');
  if (at == std::string_view::npos || at == 0 || at + 1 == word.size())
    return Error(Code::kInvalidArgument, "'{}' is not KEY=VALUE", word);
  return Pair{word.substr(0, at), word.substr(at + 1)};
}

Result<std::uint32_t> Nodes(std::string_view value) {
  const auto count = ParseCount(value);
  if (!count) return Error(Code::kInvalidArgument, "nodes={} is not a number", value);
  return *count;
}

Status SetLicence(std::string_view value, std::string* licence) {
  if (!IsName(value)) return Error(Code::kInvalidArgument, "licence={} is no name of a licence", value);
  *licence = value == "none" ? std::string() : std::string(value);
  return Status::Ok();
}

Status ReadModule(const std::vector<std::string_view>& words, Site* site) {
  SiteModule module;
  if (words.size() < 2 || !IsName(words[1])) return Error(Code::kInvalidArgument, "a module has no name");
  module.name = words[1];
  bool counted = false;
  for (std::size_t i = 2; i < words.size(); ++i) {
    MSA_ASSIGN_OR_RETURN(const Pair pair, SplitPair(words[i]));
    if (pair.key == "nodes") {
      MSA_ASSIGN_OR_RETURN(module.nodes, Nodes(pair.value));
      counted = true;
      continue;
    }
    if (!IsName(pair.value)) return Error(Code::kInvalidArgument, "'{}' is no name", words[i]);
    if (pair.key == "id") {
      module.id = pair.value;
    } else if (pair.key == "kind") {
      module.kind = pair.value;
    } else if (pair.key == "partition") {
      module.partition = pair.value;
    } else if (pair.key == "feature") {
      module.feature = pair.value;
    } else {
      return Error(Code::kInvalidArgument,
                   "'{}' is not known; a module has id, kind, nodes, and partition or feature", words[i]);
    }
  }
  if (!counted) return Error(Code::kInvalidArgument, "module '{}' lacks nodes=N", module.name);
  if (!module.partition.empty() && !module.feature.empty())
    return Error(Code::kInvalidArgument, "module '{}' has a partition and a feature; leave one out",
                 module.name);
  if (module.partition.empty() && module.feature.empty()) module.partition = module.name;
  const auto same = [&](const SiteModule& other) { return other.name == module.name; };
  if (std::any_of(site->modules.begin(), site->modules.end(), same))
    return Error(Code::kInvalidArgument, "module '{}' is there twice", module.name);
  site->modules.push_back(std::move(module));
  return Status::Ok();
}

Status ReadNam(const std::vector<std::string_view>& words, Site* site) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    MSA_ASSIGN_OR_RETURN(const Pair pair, SplitPair(words[i]));
    if (pair.key == "bytes") {
      MSA_ASSIGN_OR_RETURN(site->nam, ParseMemory(pair.value));
    } else if (pair.key == "granule") {
      MSA_ASSIGN_OR_RETURN(site->granule, ParseMemory(pair.value));
      if (site->granule.value == 0) return Error(Code::kInvalidArgument, "granule={} is nothing", pair.value);
    } else if (pair.key == "licence") {
      MSA_RETURN_IF_ERROR(SetLicence(pair.value, &site->nam_licence));
    } else {
      return Error(Code::kInvalidArgument, "'{}' is not known; nam has bytes, granule, licence", words[i]);
    }
  }
  if (!site->nam) return Error(Code::kInvalidArgument, "nam lacks bytes=SIZE");
  return Status::Ok();
}

Status ReadGateways(const std::vector<std::string_view>& words, Site* site) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    MSA_ASSIGN_OR_RETURN(const Pair pair, SplitPair(words[i]));
    if (pair.key == "nodes") {
      MSA_ASSIGN_OR_RETURN(site->gateways, Nodes(pair.value));
    } else if (pair.key == "licence") {
      MSA_RETURN_IF_ERROR(SetLicence(pair.value, &site->gateway_licence));
    } else {
      return Error(Code::kInvalidArgument, "'{}' is not known; gateways has nodes, licence", words[i]);
    }
  }
  if (!site->gateways) return Error(Code::kInvalidArgument, "gateways lacks nodes=N");
  return Status::Ok();
}

Status ReadLine(std::string_view line, Site* site) {
  const std::vector<std::string_view> words = SplitBlanks(line.substr(0, line.find('#')));
  if (words.empty()) return Status::Ok();
  if (words[0] == "module") return ReadModule(words, site);
  if (words[0] == "nam") return ReadNam(words, site);
  if (words[0] == "gateways") return ReadGateways(words, site);
  return Error(Code::kInvalidArgument, "'{}' is not known; expected module, nam or gateways", words[0]);
}

}  // namespace

std::vector<std::string_view> SplitBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(kBlanks, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<std::uint32_t> ParseCount(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text.size() > 9 || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

Result<Site> ParseSite(std::string_view text, const std::string& file) {
  if (text.size() > kMaxSiteBytes)
    return Error(Code::kInvalidArgument, "{}: more than {} bytes", file, kMaxSiteBytes);
  Site site;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    if (Status read = ReadLine(line, &site); !read.ok())
      return read.WithContext(fmt::format("{}:{}", file, number));
  }
  return site;
}

}  // namespace msa::job_submit
