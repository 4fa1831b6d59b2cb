// Connections between members over real sockets.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/tls/tcp_socket.h"
#include "msa/adapters/tls/tls_pump.h"

namespace msa {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr std::uint64_t kSystem = 0x5157;
const PeerIdentity kController{.system = kSystem, .role = PeerRole::kController};
const PeerIdentity kUser{.system = kSystem, .role = PeerRole::kUser, .user = {1000, 100}};

class TlsPumpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    authority_ = std::make_unique<CertificateAuthority>(*CertificateAuthority::Make(kSystem, Now()));
    auto listener = ListenTcp("127.0.0.1:0");
    ASSERT_TRUE(listener.ok());
    address_ = "127.0.0.1:" + std::to_string(*PortOf(listener->get()));
    pump_ = *TlsPump::Start({.handshake = Millis(3000)});
    pump_->Serve({.listener = *std::move(listener),
                  .tls = [tls = Tls(kController)] { return tls; },
                  .on_member =
                      [this](UniqueFd fd, const PeerIdentity& who) {
                        const std::lock_guard lock(mu_);
                        member_ = std::move(fd);
                        who_ = who;
                        changed_.notify_all();
                      },
                  .on_refused =
                      [this](const std::string&, const Status& why) {
                        const std::lock_guard lock(mu_);
                        refused_ = why.message();
                        changed_.notify_all();
                      }});
  }

  std::shared_ptr<const MemberTls> Tls(const PeerIdentity& who, seconds life = seconds(60),
                                       const CertificateAuthority* authority = nullptr) const {
    if (authority == nullptr) authority = authority_.get();
    const auto request = *MakeCertificateRequest();
    auto certificate = authority->Issue(request.request, who, Now(), life);
    return *MemberTls::Make({request.key, *certificate, authority->certificate()});
  }

  Result<UniqueFd> Dial(const MemberTls& tls, const PeerIdentity& expected = kController) {
    MSA_ASSIGN_OR_RETURN(auto stream, DialMember(address_, tls, expected, SteadyNow() + seconds(30)));
    return pump_->Join(std::move(stream));
  }

  UniqueFd Member() {
    std::unique_lock lock(mu_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(30), [this] { return bool(member_); }));
    return std::move(member_);
  }
  std::string Refusal() {
    std::unique_lock lock(mu_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(30), [this] { return refused_.has_value(); }));
    return refused_.value_or("");
  }

  static void Blocking(int fd) {
    timeval patience{30, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  }
  static std::string Receive(int fd, std::size_t size) {
    Blocking(fd);
    std::string all;
    char buffer[8192];
    while (all.size() < size) {
      const ssize_t count = ::recv(fd, buffer, std::min(sizeof buffer, size - all.size()), 0);
      if (count <= 0) break;
      all.append(buffer, static_cast<std::size_t>(count));
    }
    return all;
  }

  std::unique_ptr<CertificateAuthority> authority_;
  std::string address_;
  std::mutex mu_;
  std::condition_variable changed_;
  UniqueFd member_;
  PeerIdentity who_;
  std::optional<std::string> refused_;
  std::unique_ptr<TlsPump> pump_;
};

TEST_F(TlsPumpTest, CarriesBytesBothWaysAndTellsWhoCame) {
  auto client = Dial(*Tls(kUser));
  ASSERT_TRUE(client.ok()) << client.status().message();
  const UniqueFd server = Member();
  EXPECT_EQ(who_, kUser);
  Blocking(client->get());
  ASSERT_EQ(::send(client->get(), "ping", 4, MSG_NOSIGNAL), 4);
  EXPECT_EQ(Receive(server.get(), 4), "ping");
  ASSERT_EQ(::send(server.get(), "pong", 4, MSG_NOSIGNAL), 4);
  EXPECT_EQ(Receive(client->get(), 4), "pong");
}

