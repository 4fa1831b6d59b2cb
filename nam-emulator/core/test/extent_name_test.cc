#include "msa/namd/extent_name.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace msa::namd {
namespace {

const ExtentKey kKey{{0x0123456789abcdef, 0xfedcba9876543210}, Generation(12)};

TEST(ExtentName, NamesAnExtentByItsUuidGenerationAndStage) {
  EXPECT_EQ(ExtentFileName(kKey, Stage::kPending), "0123456789abcdeffedcba9876543210.12.pending");
  EXPECT_EQ(ExtentFileName(kKey, Stage::kCommitted), "0123456789abcdeffedcba9876543210.12.extent");
}

TEST(ExtentName, ReadsBackWhatItWrote) {
  for (const Stage stage : {Stage::kPending, Stage::kCommitted}) {
    const auto parsed = ParseExtentName(ExtentFileName(kKey, stage));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->key, kKey);
    EXPECT_EQ(parsed->stage, stage);
  }
}

TEST(ExtentName, LeavesForeignFilesAlone) {
  const std::string uuid = "0123456789abcdeffedcba9876543210";
  for (const std::string& name : std::vector<std::string>{
           std::string(), std::string("lost+found"), uuid, uuid + ".extent", uuid + "..extent",
           uuid + ".0.extent", uuid + ".01.extent", uuid + ".1.extent~", uuid + ".1.Extent",
           uuid + ".-1.extent", uuid + ".1x.extent", uuid + ".4294967296.extent",
           "0123456789ABCDEFFEDCBA9876543210.1.extent", uuid.substr(1) + ".1.extent",
           std::string(32, '0') + ".1.extent", uuid + ".1.pending.a1B2"})
    EXPECT_FALSE(ParseExtentName(name).has_value()) << name;
}

}  // namespace
}  // namespace msa::namd
