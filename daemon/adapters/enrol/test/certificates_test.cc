#include "msa/adapters/tls/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/tls/member_tls.h"
#include "msa/base/clock.h"

namespace msa {
namespace {

using ::testing::HasSubstr;

const PeerIdentity kNode{.system = 0xabc, .role = PeerRole::kNode, .node = "cn0", .user = {0, 0}};

TEST(PeerIdentity, IsReadBackFromItsUri) {
  EXPECT_EQ(ToUri(kNode), "msa://0000000000000abc/node/cn0/0/0");
  EXPECT_EQ(*ParseIdentityUri(ToUri(kNode)), kNode);
  const PeerIdentity user{.system = 1, .role = PeerRole::kUser, .user = {4294967294U, 1000}};
  EXPECT_EQ(*ParseIdentityUri(ToUri(user)), user);
}

TEST(PeerIdentity, IsNotReadFromAnythingElse) {
  for (const char* uri :
       {"", "msa://", "https://0000000000000abc/node/cn0/0/0", "msa://abc/node/cn0/0/0",
        "msa://0000000000000abc/admin/cn0/0/0", "msa://0000000000000abc/node//0/0",
        "msa://0000000000000abc/user/cn0/0/0", "msa://0000000000000abc/node/c,n/0/0",
        "msa://0000000000000abc/node/cn0/0", "msa://0000000000000abc/node/cn0/0/0/0",
        "msa://0000000000000abc/node/cn0/-1/0", "msa://0000000000000abc/node/cn0/4294967296/0"})
    EXPECT_EQ(ParseIdentityUri(uri).status().code(), Code::kInvalidArgument) << uri;
}

TEST(CertificateAuthority, IssuesWhatMakesAMember) {
  auto authority = CertificateAuthority::Make(0xabc, Now());
  ASSERT_TRUE(authority.ok()) << authority.status().message();
  auto request = MakeCertificateRequest();
  ASSERT_TRUE(request.ok());
  const Instant now = Now();
  auto certificate = authority->Issue(request->request, kNode, now, std::chrono::seconds(60));
  ASSERT_TRUE(certificate.ok()) << certificate.status().message();
  auto tls = MemberTls::Make({request->key, *certificate, authority->certificate()});
  ASSERT_TRUE(tls.ok()) << tls.status().message();
  EXPECT_EQ((*tls)->self(), kNode);
  EXPECT_LE((*tls)->until() - now, Millis(60'000));
  EXPECT_GT((*tls)->until() - now, Millis(58'000));
}

TEST(CertificateAuthority, SurvivesItsFile) {
  auto authority = CertificateAuthority::Make(7, Now());
  ASSERT_TRUE(authority.ok());
  auto again = CertificateAuthority::Parse(authority->Serialize());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->certificate(), authority->certificate());
  EXPECT_EQ(CertificateAuthority::Parse("nonsense").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(CertificateAuthority::Parse(authority->certificate()).status().code(), Code::kInvalidArgument)
      << "a certificate without its key";
}

TEST(CertificateAuthority, RefusesRequestsThatItCannotTrust) {
  auto authority = CertificateAuthority::Make(7, Now());
  ASSERT_TRUE(authority.ok());
  const auto issue = [&](const std::string& request, const PeerIdentity& who) {
    return authority->Issue(request, who, Now(), std::chrono::seconds(60)).status();
  };
  EXPECT_EQ(issue("", kNode).code(), Code::kInvalidArgument);
  EXPECT_EQ(issue(authority->certificate(), kNode).code(), Code::kInvalidArgument);
  std::string damaged = MakeCertificateRequest()->request;
  damaged[damaged.size() / 2] = damaged[damaged.size() / 2] == 'A' ? 'B' : 'A';
  EXPECT_EQ(issue(damaged, kNode).code(), Code::kInvalidArgument);
  PeerIdentity crafty = kNode;
  crafty.node = "cn0,DNS:ctl";
  EXPECT_THAT(issue(MakeCertificateRequest()->request, crafty).message(), HasSubstr("names no member"));
}

TEST(MemberTls, RefusesCredentialsThatDoNotFitTogether) {
  auto authority = CertificateAuthority::Make(7, Now());
  auto one = MakeCertificateRequest();
  auto two = MakeCertificateRequest();
  auto certificate = authority->Issue(one->request, kNode, Now(), std::chrono::seconds(60));
  EXPECT_EQ(MemberTls::Make({two->key, *certificate, authority->certificate()}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(MemberTls::Make({one->key, "", authority->certificate()}).status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace msa
