#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "region/snapshot.h"
#include "region/text_lines.h"
#include "snapshot_fixture.h"

namespace msa::cli {
namespace {

using namespace region_test;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A region of three segments, of 2 MiB and a bit, of nothing, and of 1 MiB.
class Snapshots : public testing::Test, public SnapshotWorld {
 protected:
  Snapshots() : region_(&system.Add("fields", {{Bytes(2 * kMiB + 77), 8}, {Bytes(0), 4}, {Bytes(kMiB), 1}})) {
    region_->content[0] = Noise(2 * kMiB + 77, 1);
    region_->content[2] = Noise(kMiB, 2);
    region_->info.mode = 0640;
    region_->info.acl = {{wire::NamAclKind::kUser, 1234, NamRights::kRead | NamRights::kMap},
                         {wire::NamAclKind::kGroup, 55, NamRights::kWrite}};
    region_->info.placement = wire::NamPlacement::kSpread;
  }
  FakeRegion* region_;
};

TEST_F(Snapshots, AreFullFirstAndThenHoldWhatHasChanged) {
  const auto first = Take("fields", {.tag = "one"});
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->bytes, 3 * kMiB + 77);
  EXPECT_EQ(first->blocks_written, 4U);
  EXPECT_EQ(first->blocks_reused, 0U);
  region_->content[0][kMiB + 5] ^= std::byte{1};
  const auto second = Take("fields", {.tag = "two"});
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->blocks_written, 1U);
  EXPECT_EQ(second->blocks_reused, 3U);
  EXPECT_EQ(second->bytes_written, kMiB);
  EXPECT_EQ(Blocks().size(), 5u);
}

TEST_F(Snapshots, RestoreContentLayoutAndRights) {
  const Content before = region_->content;
  ASSERT_TRUE(Take("fields", {.tag = "one"}).ok());
  region_->content[0] = Noise(2 * kMiB + 77, 8);
  ASSERT_TRUE(Take("fields", {.tag = "two"}).ok());
  const auto name = Restore("one", {.name = "again"});
  ASSERT_TRUE(name.ok()) << name.status().message();
  const FakeRegion& again = *system.regions.at("again");
  EXPECT_TRUE(again.content == before);
  EXPECT_EQ(again.info.mode, 0640U);
  ASSERT_EQ(again.info.acl.size(), 2u);
  EXPECT_EQ(again.info.acl[0].id, 1234U);
  EXPECT_EQ(again.info.acl[1].rights, NamRights::kWrite);
  EXPECT_EQ(again.info.segments[0].disp_unit, 8U);
  EXPECT_EQ(again.info.segments[1].bytes.value, 0U);
  EXPECT_EQ(again.info.placement, wire::NamPlacement::kSpread);
}

TEST_F(Snapshots, AreOpenedToOthersWhenAllIsRestored) {
  ASSERT_TRUE(Take("fields").ok());
  std::size_t writes = 0;
  system.before = [&](std::string_view what) {
    if (what == "write" || what == "access") {
      const wire::NamRegionInfo& info = system.regions.at("again")->info;
      EXPECT_EQ(info.mode, 0600U);
      EXPECT_TRUE(info.acl.empty());
    }
    if (what == "write") ++writes;
    if (what == "access") {
      EXPECT_EQ(writes, 4u) << "the last thing that is done";
    }
    return Status::Ok();
  };
  ASSERT_TRUE(Restore("", {.name = "again"}).ok());
  EXPECT_EQ(system.regions.at("again")->info.mode, 0640U);
}

