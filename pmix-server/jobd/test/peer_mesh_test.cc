#include "peer_mesh.h"

#include <signal.h>

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/unix_socket.h"
#include "msa/support/run_until.h"
#include "msa/support/scratch_directory.h"

#include "peer_socket.h"

namespace msa::jobd {
namespace {

using ::testing::HasSubstr;

constexpr char kSecret[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
constexpr char kOther[] = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

struct Side {
  std::unique_ptr<TlsContext> tls;
  std::unique_ptr<PeerMesh> mesh;
  std::vector<std::pair<std::uint32_t, wire::Frame>> frames;
  std::vector<std::uint32_t> joined;
  std::map<std::uint32_t, std::string> lost;
  std::string trouble;
};

class PeerMeshTest : public ::testing::TestWithParam<const char*> {
 protected:
  PeerMeshTest() { ::signal(SIGPIPE, SIG_IGN); }
  ~PeerMeshTest() override {
    sides_.clear();
    (void)loop_->RunOnce(Millis(0));
  }

  PeerMeshOptions Options(std::uint32_t index) {
    PeerMeshOptions options{JobId(7), Incarnation(1), index, {}, kSecret};
    options.address =
        std::string(GetParam()) == "tcp" ? "tcp:127.0.0.1:0" : "unix:" + directory_ / std::to_string(index);
    options.connect_limit = Millis(2'000);
    return options;
  }
  Side& Add(PeerMeshOptions options) {
    auto side = std::make_unique<Side>();
    Side* raw = side.get();
    side->tls = std::make_unique<TlsContext>();
    PeerMesh::Handlers handlers;
    handlers.on_frame = [raw](std::uint32_t from, wire::Frame frame) {
      raw->frames.emplace_back(from, std::move(frame));
    };
    handlers.on_joined = [raw](std::uint32_t index) { raw->joined.push_back(index); };
    handlers.on_lost = [raw](std::uint32_t index, std::string why) { raw->lost[index] = std::move(why); };
    handlers.on_trouble = [raw](const std::string& text) { raw->trouble += text + "\n"; };
    auto mesh = PeerMesh::Create(*loop_, *side->tls, std::move(options), std::move(handlers));
    EXPECT_TRUE(mesh.ok()) << mesh.status().message();
    side->mesh = std::move(*mesh);
    sides_.push_back(std::move(side));
    return *raw;
  }
  std::vector<wire::Member> Members() {
    std::vector<wire::Member> members;
    for (std::uint32_t i = 0; i < sides_.size(); ++i) {
      wire::Member member;
      member.index = i;
      member.node = fmt::format("n{}", i);
      member.address = sides_[i]->mesh->address();
      members.push_back(member);
    }
    return members;
  }
  void Know(std::uint64_t epoch = 1) {
    for (const auto& side : sides_) side->mesh->SetMembers(Epoch(epoch), Members(), {});
  }
  bool Until(const std::function<bool()>& done, Millis limit = Millis(10'000)) {
    return support::RunUntil(*loop_, limit, done);
  }

  support::ScratchDirectory directory_;
  std::unique_ptr<EventLoop> loop_ = std::move(*EventLoop::Create());
  std::vector<std::unique_ptr<Side>> sides_;
};

TEST_P(PeerMeshTest, FramesArriveInOrderAndNameTheirSender) {
  Side& a = Add(Options(0));
  Side& b = Add(Options(1));
  Know();
  for (std::uint64_t i = 1; i <= 100; ++i) b.mesh->Send(0, 0x0540, i, "payload");
  ASSERT_TRUE(Until([&] { return a.frames.size() == 100; }));
  for (std::uint64_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(a.frames[i - 1].first, 1u);
    EXPECT_EQ(a.frames[i - 1].second.id, i);
  }
  EXPECT_EQ(a.joined, std::vector<std::uint32_t>{1});
  EXPECT_EQ(b.joined, std::vector<std::uint32_t>{0});
}

TEST_P(PeerMeshTest, BothSidesMayConnectAtOnce) {
  Side& a = Add(Options(0));
  Side& b = Add(Options(1));
  Know();
  for (std::uint64_t i = 0; i < 50; ++i) {
    a.mesh->Send(1, 0x0540, i, "from a");
    b.mesh->Send(0, 0x0540, i, "from b");
  }
  ASSERT_TRUE(Until([&] { return a.frames.size() == 50 && b.frames.size() == 50; }));
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(a.frames[i].second.id, i);
    EXPECT_EQ(b.frames[i].second.id, i);
  }
  EXPECT_TRUE(a.lost.empty() && b.lost.empty());
}

TEST_P(PeerMeshTest, LargeFramesGoThroughWhole) {
  Side& a = Add(Options(0));
  Side& b = Add(Options(1));
  Know();
  std::string big(std::size_t{20} << 20, 'x');
  for (std::size_t i = 0; i < big.size(); i += 4093) big[i] = static_cast<char>(i);
  b.mesh->Send(0, 0x0540, 1, big);
  a.mesh->Send(1, 0x0540, 2, big);
  ASSERT_TRUE(Until([&] { return a.frames.size() == 1 && b.frames.size() == 1; }, Millis(30'000)));
  EXPECT_TRUE(a.frames[0].second.payload == big);
  EXPECT_TRUE(b.frames[0].second.payload == big);
}

TEST_P(PeerMeshTest, ASendToItselfComesThroughTheLoop) {
  Side& a = Add(Options(0));
  Know();
  a.mesh->Send(0, 0x0540, 3, "mine");
  EXPECT_TRUE(a.frames.empty());
  ASSERT_TRUE(Until([&] { return a.frames.size() == 1; }));
  EXPECT_EQ(a.frames[0].first, 0u);
}

TEST_P(PeerMeshTest, AWrongSecretIsRefused) {
  Side& a = Add(Options(0));
  PeerMeshOptions wrong = Options(1);
  wrong.secret = kOther;
  Side& b = Add(std::move(wrong));
  Know();
  b.mesh->Send(0, 0x0540, 1, "let me in");
  ASSERT_TRUE(Until([&] { return b.lost.contains(0); }));
  EXPECT_TRUE(a.frames.empty());
  EXPECT_TRUE(a.joined.empty());
  EXPECT_THAT(a.trouble, HasSubstr("secret does not match"));
}

TEST_P(PeerMeshTest, AnotherJobIsRefused) {
  Side& a = Add(Options(0));
  PeerMeshOptions other = Options(1);
  other.job = JobId(8);
  Side& b = Add(std::move(other));
  Know();
  b.mesh->Send(0, 0x0540, 1, "x");
  ASSERT_TRUE(Until([&] { return b.lost.contains(0); }));
  EXPECT_TRUE(a.frames.empty());
}

TEST_P(PeerMeshTest, AMemberThatIsNotInTheListIsRefusedWithItsIndex) {
  Side& a = Add(Options(0));
  Side& b = Add(Options(1));
  wire::Member self = Members()[0];
  a.mesh->SetMembers(Epoch(1), {self}, {});
  b.mesh->SetMembers(Epoch(1), Members(), {});
  b.mesh->Send(0, 0x0540, 1, "x");
  ASSERT_TRUE(Until([&] { return b.lost.contains(0); }));
  EXPECT_THAT(b.lost[0], HasSubstr("member 1 is not in the membership"));
  EXPECT_THAT(a.trouble, HasSubstr("member 1 is not in the membership"));
}

TEST_P(PeerMeshTest, ANewerEpochIsToldToTryAgainUntilThisSideKnows) {
  Side& a = Add(Options(0));
  Side& b = Add(Options(1));
  wire::Member self = Members()[0];
  a.mesh->SetMembers(Epoch(1), {self}, {});
  b.mesh->SetMembers(Epoch(2), Members(), {});
  b.mesh->Send(0, 0x0540, 1, "x");
  ASSERT_TRUE(Until([&] { return a.trouble.find("told to try again") != std::string::npos; }));
  EXPECT_TRUE(b.lost.empty());
  a.mesh->SetMembers(Epoch(2), Members(), {});
  ASSERT_TRUE(Until([&] { return a.frames.size() == 1; }));
}

TEST_P(PeerMeshTest, AConnectionThatBreaksLosesTheMember) {
  Side& a = Add(Options(0));
  Side& b = Add(Options(1));
  Know();
  b.mesh->Send(0, 0x0540, 1, "x");
  ASSERT_TRUE(Until([&] { return a.frames.size() == 1; }));
  b.mesh.reset();
  ASSERT_TRUE(Until([&] { return a.lost.contains(1); }));
  EXPECT_THAT(a.lost[1], HasSubstr("lost the job daemon of node n1"));
  a.mesh->Send(1, 0x0540, 1, "into the void");  // dropped
  EXPECT_EQ(a.mesh->members().size(), 0u);
}

TEST_P(PeerMeshTest, AMemberThatLeftTheListIsLostWithTheReason) {
  Side& a = Add(Options(0));
  Add(Options(1));
  Know();
  a.mesh->SetMembers(Epoch(2), {Members()[0]}, "node n1 is down");
  ASSERT_TRUE(Until([&] { return a.lost.contains(1); }));
  EXPECT_EQ(a.lost[1], "node n1 is down");
  a.mesh->SetMembers(Epoch(1), Members(), {});  // older: ignored
}

TEST_P(PeerMeshTest, APeerThatDoesNotSpeakTlsIsDropped) {
  Side& a = Add(Options(0));
  Know();
  auto address = ParsePeerAddress(a.mesh->address());
  auto fd = ConnectPeer(*address);
  ASSERT_TRUE(fd.ok());
  ASSERT_TRUE(Until([&] { return ::write(fd->get(), "GET / HTTP/1.0\r\n\r\n", 18) == 18; }));
  ASSERT_TRUE(Until([&] { return !a.trouble.empty(); }));
  EXPECT_THAT(a.trouble, HasSubstr("peer connection refused"));
}

TEST_P(PeerMeshTest, AnUnreachableMemberIsLostAfterTheLimitNamingItsAddress) {
  Side& a = Add(Options(0));
  PeerMeshOptions options = Options(1);
  Side& b = Add(std::move(options));
  std::vector<wire::Member> members = Members();
  b.mesh.reset();
  a.mesh->SetMembers(Epoch(1), members, {});
  a.mesh->Connect(1);
  ASSERT_TRUE(Until([&] { return a.lost.contains(1); }));
  EXPECT_THAT(a.lost[1], HasSubstr(members[1].address));
}

INSTANTIATE_TEST_SUITE_P(Sockets, PeerMeshTest, ::testing::Values("unix", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST(PeerAddress, NamesWhatItCannotParse) {
  for (const char* text : {"", "tcp:", "tcp:host", "tcp::", "http://x", "unix:"}) {
    const auto address = ParsePeerAddress(text);
    EXPECT_FALSE(address.ok()) << text;
  }
  const auto v6 = ParsePeerAddress("tcp:[::1]:80");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_FALSE(ConnectPeer(*ParsePeerAddress("tcp:some.name:80")).ok());
}

TEST(TlsContext, RefusesASecretThatIsNoKey) {
  TlsContext tls;
  EXPECT_TRUE(tls.Warm().ok());
  EXPECT_FALSE(tls.SetSecret("x", "abc").ok());
  EXPECT_FALSE(tls.SetSecret("x", std::string(64, 'g')).ok());
  EXPECT_TRUE(tls.SetSecret("x", kSecret).ok());
}

}  // namespace
}  // namespace msa::jobd
