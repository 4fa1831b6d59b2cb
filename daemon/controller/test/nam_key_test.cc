#include "nam_key.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/files.h"
#include "msa/support/scratch_directory.h"

#include "user_names.h"

namespace msa {
namespace {

using ::testing::HasSubstr;

class NamKeyTest : public ::testing::Test {
 protected:
  support::ScratchDirectory dir_;
  const std::string file_ = dir_ / "nam.key";
};

TEST_F(NamKeyTest, IsMadeOnceForItsOwnerAlone) {
  const Result<NamKey> made = LoadOrMakeNamKey(file_);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_NE(made->system, 0u);
  EXPECT_EQ(made->key.size(), 32u);
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  const Result<NamKey> again = LoadOrMakeNamKey(file_);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->system, made->system);
  EXPECT_EQ(again->key, made->key);
  EXPECT_EQ(ListDirectory(dir_.path())->size(), 1u) << "no temporary file is left";
  const Result<NamKey> other = LoadOrMakeNamKey(dir_ / "other.key");
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->system, made->system);
  EXPECT_NE(other->key, made->key);
}

TEST_F(NamKeyTest, ADamagedOneIsNotReplaced) {
  ASSERT_TRUE(LoadOrMakeNamKey(file_).ok());
  const std::string whole = *ReadFile(file_, 4096);
  std::string no_hex = whole;
  no_hex[20] = 'x';
  std::string no_system = whole;
  no_system.replace(14, 16, 16, '0');
  for (const std::string& text : {std::string(), whole.substr(0, 40), whole + "x", no_hex, no_system}) {
    ASSERT_TRUE(WriteFileAtomically(file_, text).ok());
    const Status status = LoadOrMakeNamKey(file_).status();
    EXPECT_EQ(status.code(), Code::kDataLoss) << text;
    EXPECT_EQ(*ReadFile(file_, 4096), text);
  }
}

TEST_F(NamKeyTest, OneThatOthersMayReadIsRefused) {
  ASSERT_TRUE(LoadOrMakeNamKey(file_).ok());
  ASSERT_EQ(::chmod(file_.c_str(), 0640), 0);
  const Status status = LoadOrMakeNamKey(file_).status();
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("mode 0640"));
}

TEST(LeaseSigner, IsHmacSha256) {
  // RFC 4231, test cases 1 and 2.
  const auto hex = [](const std::string& bytes) {
    std::string out;
    for (const char byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return out;
  };
  EXPECT_EQ(hex(MakeLeaseSigner(std::string(20, '\x0b'))("Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(MakeLeaseSigner("Jefe")("what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(RandomUuid, IsAnotherEachTime) {
  const RegionUuid one = RandomUuid();
  EXPECT_TRUE(one.valid());
  EXPECT_NE(one, RandomUuid());
}

TEST(UserNames, KnowsTheGroupsOfAUserWithoutHisFirst) {
  UserNames users;
  const UserIdentity root{0, 0};
  for (const std::uint32_t group : users.GroupsOf(root)) EXPECT_NE(group, 0u);
  // One that no user database has.
  EXPECT_TRUE(users.GroupsOf({3'999'999'999, 100}).empty());
}

}  // namespace
}  // namespace msa