TEST_F(TlsPumpTest, LosesNothingOfMegabytesInFrontOfTheEnd) {
  auto client = Dial(*Tls(kUser));
  ASSERT_TRUE(client.ok());
  const UniqueFd server = Member();
  std::string data(8U << 20, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 2654435761U >> 13U);
  std::thread sender([fd = client->release(), &data] {
    Blocking(fd);
    std::size_t done = 0;
    while (done < data.size()) {
      const ssize_t count = ::send(fd, data.data() + done, data.size() - done, MSG_NOSIGNAL);
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    ::close(fd);
  });
  EXPECT_TRUE(Receive(server.get(), data.size() + 1) == data);
  sender.join();
}

TEST_F(TlsPumpTest, EndsTheOtherEndWhenOneEnds) {
  auto client = Dial(*Tls(kUser));
  ASSERT_TRUE(client.ok());
  UniqueFd server = Member();
  server.reset();
  Blocking(client->get());
  char byte = 0;
  EXPECT_EQ(::recv(client->get(), &byte, 1, 0), 0);
}

TEST_F(TlsPumpTest, EndsAConnectionWithThePeersCertificate) {
  auto client = Dial(*Tls(kUser, seconds(5)));
  ASSERT_TRUE(client.ok()) << client.status().message();
  const UniqueFd server = Member();
  Blocking(server.get());
  char byte = 0;
  EXPECT_EQ(::recv(server.get(), &byte, 1, 0), 0) << "within the 30 s of the socket";
}

TEST_F(TlsPumpTest, RefusesAMemberOfAnotherAuthority) {
  auto other = *CertificateAuthority::Make(kSystem, Now());
  EXPECT_EQ(Dial(*Tls(kUser, seconds(60), &other)).status().code(), Code::kUnauthenticated);
  EXPECT_THAT(Refusal(), HasSubstr("TLS"));
}

TEST_F(TlsPumpTest, RefusesAnExpiredCertificate) {
  auto client = Dial(*Tls(kUser, seconds(-30)));
  if (client.ok()) {  // in TLS 1.3 the client hears of it with the first byte
    Blocking(client->get());
    char byte = 0;
    EXPECT_LE(::recv(client->get(), &byte, 1, 0), 0);
  }
  EXPECT_THAT(Refusal(), HasSubstr("expired"));
}

TEST_F(TlsPumpTest, RefusesWhoShowsNoCertificateOrSaysNothing) {
  auto plain = ConnectTcp(address_, SteadyNow() + seconds(30));
  ASSERT_TRUE(plain.ok());
  ASSERT_GT(::send(plain->get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 0);
  EXPECT_THAT(Refusal(), HasSubstr("TLS"));
  refused_.reset();
  auto silent = ConnectTcp(address_, SteadyNow() + seconds(30));
  EXPECT_THAT(Refusal(), HasSubstr("no TLS handshake within 3000 ms"));
}

TEST_F(TlsPumpTest, TheClientRefusesAnotherThanItWanted) {
  const PeerIdentity node{.system = kSystem, .role = PeerRole::kNode, .node = "cn0"};
  EXPECT_THAT(Dial(*Tls(kUser), node).status().message(), HasSubstr("is controller, expected node cn0"));
}

TEST_F(TlsPumpTest, KeepsTheConnectionOfAMemberThatHasRenewedItsCertificate) {
  const PeerIdentity node{.system = kSystem, .role = PeerRole::kNode, .node = "cn0"};
  auto renewed = Dial(*Tls(node, seconds(5)));
  ASSERT_TRUE(renewed.ok());
  const UniqueFd renewed_end = Member();
  const PeerIdentity other{.system = kSystem, .role = PeerRole::kNode, .node = "cn1"};
  auto expired = Dial(*Tls(other, seconds(5)));
  ASSERT_TRUE(expired.ok());
  const UniqueFd expired_end = Member();
  pump_->Extend(node, Now() + seconds(60));
  EXPECT_EQ(Receive(expired->get(), 1), "") << "ends with its certificate";
  ASSERT_EQ(::send(renewed->get(), "still", 5, MSG_NOSIGNAL), 5);
  EXPECT_EQ(Receive(renewed_end.get(), 5), "still");
}

}  // namespace
}  // namespace msa
