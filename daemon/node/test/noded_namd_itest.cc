// A namd at the real msa-noded.
#include "msa/base/nam_daemon.h"

#include "frame_peer.h"
#include "node_paths.h"
#include "noded_fixture.h"

namespace msa::node::test {
namespace {

// One connection of a namd.
using Namd = FramePeer;

class NodedNamdTest : public NodedTest {
 protected:
  NodedNamdTest() { node_keys_ = "nam = \"64M\"\n"; }
  std::string Path() const { return NodePaths(dir_, "cn0").nam_link(); }
  void Command(const wire::Frame& frame) {
    controller_->Send(node_control::ToProto(node_control::ToNamd{frame}));
  }
  // The node daemon knows that it is registered: no link is closed for that any more.
  bool Up() {
    return Eventually(kLimit, [this] { return controller_->heartbeats() > 0; });
  }
  // A namd whose hello has reached the controller.
  std::unique_ptr<Namd> Greeted(std::uint32_t pid) {
    auto namd = std::make_unique<Namd>(Path());
    wire::NamdHello hello;
    hello.pid = pid;
    namd->Say(hello);
    EXPECT_TRUE(Eventually(kLimit, [&] {
      const auto frames = controller_->from_namd();
      if (frames.empty() || frames.back().type != wire::NamdHello::kType) return false;
      return wire::Decode<wire::NamdHello>(frames.back().payload)->pid == pid;
    })) << Log();
    return namd;
  }
};

TEST_F(NodedNamdTest, CarriesFramesBothWaysInOrderUnread) {
  StartNoded();
  ASSERT_TRUE(Up()) << Log();
  const auto namd = Greeted(7);
  for (std::uint64_t i = 0; i < 100; ++i) namd->Say(wire::NamExtentDone{.request = i}, i);
  ASSERT_TRUE(Eventually(kLimit, [&] { return controller_->from_namd().size() == 101; })) << Log();
  const std::vector<wire::Frame> got = controller_->from_namd();
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(got[i + 1].id, i);
    EXPECT_EQ(wire::Decode<wire::NamExtentDone>(got[i + 1].payload)->request, i);
  }
  for (std::uint16_t i = 0; i < 100; ++i) Command({static_cast<std::uint16_t>(0x0930 + i), 0, i, "x"});
  Command({0x0801, 0, 0, "of another protocol"});
  Command({0x09fe, 0, 0, std::string(3 << 20, 'y')});
  ASSERT_TRUE(namd->Until([&] { return namd->frames().size() == 101; }));
  for (std::uint16_t i = 0; i < 100; ++i) EXPECT_EQ(namd->frames()[i].type, 0x0930 + i);
  EXPECT_EQ(namd->frames()[100].payload.size(), std::size_t{3} << 20);
}

TEST_F(NodedNamdTest, TellsTheControllerWhenNamdIsGone) {
  StartNoded();
  ASSERT_TRUE(Up()) << Log();
  Greeted(7).reset();
  EXPECT_TRUE(Eventually(kLimit, [&] { return controller_->namds_gone().size() == 1; })) << Log();
}

TEST_F(NodedNamdTest, ANewerNamdTakesTheOldersPlace) {
  StartNoded();
  ASSERT_TRUE(Up()) << Log();
  const auto old = Greeted(7);
  const auto newer = Greeted(8);
  EXPECT_TRUE(old->UntilClosed());
  ASSERT_EQ(controller_->namds_gone().size(), 1U);
  EXPECT_THAT(controller_->namds_gone()[0], ::testing::HasSubstr("a newer namd of cn0 (pid 8)"));
  Command({0x0921, 0, 0, "for the newer"});
  EXPECT_TRUE(newer->Until([&] { return newer->frames().size() == 1; }));
}

TEST_F(NodedNamdTest, ClosesTheLinkAtEachRegistrationSoThatNamdSaysHelloAnew) {
  StartNoded();
  ASSERT_TRUE(Up()) << Log();
  const auto before = Greeted(7);
  controller_->Stop();
  EXPECT_TRUE(before->UntilClosed()) << "what it had asked is lost";
  Namd meanwhile(Path());
  controller_->Clear();
  controller_->Start();
  ASSERT_TRUE(Up()) << Log();
  EXPECT_TRUE(meanwhile.UntilClosed());
  (void)Greeted(8);
  EXPECT_TRUE(Eventually(kLimit, [&] { return controller_->namds_gone().size() == 1; }));
  EXPECT_EQ(controller_->from_namd().size(), 1U) << "nothing of before the registration";
}

TEST_F(NodedNamdTest, RefusesWhatIsNoNamdOrOneOfAnotherVersion) {
  StartNoded();
  ASSERT_TRUE(Up()) << Log();
  Namd stranger(Path());
  stranger.Say(wire::NamExtentDone{});
  EXPECT_TRUE(stranger.UntilClosed()) << "a message before the hello";
  Namd other(Path());
  other.Say(wire::NamAttach{});
  EXPECT_TRUE(other.UntilClosed()) << "a message of another protocol";
  Namd old(Path());
  old.Say(wire::NamdHello{.version = 99});
  EXPECT_TRUE(old.UntilClosed());
  ASSERT_EQ(old.frames().size(), 1U);
  const auto quit = wire::Decode<wire::NamdQuit>(old.frames()[0].payload);
  ASSERT_TRUE(quit.ok());
  EXPECT_THAT(quit->reason, ::testing::HasSubstr("version 99"));
  EXPECT_TRUE(controller_->from_namd().empty());
  EXPECT_TRUE(controller_->namds_gone().empty());
}

TEST_F(NodedNamdTest, ANamdThatTheControllerRefusesIsToldWhyAndLetGo) {
  StartNoded();
  ASSERT_TRUE(Up()) << Log();
  const auto namd = Greeted(7);
  Command({wire::NamdQuit::kType, 0, 0, wire::Encode(wire::NamdQuit{"another system's"})});
  EXPECT_TRUE(namd->UntilClosed());
  ASSERT_EQ(namd->frames().size(), 1U);
  EXPECT_EQ(wire::Decode<wire::NamdQuit>(namd->frames()[0].payload)->reason, "another system's");
  (void)Greeted(8);
}

class NodedWithoutNamTest : public NodedTest {};

TEST_F(NodedWithoutNamTest, HasNoSocketForNamd) {
  StartNoded();
  ASSERT_TRUE(RegistrationsReach(1)) << Log();
  EXPECT_FALSE(Exists(NodePaths(dir_, "cn0").nam_link()));
}

}  // namespace
}  // namespace msa::node::test