TEST_F(Snapshots, OverwriteARegionOfTheSameLayoutOnlyIfAskedTo) {
  const Content before = region_->content;
  ASSERT_TRUE(Take("fields", {.tag = "one"}).ok());
  region_->content[2] = Noise(kMiB, 9);
  const auto refused = Restore("one");
  EXPECT_EQ(refused.status().code(), Code::kAlreadyExists);
  EXPECT_THAT(refused.status().message(), HasSubstr("--force"));
  const RegionUuid uuid = region_->info.uuid;
  ASSERT_TRUE(Restore("one", {.overwrite = true}).ok());
  EXPECT_TRUE(region_->content == before);
  EXPECT_EQ(system.regions.at("fields")->info.uuid, uuid) << "the same region";
  system.Add("small", {{Bytes(5), 1}});
  const auto other = Restore("one", {.name = "small", .overwrite = true});
  EXPECT_EQ(other.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(other.status().message(), HasSubstr("'small' has 1 segments, expected 3"));
}

TEST_F(Snapshots, BringADamagedRegionBackUnderItsNameWithItsRights) {
  const Content before = region_->content;
  ASSERT_TRUE(Take("fields", {.tag = "one"}).ok());
  region_->info.state = wire::NamRegionState::kDamaged;
  region_->info.mode = 0640;
  region_->info.acl = {{wire::NamAclKind::kUser, 77, NamRights::kRead}};
  const RegionUuid uuid = region_->info.uuid;
  EXPECT_EQ(Restore("one").status().code(), Code::kAlreadyExists) << "not without --force";
  const auto restored = Restore("one", {.overwrite = true});
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  const auto& made = *system.regions.at("fields");
  EXPECT_NE(made.info.uuid, uuid);
  EXPECT_TRUE(made.content == before);
  EXPECT_EQ(made.info.mode, 0640u);
  ASSERT_EQ(made.info.acl.size(), 1u);
  EXPECT_EQ(made.info.acl[0].id, 77u);
}

TEST_F(Snapshots, AreReadUnderASharedLockOfEachSegment) {
  int locks = 0;
  system.before = [&](std::string_view what) {
    if (what == "lock shared") ++locks;
    if (what == "read") {
      EXPECT_TRUE(region_->locks[0] + region_->locks[2] == 1) << "read without a lock";
    }
    return Status::Ok();
  };
  ASSERT_TRUE(Take("fields", {.tag = "one"}).ok());
  EXPECT_EQ(locks, 3);
  for (const auto& [segment, held] : region_->locks) EXPECT_EQ(held, 0);
  system.before = [](std::string_view what) {
    if (what.starts_with("lock")) return Error(Code::kDeadlineExceeded, "rank 3 of job 7 holds it");
    return Status::Ok();
  };
  const auto locked = Take("fields", {.tag = "two"});
  EXPECT_EQ(locked.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(locked.status().message(),
              AllOf(HasSubstr("segment 0"), HasSubstr("rank 3"), HasSubstr("--no-lock")));
  EXPECT_TRUE(Take("fields", {.tag = "three", .locking = Locking::kNone}).ok());
}

TEST_F(Snapshots, ReadASegmentAgainWhoseLockWasLost) {
  int reads = 0;
  system.before = [&](std::string_view what) {
    if (what != "read" || ++reads != 3) return Status::Ok();
    region_->content[0][0] ^= std::byte{1};  // by a writer whom the lock no longer kept out
    return Error(Code::kAborted, "the lock was lost");
  };
  const auto counts = Take("fields", {.tag = "one"});
  ASSERT_TRUE(counts.ok()) << counts.status().message();
  EXPECT_EQ(counts->bytes, 3 * kMiB + 77) << "counted once";
  const Content then = region_->content;
  ASSERT_TRUE(Restore("one", {.name = "again"}).ok());
  EXPECT_TRUE(system.regions.at("again")->content == then);
  system.before = [&](std::string_view what) {
    return what == "read" ? Error(Code::kAborted, "the region was resized") : Status::Ok();
  };
  EXPECT_EQ(Take("fields", {.tag = "two"}).status().code(), Code::kAborted) << "not for ever";
}

TEST_F(Snapshots, AnErrorLeavesNoSnapshotAndTheNextOneUsesItsBlocks) {
  int reads = 0;
  system.before = [&](std::string_view what) {
    return what == "read" && ++reads == 3 ? Error(Code::kUnavailable, "namd is away") : Status::Ok();
  };
  EXPECT_EQ(Take("fields", {.tag = "one"}).status().code(), Code::kUnavailable);
  const auto missing = Restore("one", {.name = "again"});
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  system.before = [](std::string_view) { return Status::Ok(); };
  const auto next = Take("fields", {.tag = "one"});
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->blocks_reused, 2U);
}

TEST_F(Snapshots, StopLeavesNothingBehind) {
  const auto stopped = Take("fields", {.tag = "one", .stop = [] { return true; }});
  EXPECT_EQ(stopped.status().code(), Code::kCancelled);
  ASSERT_TRUE(Take("fields", {.tag = "two"}).ok());
  int asked = 0;
  const auto restored = Restore("two", {.name = "again", .stop = [&] { return ++asked > 6; }});
  EXPECT_EQ(restored.status().code(), Code::kCancelled) << "in the middle of writing";
  EXPECT_FALSE(system.regions.contains("again"));
}

TEST_F(Snapshots, ADamagedBlockIsFoundBeforeAnythingIsMade) {
  ASSERT_TRUE(Take("fields", {.tag = "one"}).ok());
  system.before = [](std::string_view what) {
    EXPECT_NE(what, "create");
    EXPECT_NE(what, "write");
    return Status::Ok();
  };
  for (const std::string& block : Blocks()) {
    const std::string whole = FileText(block);
    std::string flipped = whole;
    flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 1);
    for (const std::string& bad : {flipped, whole.substr(1), whole + "x", std::string()}) {
      WriteText(block, bad);
      const auto result = Restore("one", {.name = "again"});
      EXPECT_EQ(result.status().code(), Code::kDataLoss);
      EXPECT_THAT(result.status().message(),
                  AllOf(HasSubstr("snapshot 'one' is damaged, 1 block cannot be used"), HasSubstr("segment "),
                        HasSubstr("offset "), HasSubstr(block)));
      EXPECT_EQ(Restore("one", {.overwrite = true}).status().code(), Code::kDataLoss);
    }
    std::filesystem::remove(block);
    EXPECT_THAT(Restore("one", {.name = "again"}).status().message(), HasSubstr("is missing"));
    WriteText(block, whole);
  }
  EXPECT_FALSE(system.regions.contains("again"));
}

