#include "msa/adapters/config/topology_file.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/config/nam_backing.h"
#include "msa/support/scratch_directory.h"

namespace msa {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kModule = "[[module]]\nname = \"booster\"\nid = 1\n";

// The message for a file "small.toml" that holds `text`; "" if it is accepted.
std::string Refusal(const std::string& text) {
  const auto parsed = ParseTopology(text, "small.toml");
  EXPECT_TRUE(parsed.ok() || parsed.status().code() == Code::kInvalidArgument) << parsed.status().ToString();
  return parsed.status().message();
}

// ... for one node with these lines in it; they begin in line 6.
std::string NodeRefusal(const std::string& lines) {
  return Refusal(std::string(kModule) + "[[module.node]]\nnames = \"bn0\"\n" + lines);
}

TEST(TopologyFile, InTheExamplesIsAccepted) {
  const auto system = LoadTopologyFile(MSA_SOURCE_DIR "/deploy/examples/topology.toml");
  ASSERT_TRUE(system.ok()) << system.status().message();
  EXPECT_EQ(system->modules.size(), 3U);
  EXPECT_EQ(system->nodes.size(), 7U);
}

TEST(TopologyFile, OfTheManualPageIsAcceptedAndTheDefaultSystemStandsThere) {
  std::ifstream in(MSA_SOURCE_DIR "/deploy/man/msa-topology.5.scd");
  std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(page, HasSubstr("```\n" + std::string(DefaultTopologyText()) + "```\n"));
  constexpr std::string_view kFence = "```\n";
  std::size_t examples = 0;
  for (std::size_t begin = page.find(kFence); begin != std::string::npos; ++examples) {
    begin += kFence.size();
    const std::size_t end = page.find(kFence, begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_EQ(Refusal(page.substr(begin, end - begin)), "");
    begin = page.find(kFence, end + kFence.size());
  }
  EXPECT_EQ(examples, 3U);
}

TEST(TopologyFile, LimitsNetworkAttachedMemory) {
  const std::string node = std::string(kModule) + "[[module.node]]\nnames = \"bn0\"\ncores = 1\n";
  const auto system = ParseTopology(
      "[nam]\nuser_quota = \"2G\"\njob_quota = \"512M\"\njob_default = 1048576\n" + node, "small.toml");
  ASSERT_TRUE(system.ok()) << system.status().message();
  EXPECT_EQ(system->nam_user_quota, Bytes(std::uint64_t{2} << 30));
  EXPECT_EQ(system->nam_job_quota, Bytes(512u << 20));
  EXPECT_EQ(system->nam_job_default, Bytes(1u << 20));
  const auto without = ParseTopology(node, "small.toml");
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without->nam_user_quota.value + without->nam_job_quota.value + without->nam_job_default.value,
            0u);
  EXPECT_THAT(
      Refusal("[nam]\n\nuser_quota = \"much\"\n" + node),
      StartsWith("topology file small.toml:3: key 'user_quota' of [nam] is \"much\"; expected bytes"));
  EXPECT_THAT(Refusal("[nam]\njob_quota = 0\n" + node), HasSubstr("small.toml:2: key 'job_quota'"));
  EXPECT_THAT(Refusal("[nam]\njob_quotas = 1\n" + node),
              HasSubstr("small.toml:2: unknown key 'job_quotas' in [nam]; did you mean 'job_quota'"));
  EXPECT_THAT(Refusal("[nam]\njob_quota = \"1M\"\njob_default = \"2M\"\n" + node),
              HasSubstr("small.toml:3: key 'job_default' of [nam] is 2097152 bytes, more than 'job_quota'"));
  EXPECT_THAT(Refusal("nam = 3\n" + node), HasSubstr("small.toml:1: 'nam' is 3; expected the table [nam]"));
}

TEST(TopologyFile, NamesTheDirectoryOfNetworkAttachedMemory) {
  const std::string node = std::string(kModule) + "[[module.node]]\nnames = \"bn0\"\ncores = 1\n";
  const auto backing = [&](const std::string& value) {
    return ParseNamBacking("[nam]\nbacking = " + value + "\n" + node, "small.toml");
  };
  EXPECT_EQ(*backing("\"/data/nam\""), "/data/nam");
  EXPECT_EQ(*backing("\"/data/with blank//\""), "/data/with blank");
  EXPECT_EQ(*ParseNamBacking(node, "small.toml"), "");
  EXPECT_THAT(
      backing("\"nam\"").status().message(),
      StartsWith("topology file small.toml:2: key 'backing' of [nam] is \"nam\"; expected an absolute"));
  EXPECT_THAT(backing("7").status().message(), HasSubstr("is 7; expected a text"));
  EXPECT_FALSE(backing("\"/a\\u0007b\"").ok());
  EXPECT_FALSE(backing("\"/" + std::string(1024, 'a') + "\"").ok());
}

TEST(TopologyFile, DescribesTheDefaultSystem) {
  const auto system = ParseTopology(DefaultTopologyText(), "default");
  ASSERT_TRUE(system.ok()) << system.status().message();
  EXPECT_EQ(system->system_name, "local");
  ASSERT_EQ(system->modules.size(), 4U);
  EXPECT_EQ(system->modules[1].name, "booster");
  EXPECT_EQ(system->modules[1].kind, "booster");
  EXPECT_EQ(system->modules[3].id, ModuleId(3));
  ASSERT_EQ(system->nodes.size(), 6U);
  EXPECT_EQ(system->nodes[1].name, "cn1");
  EXPECT_EQ(system->nodes[1].cores, 4U);
  EXPECT_EQ(system->nodes[2].cores, 8U);
  EXPECT_EQ(system->nodes[5].name, "nam0");
  EXPECT_EQ(system->nodes[5].cores, 1U);
  EXPECT_EQ(system->nodes[5].nam, Bytes(std::uint64_t{1} << 30));
  for (const NodeSpec& node : system->nodes) EXPECT_TRUE(node.synthetic) << node.name;
}

TEST(TopologyFile, ReadsEveryKeyOfANode) {
  const auto system = ParseTopology(
      "[system]\nname = \"deep\"\n[[module]]\nname = \"esb\"\nid = 7\nkind = "
      "\"booster\"\n[[module.node]]\nnames = \"e[01-02]\"\n"
      "cores = 64\nmemory = \"48G\"\ngpus = 4\npackages = 2\nnuma = 8\nnam = "
      "\"512MiB\"\n[[module.node]]\nnames = \"own\"\nreal = true\n",
      "deep.toml");
  ASSERT_TRUE(system.ok()) << system.status().message();
  ASSERT_EQ(system->nodes.size(), 3U);
  const NodeSpec& node = system->nodes[1];
  EXPECT_EQ(node.name, "e02");
  EXPECT_EQ(node.module, ModuleId(7));
  EXPECT_EQ(node.cores, 64U);
  EXPECT_EQ(node.memory, Bytes(std::uint64_t{48} << 30));
  EXPECT_EQ(node.gpus, 4U);
  EXPECT_EQ(node.packages, 2U);
  EXPECT_EQ(node.numa_nodes, 8U);
  EXPECT_EQ(node.nam, Bytes(std::uint64_t{512} << 20));
  EXPECT_FALSE(system->nodes[2].synthetic);
  EXPECT_EQ(system->nodes[2].cores, 0U);
}

TEST(TopologyFile, NamesLineKeyNodeValueAndRangeOfAWrongNumber) {
  EXPECT_EQ(NodeRefusal("cores = -4\n"),
            "topology file small.toml:6: key 'cores' of node 'bn0' is -4; expected 1 to 65536");
  EXPECT_EQ(NodeRefusal("cores = 65537\n"),
            "topology file small.toml:6: key 'cores' of node 'bn0' is 65537; expected 1 to 65536");
  EXPECT_EQ(NodeRefusal("cores = \"many\"\n"),
            "topology file small.toml:6: key 'cores' of node 'bn0' is \"many\"; expected 1 to 65536");
  EXPECT_EQ(NodeRefusal("cores = 2.5\n"),
            "topology file small.toml:6: key 'cores' of node 'bn0' is 2.5; expected 1 to 65536");
  EXPECT_EQ(NodeRefusal("cores = 1\ngpus = -1\n"),
            "topology file small.toml:7: key 'gpus' of node 'bn0' is -1; expected 0 to 65536");
  EXPECT_EQ(NodeRefusal(""),
            "topology file small.toml:4: node 'bn0' has no key 'cores'; add it (1 to 65536)");
}

TEST(TopologyFile, ChecksSizes) {
  EXPECT_EQ(NodeRefusal("cores = 1\nmemory = \"8 Gigs\"\n"),
            "topology file small.toml:7: key 'memory' of node 'bn0' is \"8 Gigs\"; expected bytes above 0, "
            "as \"8G\", \"512M\" or "
            "1048576");
  for (const char* bad : {"-1", "0", "\"\"", "\"G\"", "\"99999999999T\"", "1.5", "true", "[]"})
    EXPECT_THAT(NodeRefusal(std::string("cores = 1\nnam = ") + bad + "\n"),
                HasSubstr("expected bytes above 0"))
        << bad;
  for (const char* good : {"1048576", "\"8G\"", "\"8GiB\"", "\"1024\"", "\"4T\""})
    EXPECT_EQ(NodeRefusal(std::string("cores = 1\nmemory = ") + good + "\n"), "") << good;
}

TEST(TopologyFile, RefusesUnknownKeysWithTheNearestOne) {
  EXPECT_THAT(NodeRefusal("core = 4\n"), StartsWith("topology file small.toml:6: unknown key 'core' in node "
                                                    "'bn0'; did you mean 'cores'? known keys: names, cores"));
  EXPECT_THAT(
      Refusal("[sytem]\nname = \"x\"\n"),
      StartsWith("topology file small.toml:1: unknown key 'sytem' in the file; did you mean 'system'?"));
  EXPECT_THAT(Refusal("[[module]]\nname = \"a\"\nid = 0\ncolour = 1\n"),
              StartsWith("topology file small.toml:4: unknown key 'colour' in module 'a'"));
}

TEST(TopologyFile, RefusesNamesAndIdsThatAreUsedTwice) {
  const std::string node = "[[module.node]]\nnames = \"n0\"\ncores = 1\n";
  EXPECT_EQ(Refusal(std::string(kModule) + node + "[[module]]\nname = \"booster\"\nid = 2\n"),
            "topology file small.toml:8: module 'booster' is described twice, first in line 2; choose "
            "another name");
  EXPECT_EQ(Refusal(std::string(kModule) + node + "[[module]]\nname = \"other\"\nid = 1\n"),
            "topology file small.toml:9: key 'id' of module 'other' is 1, which module 'booster' has "
            "already; choose another");
  EXPECT_EQ(Refusal(std::string(kModule) + node + "[[module.node]]\nnames = \"n[0-1]\"\ncores = 1\n"),
            "topology file small.toml:8: node 'n0' is described twice, first in line 5; names are unique in "
            "the system");
}

TEST(TopologyFile, RefusesAFileWithoutModulesAndModulesWithoutNodes) {
  EXPECT_THAT(Refusal(""), HasSubstr("there is no [[module]]"));
  EXPECT_THAT(Refusal("module = 3\n"), HasSubstr("small.toml:1: there is no [[module]]"));
  EXPECT_EQ(
      Refusal(std::string(kModule)),
      "topology file small.toml:1: module 'booster' has no nodes; describe at least one in [[module.node]]");
  EXPECT_THAT(Refusal("[[module]]\nname = \"a\"\n"), HasSubstr("module 'a' has no key 'id'; add it"));
  EXPECT_THAT(Refusal("[[module]]\nid = 1\n"), HasSubstr("the module has no key 'name'"));
}

TEST(TopologyFile, RefusesNamesThatAreMalformedOrTooLong) {
  EXPECT_THAT(Refusal("[[module]]\nname = \"Booster\"\nid = 1\n"),
              HasSubstr("small.toml:2: module name 'Booster' is malformed"));
  const std::string too_long(64, 'n');
  EXPECT_THAT(Refusal("[[module]]\nname = \"" + too_long + "\"\nid = 1\n"),
              HasSubstr("with 64 characters; expected 1 to 63"));
  EXPECT_THAT(Refusal(std::string(kModule) + "[[module.node]]\nnames = \"" + too_long + "\"\ncores = 1\n"),
              HasSubstr("small.toml:5: node name '" + too_long + "' has 64 characters; expected at most 63"));
  EXPECT_THAT(Refusal(std::string(kModule) + "[[module.node]]\nnames = \"../x\"\ncores = 1\n"),
              HasSubstr("is malformed"));
  EXPECT_THAT(Refusal(std::string(kModule) + "[[module.node]]\nnames = \"n[3-1]\"\ncores = 1\n"),
              HasSubstr("small.toml:5: key 'names'"));
  EXPECT_THAT(Refusal(std::string(kModule) + "[[module.node]]\nnames = \"\"\ncores = 1\n"),
              HasSubstr("is empty"));
  EXPECT_THAT(Refusal(std::string(kModule) + "[[module.node]]\nnames = \"n[0-99999]\"\ncores = 1\n"),
              HasSubstr("small.toml:5"));
}

TEST(TopologyFile, RefusesADescriptionOfWhatIsMeasured) {
  EXPECT_EQ(NodeRefusal("real = true\ncores = 4\n"),
            "topology file small.toml:7: key 'cores' of node 'bn0' is given, but real = true takes it from "
            "the machine; remove one of "
            "them");
  EXPECT_THAT(NodeRefusal("real = \"yes\"\n"),
              HasSubstr("key 'real' of node 'bn0' is \"yes\"; expected true or false"));
}

TEST(TopologyFile, NamesLineAndColumnOfASyntaxError) {
  EXPECT_THAT(Refusal("[system]\nname = \"x\"\n[[module\n"),
              StartsWith("topology file small.toml:3: syntax error in column"));
  EXPECT_THAT(Refusal("name = \"\xff\xfe\"\n"),
              StartsWith("topology file small.toml:1: syntax error in column"));
  EXPECT_THAT(Refusal(std::string("a = \0", 5)), StartsWith("topology file small.toml:1: syntax error"));
  EXPECT_THAT(Refusal(std::string(100'000, '[')), StartsWith("topology file small.toml:1: syntax error"));
}

TEST(TopologyFile, RefusesAHeaderThatStartsWithNoKey) {
  EXPECT_THAT(Refusal("[[*odule]]\n"), StartsWith("topology file small.toml:1"));
  EXPECT_THAT(Refusal("[system]\nname = \"x\"\n[ ]\n"), StartsWith("topology file small.toml:3"));
  EXPECT_THAT(Refusal("[sa\xef\xb7\xb7[s]\n"), StartsWith("topology file small.toml:1"));
}

TEST(TopologyFile, RefusesHugeAndMissingFiles) {
  EXPECT_THAT(Refusal(std::string(kMaxTopologyFileBytes + 1, '#')),
              HasSubstr("has 4194305 bytes, the limit is 4194304"));
  const Status missing = LoadTopologyFile("/nowhere/small.toml").status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.message(),
            "topology file /nowhere/small.toml: open '/nowhere/small.toml': No such file or directory");
  EXPECT_FALSE(LoadTopologyFile("/").ok());
}

TEST(TopologyFile, LoadsAFile) {
  const support::ScratchDirectory scratch;
  const std::string path = scratch.Write("small.toml", std::string(DefaultTopologyText()));
  EXPECT_TRUE(LoadTopologyFile(path).ok());
  scratch.Write("small.toml", std::string(kMaxTopologyFileBytes + 1, '#'));
  EXPECT_EQ(LoadTopologyFile(path).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msa
