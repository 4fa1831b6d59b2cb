// The table of test/cases.txt, which job_submit.lua is held to as well.
#include <fstream>

#include <gtest/gtest.h>

#include "rules.h"

namespace msa::job_submit {
namespace {

std::string Unescaped(std::string text) {
  for (std::size_t at = 0; (at = text.find("\\n", at)) != std::string::npos; ++at) text.replace(at, 2, "\n");
  return text;
}

Submission ReadSubmission(const std::string& line) {
  Submission out;
  std::string rest = line.substr(1) + " | ";
  for (std::size_t end = 0; (end = rest.find(" | ")) != std::string::npos; rest.erase(0, end + 3)) {
    const std::string part = rest.substr(rest.find_first_not_of(' '), end - rest.find_first_not_of(' '));
    const std::size_t at = part.find('=');
    const std::string key = part.substr(0, at);
    const std::string value = Unescaped(part.substr(at + 1));
    if (key == "module")
      out.module = value;
    else if (key == "nam")
      out.nam = value;
    else if (key == "gateways")
      out.gateways = value;
    else if (key == "component")
      out.component = static_cast<std::uint32_t>(std::stoul(value));
    else if (key == "nodes")
      out.nodes = static_cast<std::uint32_t>(std::stoul(value));
    else if (key == "partition")
      out.partition = value;
    else if (key == "features")
      out.features = value;
    else if (key == "licenses")
      out.licenses = value;
    else if (key == "array")
      out.array = true;
    else if (key == "script")
      out.script = value;
    else
      ADD_FAILURE() << "unknown field: " << key;
  }
  return out;
}

std::string Answer(const Submission& submission, const Site* site) {
  if (!submission.concerns_us()) return "=";
  const auto decision = Judge(submission, site);
  if (!decision) return fmt::format("! {} {}", decision.error().code, decision.error().text);
  std::string out;
  const auto add = [&](const char* name, const std::optional<std::string>& value) {
    if (value) out += fmt::format("{}{}={}", out.empty() ? "" : " | ", name, *value);
  };
  add("partition", decision->partition);
  add("features", decision->features);
  add("licenses", decision->licenses);
  return out.empty() ? "=" : "= " + out;
}

TEST(JobSubmit, AnswersTheTable) {
  std::ifstream table(MSA_CASES);
  ASSERT_TRUE(table) << MSA_CASES;
  std::optional<std::string> site_text;
  std::string line;
  std::string asked;
  int number = 0;
  int cases = 0;
  while (std::getline(table, line)) {
    ++number;
    if (line == "@none")
      site_text.reset();
    else if (line == "@clear")
      site_text = "";
    else if (line.starts_with("@ "))
      *site_text += line.substr(2) + "\n";
    else if (line.starts_with('?'))
      asked = line;
    if (!line.starts_with('=') && !line.starts_with('!')) continue;
    Site site;
    if (site_text) {
      auto parsed = ParseSite(*site_text, "site");
      ASSERT_TRUE(parsed.ok()) << parsed.status().message();
      site = *std::move(parsed);
    }
    EXPECT_EQ(Answer(ReadSubmission(asked), site_text ? &site : nullptr), line)
        << "line " << number << ": " << asked;
    ++cases;
  }
  EXPECT_GT(cases, 60);
}

TEST(SiteFile, FaultsNameTheLineAndTheValue) {
  const std::pair<const char*, const char*> faults[] = {
      {"node cn0", "site:1: 'node' is not known; expected module, nam or gateways"},
      {"\nmodule", "site:2: a module has no name"},
      {"module a", "site:1: module 'a' lacks nodes=N"},
      {"module a nodes=x", "site:1: nodes=x is not a number"},
      {"module a nodes=1 nodes", "site:1: 'nodes' is not KEY=VALUE"},
      {"module a nodes=1 colour=red",
       "site:1: 'colour=red' is not known; a module has id, kind, nodes, and partition or feature"},
      {"module a nodes=1 partition=p,q", "site:1: 'partition=p,q' is no name"},
      {"module a nodes=1 partition=p feature=f",
       "site:1: module 'a' has a partition and a feature; leave one out"},
      {"module a nodes=1\nmodule a nodes=1", "site:2: module 'a' is there twice"},
      {"nam", "site:1: nam lacks bytes=SIZE"},
      {"nam bytes=1G granule=0", "site:1: granule=0 is nothing"},
      {"nam bytes=1G licence=a:b", "site:1: licence=a:b is no name of a licence"},
      {"gateways licence=none", "site:1: gateways lacks nodes=N"},
  };
  for (const auto& [text, message] : faults) {
    const auto site = ParseSite(text, "site");
    ASSERT_FALSE(site.ok()) << text;
    EXPECT_EQ(site.status().message(), message);
  }
  EXPECT_FALSE(ParseSite(std::string(kMaxSiteBytes + 1, '#'), "site").ok());
}

}  // namespace
}  // namespace msa::job_submit