TEST_F(Snapshots, ATornOrTamperedManifestIsRefused) {
  ASSERT_TRUE(Take("fields", {.tag = "one"}).ok());
  const std::string whole = FileText(ManifestOf("one"));
  std::vector<std::string> bad = {whole + "x", whole + whole, "", "\n"};
  for (std::size_t cut = 0; cut < whole.size(); cut += 7) bad.push_back(whole.substr(0, cut));
  for (std::size_t at = 0; at < whole.size(); at += 5) {
    bad.push_back(whole);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ 1);
  }
  for (const std::string& text : bad) {
    WriteText(ManifestOf("one"), text);
    const auto result = Restore("one", {.name = "again"});
    ASSERT_EQ(result.status().code(), Code::kDataLoss) << text;
    EXPECT_THAT(result.status().message(), HasSubstr(":one': it is "));
  }
  EXPECT_FALSE(system.regions.contains("again"));
  // The manifest of another snapshot under this one's name.
  WriteText(ManifestOf("one"), whole);
  WriteText(ManifestOf("two"), whole);
  EXPECT_THAT(Restore("two", {.name = "again"}).status().message(), HasSubstr("it is that of 'one'"));
}

TEST_F(Snapshots, AFailureWhileWritingRemovesTheNewRegion) {
  ASSERT_TRUE(Take("fields", {.tag = "one"}).ok());
  for (const char* what : {"write", "access", "lock exclusive"}) {
    system.before = [&](std::string_view now) {
      return now == what ? Error(Code::kUnavailable, "namd is away") : Status::Ok();
    };
    const auto result = Restore("one", {.name = "again"});
    EXPECT_EQ(result.status().code(), Code::kUnavailable);
    EXPECT_THAT(result.status().message(), HasSubstr("'again' was not restored"));
    EXPECT_FALSE(system.regions.contains("again")) << what;
  }
  system.before = [](std::string_view now) {
    return now == "write" || now == "remove" ? Error(Code::kUnavailable, "away") : Status::Ok();
  };
  EXPECT_THAT(Restore("one", {.name = "again"}).status().message(),
              HasSubstr("msactl region rm --force again"));
}

TEST_F(Snapshots, ADamagedBlockIsRepairedByTheNextSnapshotThatHasIt) {
  ASSERT_TRUE(Take("fields", {.tag = "one"}).ok());
  const std::string block = Blocks()[0];
  WriteText(block, "damaged");
  EXPECT_FALSE(Restore("one", {.name = "again"}).ok());
  const auto next = Take("fields", {.tag = "two"});
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->blocks_written, 1U);
  EXPECT_TRUE(Restore("one", {.name = "again"}).ok());
}

TEST_F(Snapshots, HaveNamesOfTheirOwn) {
  const auto first = Take("fields", {.now_ms = 1795255200000});
  const auto second = Take("fields", {.now_ms = 1795255200000});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->tag, "fields-20261121T100000Z");
  EXPECT_EQ(second->tag, "fields-20261121T100000Z-2");
  ASSERT_TRUE(Take("fields", {.tag = "mine"}).ok());
  EXPECT_EQ(Take("fields", {.tag = "mine"}).status().code(), Code::kAlreadyExists);
  for (const char* wrong : {"../x", ".x", "a b", "a/b", "-x"})
    EXPECT_EQ(Take("fields", {.tag = wrong}).status().code(), Code::kInvalidArgument) << wrong;
  const auto missing = Restore("mime");
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("did you mean 'mine'?"));
}

