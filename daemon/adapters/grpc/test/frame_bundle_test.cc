#include "msa/adapters/grpc/frame_bundle.h"

#include <gtest/gtest.h>

namespace msa::node_control {
namespace {

wire::Frame Make(std::uint16_t type, std::string payload) { return {type, 0, 0, std::move(payload)}; }

TEST(FrameBundle, HoldsItsFramesInOrder) {
  const auto out = Unbundle(Bundle({Make(0x0302, "begin"), Make(0x0301, ""), Make(0x0302, "end")}));
  ASSERT_TRUE(out.ok()) << out.status().message();
  ASSERT_EQ(out->size(), 3U);
  EXPECT_EQ((*out)[0].payload, "begin");
  EXPECT_EQ((*out)[1].type, 0x0301);
  EXPECT_EQ((*out)[2].payload, "end");
}

TEST(FrameBundle, OfOneFrameIsThatFrame) {
  const wire::Frame one = Bundle({Make(0x0305, "exit")});
  EXPECT_EQ(one.type, 0x0305);
  const auto out = Unbundle(one);
  ASSERT_TRUE(out.ok());
  ASSERT_EQ(out->size(), 1U);
  EXPECT_EQ((*out)[0].payload, "exit");
}

TEST(FrameBundle, RefusesWhatIsCutShortOrNested) {
  wire::Frame whole = Bundle({Make(0x0302, "a"), Make(0x0301, "b")});
  wire::Frame cut = whole;
  cut.payload.pop_back();
  EXPECT_EQ(Unbundle(cut).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Unbundle(Bundle({whole, Make(0x0301, "")})).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msa::node_control
