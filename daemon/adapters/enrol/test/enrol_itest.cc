// Enrolment with a real munged.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/enrol/enrol.h"
#include "msa/adapters/enrol/member_dialer.h"
#include "msa/adapters/munge/munge.h"
#include "msa/adapters/tls/member_tls.h"
#include "msa/adapters/tls/tcp_socket.h"
#include "msa/support/eventually.h"

#include "munged.h"
#include "payload.h"

namespace msa {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kSystem = 0x5157;

class EnrolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto authority = CertificateAuthority::Make(kSystem, Now());
    ASSERT_TRUE(authority.ok());
    authority_ = std::make_unique<CertificateAuthority>(*std::move(authority));
    auto listener = ListenTcp("127.0.0.1:0");
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    address_ = "127.0.0.1:" + std::to_string(*PortOf(listener->get()));
    EnrolServer::Options options;
    options.listener = *std::move(listener);
    options.system = kSystem;
    options.munge_socket = munged_.socket();
    options.patience = Millis(3000);
    options.life = std::chrono::seconds(2);
    auto server = EnrolServer::Start(
        std::move(options), *authority_,
        {.allow = [this](const std::string&, const PeerIdentity& who) { return Allow(who); },
         .on_enrolled = [this](const std::string&, const PeerIdentity&) { ++enrolled_; },
         .on_refused =
             [this](const std::string&, const Status& why) {
               const std::lock_guard lock(mu_);
               refused_.push_back(why.message());
             }});
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
  }

  Status Allow(const PeerIdentity& who) const {
    if (who.role == PeerRole::kNode && who.node != "cn0")
      return Error(Code::kNotFound, "the topology has no node '{}'", who.node);
    return Status::Ok();
  }

  EnrolOptions Options(PeerRole role = PeerRole::kUser, std::string node = "") const {
    EnrolOptions options;
    options.address = address_;
    options.role = role;
    options.node = std::move(node);
    options.controller_uid = ::geteuid();
    options.munge_socket = munged_.socket();
    return options;
  }

  // What the server answers to these bytes, until it closes the connection.
  std::string Exchange(const std::string& bytes) {
    auto socket = ConnectTcp(address_, SteadyNow() + std::chrono::seconds(30));
    EXPECT_TRUE(socket.ok());
    EXPECT_EQ(::send(socket->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    std::string all;
    char buffer[4096];
    const auto deadline = SteadyNow() + std::chrono::seconds(30);
    while (SteadyNow() < deadline) {
      const ssize_t count = ::recv(socket->get(), buffer, sizeof buffer, 0);
      if (count == 0) return all;
      if (count > 0) all.append(buffer, static_cast<std::size_t>(count));
      if (count < 0 && errno != EAGAIN) return all;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "the server does not close the connection";
    return all;
  }

  std::string LastRefusal() {
    const auto deadline = SteadyNow() + std::chrono::seconds(30);
    while (SteadyNow() < deadline) {
      const std::lock_guard lock(mu_);
      if (!refused_.empty()) return refused_.back();
    }
    return "(nothing was refused)";
  }

  wire::EnrolRequest Request() const {
    wire::EnrolRequest request{.role = 2, .node = "", .request = MakeCertificateRequest()->request};
    request.credential = *MungeEncode(enrol::RequestText(request), {.socket = munged_.socket()});
    return request;
  }

  test::Munged munged_;
  std::unique_ptr<CertificateAuthority> authority_;
  std::string address_;
  std::mutex mu_;
  std::vector<std::string> refused_;
  std::atomic<int> enrolled_ = 0;
  std::unique_ptr<EnrolServer> server_;
};

TEST_F(EnrolTest, GivesAUserACertificateOfItsUid) {
  const auto credentials = Enrol(Options());
  ASSERT_TRUE(credentials.ok()) << credentials.status().message();
  const auto tls = MemberTls::Make(*credentials);
  ASSERT_TRUE(tls.ok()) << tls.status().message();
  EXPECT_EQ((*tls)->self(), (PeerIdentity{kSystem, PeerRole::kUser, "", {::geteuid(), ::getegid()}}));
}

TEST_F(EnrolTest, PassesARefusalOn) {
  ASSERT_TRUE(Enrol(Options(PeerRole::kNode, "cn0")).ok());
  const auto credentials = Enrol(Options(PeerRole::kNode, "cn7"));
  EXPECT_EQ(credentials.status().code(), Code::kNotFound);
  EXPECT_THAT(credentials.status().message(), HasSubstr("no node 'cn7'"));
  EXPECT_THAT(LastRefusal(), HasSubstr("no node 'cn7'"));
}

TEST_F(EnrolTest, DoesNotAnswerAReplayedCredential) {
  const std::string bytes = wire::Pack(Request());
  EXPECT_FALSE(Exchange(bytes).empty());
  EXPECT_THAT(Exchange(bytes), IsEmpty());
  EXPECT_THAT(LastRefusal(), HasSubstr("eplayed"));
}

TEST_F(EnrolTest, DoesNotAnswerACredentialMadeForAnotherRequest) {
  wire::EnrolRequest request = Request();
  request.request = MakeCertificateRequest()->request;
  EXPECT_THAT(Exchange(wire::Pack(request)), IsEmpty());
  EXPECT_THAT(LastRefusal(), HasSubstr("made for another request"));
}

TEST_F(EnrolTest, DoesNotAnswerAForgedCredentialOrOneOfAnotherKey) {
  wire::EnrolRequest request = Request();
  request.credential[request.credential.size() / 2] ^= 1;
  EXPECT_THAT(Exchange(wire::Pack(request)), IsEmpty());
  const test::Munged stranger('x');
  request = Request();
  request.credential = *MungeEncode(enrol::RequestText(request), {.socket = stranger.socket()});
  EXPECT_THAT(Exchange(wire::Pack(request)), IsEmpty());
  EnrolOptions options = Options();
  options.munge_socket = stranger.socket();
  EXPECT_THAT(Enrol(options).status().message(), HasSubstr("same munge key"));
}

TEST_F(EnrolTest, DoesNotAnswerAnExpiredCredential) {
  wire::EnrolRequest request = Request();
  const MungeOptions brief{.socket = munged_.socket(), .ttl = std::chrono::seconds(1)};
  request.credential = *MungeEncode(enrol::RequestText(request), brief);
  const std::string twin = *MungeEncode("twin", brief);
  ASSERT_TRUE(support::Eventually(std::chrono::seconds(30), "its twin has expired", [&] {
    const auto decoded = MungeDecode(twin, brief);
    return !decoded.ok() && decoded.status().message().find("xpired") != std::string::npos;
  }));
  EXPECT_THAT(Exchange(wire::Pack(request)), IsEmpty());
  EXPECT_THAT(LastRefusal(), HasSubstr("xpired"));
}

TEST_F(EnrolTest, DoesNotAnswerNonsenseOrSilence) {
  EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nHost: controller\r\n\r\n"), IsEmpty());
  EXPECT_THAT(Exchange(wire::Pack(wire::EnrolRefused{})), IsEmpty());
  EXPECT_THAT(Exchange(std::string(4, '\0')), IsEmpty()) << "half a header, then nothing";
  EXPECT_TRUE(Enrol(Options()).ok()) << "it serves on";
}

TEST_F(EnrolTest, ADialerRenewsItsCertificateByItself) {
  const auto dialer = MemberDialer::Create(Options());
  ASSERT_TRUE(dialer.ok());
  EXPECT_EQ(enrolled_, 0) << "not before it is used";
  const auto first = (*dialer)->Member();
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(
      support::Eventually(std::chrono::seconds(30), "it has enrolled again", [&] { return enrolled_ >= 2; }));
  EXPECT_GT((*(*dialer)->Member())->until(), (*first)->until());
}

TEST_F(EnrolTest, ADialerTellsWhyItCannotRenewAndTriesAgain) {
  std::atomic<int> troubles = 0;
  const auto dialer = MemberDialer::Create(Options(), [&](const Status& why) {
    EXPECT_EQ(why.code(), Code::kUnavailable);
    ++troubles;
  });
  ASSERT_TRUE((*dialer)->Member().ok());
  server_.reset();
  EXPECT_TRUE(support::Eventually(std::chrono::seconds(30), "it tells", [&] { return troubles >= 2; }));
}

TEST_F(EnrolTest, RefusesAControllerOfAnotherUser) {
  EnrolOptions options = Options();
  options.controller_uid = ::geteuid() + 1;
  EXPECT_EQ(Enrol(options).status().code(), Code::kUnauthenticated);
}

TEST_F(EnrolTest, SaysWhenMungedOrTheControllerIsAway) {
  EnrolOptions options = Options();
  options.munge_socket = "/nonexistent/socket";
  EXPECT_THAT(Enrol(options).status().message(), HasSubstr("is munged running"));
  options = Options();
  options.address = "127.0.0.1:1";
  EXPECT_EQ(Enrol(options).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace msa
