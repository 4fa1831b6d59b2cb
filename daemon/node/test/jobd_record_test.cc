#include "jobd_record.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "msa/adapters/process/files.h"
#include "msa/base/messages.h"
#include "msa/support/scratch_directory.h"

namespace msa::node {
namespace {

class JobdRecordTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(MakeDirectory(paths().base()).ok()); }
  NodePaths paths() const { return NodePaths(dir_.path(), "cn0"); }
  support::ScratchDirectory dir_;
};

TEST_F(JobdRecordTest, ComesBackAsItWasSaved) {
  JobdRecord record;
  record.seq = 12;
  record.cookie = "c";
  record.pid = 99;
  record.user = {1, 2};
  record.job = JobId(7);
  record.launch = std::string(1000, '\0');
  record.exit_acked = true;
  ASSERT_TRUE(SaveRecord(paths(), record).ok());
  const auto found = LoadRecords(paths());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->records.size(), 1U);
  EXPECT_EQ(wire::Encode(found->records[0]), wire::Encode(record));
  EXPECT_EQ(found->highest, 12U);
}

TEST_F(JobdRecordTest, TheLastVersionCountsAndOneThatWasCutShortDoesNot) {
  JobdRecord record;
  record.seq = 12;
  record.cookie = "c";
  ASSERT_TRUE(SaveRecord(paths(), record).ok());
  record.pid = 99;
  ASSERT_TRUE(SaveRecord(paths(), record).ok());
  const std::string whole = *ReadFile(paths().record(12), 1000);
  ASSERT_TRUE(WriteFileAtomically(paths().record(12), whole + whole.substr(0, 20)).ok());
  for (const std::uint32_t pid : {99U, 100U}) {
    const auto found = LoadRecords(paths());
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->records.size(), 1U);
    EXPECT_EQ(found->records[0].pid, pid);
    record.pid = 100;
    ASSERT_TRUE(SaveRecord(paths(), record).ok());
  }
}

TEST_F(JobdRecordTest, FindsDirectoriesWithoutRecordAndRemovesBrokenRecords) {
  ASSERT_TRUE(MakeDirectory(paths().run_directory(3)).ok());
  ASSERT_TRUE(MakeDirectory(paths().run_directory(9)).ok());
  ASSERT_TRUE(WriteFileAtomically(paths().record(9), "broken").ok());
  ASSERT_TRUE(WriteFileAtomically(paths().base() + "/hwloc.xml", "x").ok());
  const auto found = LoadRecords(paths());
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->records.empty());
  EXPECT_EQ(found->orphaned, (std::vector<std::uint64_t>{3, 9}));
  EXPECT_EQ(found->highest, 9U);
}

TEST_F(JobdRecordTest, ReadsTheHeaderOfALaunchMessage) {
  wire::LaunchJob launch;
  launch.job = JobId(7);
  launch.incarnation = Incarnation(2);
  launch.secret = "secret";
  launch.user = {5, 6};
  launch.self_index = 3;
  launch.head_index = 1;
  launch.members.emplace_back();
  const auto header = wire::Decode<LaunchHeader>(wire::Encode(launch));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->job, launch.job);
  EXPECT_EQ(header->incarnation, launch.incarnation);
  EXPECT_EQ(header->user, launch.user);
  EXPECT_EQ(header->self_index, 3U);
  EXPECT_EQ(header->head_index, 1U);
}

TEST(ProcessStart, TellsProcessesApart) {
  EXPECT_NE(ProcessStart(static_cast<std::uint32_t>(::getpid())), 0U);
  EXPECT_EQ(ProcessStart(0x7ffffff0), 0U);
}

TEST(Cookie, IsNotRepeated) {
  const auto a = MakeCookie();
  const auto b = MakeCookie();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size(), kCookieCharacters);
  EXPECT_NE(*a, *b);
}

}  // namespace
}  // namespace msa::node
