// Resizing regions, and what becomes of layouts that were replaced.
#include <gmock/gmock.h>

#include "book_harness.h"

namespace msa::nam_test {
namespace {

using testing::HasSubstr;

TEST(NamBook, AResizeKeepsWhatBothSizesHaveAndFreesTheOldLayout) {
  Harness h({{"nam0", Bytes(1200)}, {"nam1", Bytes(1200)}}, {.user_quota = Bytes(1000)});
  const auto made = h.MustGrant(h.Ada(), h.Create("a", {300, 200}));
  EXPECT_EQ(h.Try(h.Ada(), wire::NamResize{"a", {Bytes(400), Bytes(100)}}).code(), Code::kFailedPrecondition);
  h.CloseAll(h.Ada());
  EXPECT_EQ(h.Try(h.Ada(), wire::NamResize{"a", {Bytes(1)}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(h.Try(h.Bob(), wire::NamResize{"a", {Bytes(1), Bytes(1)}}).code(), Code::kPermissionDenied);
  EXPECT_EQ(h.Try(h.Ada(), wire::NamResize{"a", {Bytes(801), Bytes(200)}}).code(), Code::kResourceExhausted);
  ASSERT_TRUE(h.Try(h.Ada(), wire::NamResize{"a", {Bytes(400), Bytes(200)}}).ok());
  const auto opened = h.MustGrant(h.Ada(), wire::NamOpen{"", "a"});
  EXPECT_EQ(opened.lease.generation, Generation(2));
  EXPECT_EQ(opened.lease.uuid, made.lease.uuid) << "its port name stays";
  EXPECT_EQ(opened.granted.region.bytes, Bytes(600));
  EXPECT_EQ(opened.lease.segments[1].offset, 448u);
  EXPECT_EQ(h.Extents(), 1u);
  EXPECT_EQ(h.Usage().nodes[0].used.value + h.Usage().nodes[1].used.value, 600u);
}

TEST(NamBook, AShrinkingRegionIsChargedWholeUntilItIsSmaller) {
  Harness h({{"nam0", Bytes(4000)}}, {.user_quota = Bytes(1000)});
  h.MustGrant(h.Ada(), h.Create("a", {800}));
  h.CloseAll(h.Ada());
  h.auto_pump = false;
  h.Send(h.Ada(), wire::NamResize{"a", {Bytes(200)}});
  EXPECT_EQ(h.Usage().users.at(0).used, Bytes(800));
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(1000)) << "both lie there";
  h.auto_pump = true;
  EXPECT_EQ(h.Try(h.Ada(), h.Create("b", {300})).code(), Code::kResourceExhausted);
  h.Pump();
  EXPECT_EQ(h.Usage().users.at(0).used, Bytes(200));
  EXPECT_TRUE(h.Try(h.Ada(), h.Create("b", {300})).ok());
}

TEST(NamBook, AResizeBeyondTheUsersQuotaIsRefusedThoughThereIsRoom) {
  Harness h({{"nam0", Bytes(9000)}}, {.user_quota = Bytes(1000)});
  h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.CloseAll(h.Ada());
  EXPECT_THAT(h.Try(h.Ada(), wire::NamResize{"a", {Bytes(1001)}}).message(), HasSubstr("the quota is 1000"));
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamResize{"a", {Bytes(1000)}}).ok());
}

TEST(NamBook, ACreationWithTheTokenOfARegionThatIsBeingRemovedMakesAnother) {
  Harness h;
  h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.CloseAll(h.Ada());
  h.namds["nam0"].extents.begin()->second.mapped = true;
  h.Send(h.Ada(), wire::NamRemove{"a", false});
  const auto made = h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.Unmap("nam0");
  EXPECT_EQ(h.MustGrant(h.Ada(), wire::NamOpen{"", "a"}).lease.uuid, made.lease.uuid);
}

TEST(NamBook, WhatANamdHadMadeBeforeItsRestartDoesNotCountForTheCreation) {
  Harness h({{"nam0", Bytes(400)}, {"nam1", Bytes(400)}});
  h.auto_pump = false;
  const std::uint64_t tag = h.Send(h.Ada(), h.Create("a", {300, 300}));
  const auto allocate = [&](const std::string& node) {
    while (h.namds[node].inbox.size() > 1) h.Step(node);
    h.Step(node);
  };
  allocate("nam0");
  h.namds["nam0"].extents.clear();
  h.Up("nam0");
  allocate("nam1");
  EXPECT_TRUE(h.open.contains(tag)) << "half of it is not there";
  h.Pump();
  EXPECT_TRUE(h.replies.at(tag).status.ok());
  EXPECT_EQ(h.Extents(), 2u);
}

TEST(NamBook, AnAnswerOfAnotherNamdThanTheOneThatWasAskedChangesNothing) {
  Harness h({{"nam0", Bytes(400)}, {"nam1", Bytes(400)}});
  h.auto_pump = false;
  const std::uint64_t tag = h.Send(h.Ada(), h.Create("a", {300, 300}));
  const auto& asked = std::get<wire::NamExtentAllocate>(h.namds["nam0"].inbox.back());
  h.On(nam_event::ExtentDone{"nam1", {asked.request, 0, ""}});
  h.Pump();
  ASSERT_TRUE(h.replies.contains(tag)) << "nam0's own answer was not heard";
  EXPECT_TRUE(h.replies.at(tag).status.ok());
}

TEST(NamBook, AResizeThatFailsLeavesTheRegionAsItWas) {
  Harness h;
  h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.CloseAll(h.Ada());
  h.namds["nam0"].fail_allocate = Code::kResourceExhausted;
  EXPECT_EQ(h.Try(h.Ada(), wire::NamResize{"a", {Bytes(400)}}).code(), Code::kResourceExhausted);
  const auto opened = h.MustGrant(h.Ada(), wire::NamOpen{"", "a"});
  EXPECT_EQ(opened.lease.generation, Generation(1));
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(300));
}

TEST(NamBook, AnOldLayoutIsFreedThoughTheControllerDiedRightAfterTheResize) {
  Harness h;
  h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.CloseAll(h.Ada());
  h.auto_pump = false;
  h.Send(h.Ada(), wire::NamResize{"a", {Bytes(400)}});
  h.Step("nam0");
  EXPECT_EQ(h.Extents(), 2u);
  h.Restart();
  h.auto_pump = true;
  h.Up("nam0");
  EXPECT_EQ(h.Extents(), 1u);
  EXPECT_EQ(h.MustGrant(h.Ada(), wire::NamOpen{"", "a"}).lease.generation, Generation(2));
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(400));
}

