// fsck: what the directories of NAM nodes hold against what the book knows; numbers of leases that were never
// written.
#include <gmock/gmock.h>

#include "book_harness.h"

namespace msa::nam_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NamFsck : public testing::Test {
 protected:
  NamFsck() { lease = h.MustGrant(h.Ada(), h.Create("fields", {64})); }
  wire::NamScanned& InDirectory() { return h.namds["nam0"].in_directory; }
  // The whats of all findings, one a line.
  std::string Whats(const wire::NamCheckResult& result) {
    std::string out;
    for (const wire::NamFinding& finding : result.findings)
      out += finding.node + " " + finding.region + ": " + finding.what + "\n";
    return out;
  }

  Harness h{{{"nam0", Bytes(kMiB)}, {"nam1", Bytes(kMiB)}}};
  NamLeaseReply lease;
};

TEST_F(NamFsck, WaitsUntilEveryDirectoryWasLookedAt) {
  h.auto_pump = false;
  const std::uint64_t tag = h.Send(h.Ada(), wire::NamCheckAsk{});
  EXPECT_FALSE(h.replies.contains(tag));
  EXPECT_TRUE(h.Step("nam0"));
  EXPECT_FALSE(h.replies.contains(tag)) << "nam1 has not answered";
  EXPECT_TRUE(h.Step("nam1"));
  ASSERT_TRUE(h.replies.contains(tag));
  const auto& result = std::get<wire::NamCheckResult>(h.replies[tag].body);
  EXPECT_TRUE(result.findings.empty() && result.away.empty()) << Whats(result);
}

TEST_F(NamFsck, TellsOfForeignFilesToTheOperatorAlone) {
  InDirectory().foreign = {"thesis.tex"};
  InDirectory().foreign_count = 5;
  EXPECT_THAT(Whats(h.Check(false)), AllOf(HasSubstr("nam0 thesis.tex: "), HasSubstr("4 more files")));
  const auto reply = h.Ask(h.Ada(), wire::NamCheckAsk{});
  EXPECT_TRUE(std::get<wire::NamCheckResult>(reply.body).findings.empty());
}

TEST_F(NamFsck, FreesAnExtentThatSomebodyHasPutThereForTheOperator) {
  const RegionUuid stray{9, 9};
  h.namds["nam0"].extents[{stray, Generation(1)}] = {wire::NamExtentState::kDamaged, Bytes(77)};
  InDirectory().extents = {{stray, Generation(1), wire::NamExtentState::kDamaged, Bytes(77)}};
  EXPECT_THAT(Whats(h.Check(false)), HasSubstr(ToText(stray) + ": extent of 77 bytes"));
  InDirectory().extents.clear();
  EXPECT_TRUE(h.Check(true).findings.at(0).repaired);
  EXPECT_FALSE(h.namds["nam0"].extents.contains({stray, Generation(1)}));
  EXPECT_EQ(Whats(h.Check(false)), "");
}

TEST_F(NamFsck, NamesTheRegionWhoseFileHasGrown) {
  const auto& extent = lease.lease;
  const std::string node = extent.extents.at(0).node;
  h.namds[node].in_directory.extents = {
      {extent.uuid, extent.generation, wire::NamExtentState::kCommitted, Bytes(123456)}};
  EXPECT_THAT(Whats(h.Check(false)),
              AllOf(HasSubstr(node + " fields: "), HasSubstr("grown to 123456 bytes")));
  EXPECT_TRUE(h.Try(h.Ada(), wire::NamOpen{"", "fields"}).ok()) << "its bytes are all there";
}

TEST_F(NamFsck, CountsANodeAsAwayThatDoesNotAnswerOrGoes) {
  h.namds["nam0"].scans = false;
  std::uint64_t tag = h.Send(h.Root(), wire::NamCheckAsk{});
  EXPECT_FALSE(h.replies.contains(tag));
  h.Sleep(Millis(10'000));
  ASSERT_TRUE(h.replies.contains(tag));
  EXPECT_EQ(std::get<wire::NamCheckResult>(h.replies[tag].body).away, std::vector<std::string>{"nam0"});
  tag = h.Send(h.Root(), wire::NamCheckAsk{});
  h.Lose("nam0");
  ASSERT_TRUE(h.replies.contains(tag));
  EXPECT_EQ(std::get<wire::NamCheckResult>(h.replies[tag].body).away, std::vector<std::string>{"nam0"});
}

TEST_F(NamFsck, SaysWhenADirectoryCannotBeRead) {
  InDirectory().failure = "list directory '/d': permission denied";
  EXPECT_EQ(h.Check(false).away, std::vector<std::string>{"nam0"});
}

TEST_F(NamFsck, TakesNoMoreChecksAtATimeThanItsLimit) {
  h.auto_pump = false;
  std::vector<std::uint64_t> tags;
  for (std::size_t i = 0; i < 16; ++i) tags.push_back(h.Send(h.Ada(), wire::NamCheckAsk{}));
  const Status status = h.Try(h.Bob(), wire::NamCheckAsk{});
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("16"));
  h.Pump();
  for (const std::uint64_t tag : tags) EXPECT_TRUE(h.replies.contains(tag));
  h.auto_pump = true;
  EXPECT_TRUE(h.Try(h.Bob(), wire::NamCheckAsk{}).ok());
}

TEST(NamLeases, ANumberIsNotUsedAgainWhoseRowWasNeverWritten) {
  Harness h;
  h.MustGrant(h.Ada(), h.Create("fields", {64}));
  const Store written = h.store;
  const LeaseId lost = h.MustGrant(h.Ada(), wire::NamOpen{"", "fields"}).granted.lease;
  // The disk was full, and then the controller was killed.
  h.store = written;
  h.now += Millis(1);
  h.Restart();
  h.Up("nam0");
  EXPECT_GE(h.namds["nam0"].welcome.newest, lost) << "the NAM node ends it";
  EXPECT_GT(h.MustGrant(h.Ada(), wire::NamOpen{"", "fields"}).granted.lease, lost);
  EXPECT_EQ(h.Try(h.Ada(), wire::NamRefresh{lost}).code(), Code::kNotFound);
}

TEST(NamLeases, NumbersGoOnAfterTheLastWhenTheClockWasSetBack) {
  Harness h;
  h.Restart();
  h.Up("nam0");
  const LeaseId last = h.MustGrant(h.Ada(), h.Create("fields", {64})).granted.lease;
  h.now -= Millis(3'600'000);
  h.Restart();
  h.Up("nam0");
  EXPECT_GT(h.MustGrant(h.Ada(), wire::NamOpen{"", "fields"}).granted.lease, last);
}

}  // namespace
}  // namespace msa::nam_test