TEST_F(Snapshots, WithoutATagTheNewestOneOfTheOnlyRegionIsMeant) {
  ASSERT_TRUE(Take("fields", {.tag = "b", .now_ms = 5000}).ok());
  ASSERT_TRUE(Take("fields", {.tag = "a", .now_ms = 6000}).ok());
  const auto store = SnapshotStore::OpenToRead(dir);
  ASSERT_TRUE(store.ok());
  EXPECT_EQ(store->Load("")->tag, "a");
  WriteText(ManifestOf("torn"), "msa-snapshot 1\n");
  const auto list = store->List();
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[0].tag, "b");
  EXPECT_EQ((*list)[2].tag, "torn");
  EXPECT_EQ((*list)[2].status.code(), Code::kDataLoss);
  EXPECT_EQ(store->Load("")->tag, "a") << "of the whole ones";
  system.Add("table", {{Bytes(10), 1}});
  ASSERT_TRUE(Take("table", {.tag = "t"}).ok());
  EXPECT_EQ(store->Load("").status().code(), Code::kInvalidArgument);
  EXPECT_THAT(store->Load("").status().message(), AllOf(HasSubstr("'fields'"), HasSubstr("'table'")));
}

TEST_F(Snapshots, OneWritesToADirectoryAtATime) {
  const auto store = SnapshotStore::OpenToWrite(dir);
  ASSERT_TRUE(store.ok());
  const auto second = Take("fields");
  EXPECT_EQ(second.status().code(), Code::kAlreadyExists);
  EXPECT_THAT(second.status().message(), HasSubstr("is running already"));
  EXPECT_EQ(SnapshotStore::OpenToRead(dir + "/none").status().code(), Code::kNotFound);
}

TEST_F(Snapshots, ArePathsOfADirectoryAndATag) {
  ASSERT_TRUE(Take("fields", {.tag = "one"}).ok());
  EXPECT_EQ(ParseSnapshotPath(dir)->tag, "");
  EXPECT_EQ(ParseSnapshotPath(dir + ":one")->dir, dir);
  EXPECT_EQ(ParseSnapshotPath(dir + ":one")->tag, "one");
  EXPECT_EQ(ParseSnapshotPath(dir + ":a/b").status().code(), Code::kInvalidArgument);
  std::filesystem::create_directory(dir + ":c");
  EXPECT_EQ(ParseSnapshotPath(dir + ":c")->dir, dir + ":c");
  std::filesystem::remove(dir + ":c");
}

TEST(Manifest, RefusesNumbersThatCannotBe) {
  SnapshotManifest manifest;
  manifest.tag = "t";
  manifest.region = "r";
  manifest.uuid = {1, 2};
  manifest.segments.push_back({5, 1, {Checksum{1, 2}}});
  const std::string text = ToText(manifest);
  ASSERT_TRUE(ParseManifest(text).ok()) << ParseManifest(text).status().message();
  EXPECT_EQ(ToText(*ParseManifest(text)), text);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string body = text.substr(0, text.rfind("end "));
    const std::size_t at = body.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    body.replace(at, from.size(), to);
    return ParseManifest(Seal(body)).status();
  };
  EXPECT_EQ(with("tag t", "tag ../t").code(), Code::kDataLoss);
  EXPECT_EQ(with("segments 1", "segments 0").code(), Code::kDataLoss);
  EXPECT_EQ(with("segments 1", "segments 2").code(), Code::kDataLoss);
  EXPECT_EQ(with("segments 1", "segments 65537").code(), Code::kDataLoss);
  EXPECT_EQ(with("segment 5 1", "segment 18446744073709551615 1").code(), Code::kDataLoss);
  EXPECT_EQ(with("segment 5 1", "segment 1125899906842624 1").code(), Code::kDataLoss)
      << "blocks are missing";
  EXPECT_EQ(with("segment 5 1", "segment 5 0").code(), Code::kDataLoss);
  EXPECT_EQ(with("segment 5 1", "segment 5").code(), Code::kDataLoss);
  EXPECT_EQ(with("access 0600", "access 0777").code(), Code::kDataLoss);
  EXPECT_EQ(with("msa-snapshot 1", "msa-snapshot 2").code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace msa::cli