// The old layout is still mapped by somebody, or its namd cannot free it, when the region is removed.
TEST(NamBook, AnOldLayoutOfARemovedRegionIsFreedThoughTheControllerWasRestarted) {
  Harness h;
  h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.CloseAll(h.Ada());
  h.namds["nam0"].extents.begin()->second.mapped = true;
  ASSERT_TRUE(h.Try(h.Ada(), wire::NamResize{"a", {Bytes(400)}}).ok());
  EXPECT_EQ(h.Extents(), 2u);
  h.Send(h.Ada(), wire::NamRemove{"a", false});
  EXPECT_EQ(h.Extents(), 1u);
  EXPECT_EQ(h.store.regions.size(), 1u) << "without its record nobody knows the extent that is left";
  h.Restart();
  for (auto& [key, extent] : h.namds["nam0"].extents) extent.mapped = false;
  h.Up("nam0");
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.store.regions.empty());
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(0));
}

TEST(NamBook, AnOldLayoutOfARegionThatIsBeingRemovedIsFreedAfterARestart) {
  Harness h;
  h.MustGrant(h.Ada(), h.Create("a", {300}));
  h.CloseAll(h.Ada());
  for (auto& [key, extent] : h.namds["nam0"].extents) extent.mapped = true;
  ASSERT_TRUE(h.Try(h.Ada(), wire::NamResize{"a", {Bytes(400)}}).ok());
  for (auto& [key, extent] : h.namds["nam0"].extents) extent.mapped = true;
  h.Send(h.Ada(), wire::NamRemove{"a", false});
  EXPECT_EQ(h.Extents(), 2u);
  h.Restart();
  h.Up("nam0");
  EXPECT_EQ(h.Usage().nodes[0].used, Bytes(700));
  h.Unmap("nam0");
  h.Pump();
  EXPECT_EQ(h.Extents(), 0u);
  EXPECT_TRUE(h.store.regions.empty());
}

}  // namespace
}  // namespace msa::nam_test
