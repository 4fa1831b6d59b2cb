#include "record_archive.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/job/records.h"

namespace msa::sqlite {
namespace {

using ::testing::ElementsAre;

// What a build wrote, and what a later one made of it: fields were appended to every struct.
namespace older {
struct Part {
  std::string name;
  template <class A>
  void Fields(A& a) {
    a(name);
  }
};
struct Record {
  JobId id;
  Part first;
  std::vector<Part> parts;
  std::optional<Part> perhaps;
  bool last = false;
  template <class A>
  void Fields(A& a) {
    a(id, first, parts, perhaps, last);
  }
};
}  // namespace older
namespace newer {
struct Part {
  std::string name;
  std::uint32_t size = 5;
  std::vector<std::string> more = {"by default"};
  template <class A>
  void Fields(A& a) {
    a(name, size, more);
  }
};
struct Record {
  JobId id;
  Part first;
  std::vector<Part> parts;
  std::optional<Part> perhaps;
  bool last = false;
  Part added{.name = "new"};
  template <class A>
  void Fields(A& a) {
    a(id, first, parts, perhaps, last, added);
  }
};
}  // namespace newer

const older::Record kOld{JobId(7), {"a"}, {{"b"}, {""}}, older::Part{"c"}, true};

TEST(RecordArchive, ReadsARecordOfAnOlderBuildWithDefaultsForWhatItLacks) {
  newer::Record record;
  ASSERT_TRUE(DecodeRecord(EncodeRecord(kOld), record));
  EXPECT_EQ(record.id, JobId(7));
  EXPECT_EQ(record.first.name, "a");
  EXPECT_EQ(record.first.size, 5u);
  ASSERT_EQ(record.parts.size(), 2u);
  EXPECT_EQ(record.parts[0].name, "b");
  EXPECT_THAT(record.parts[1].more, ElementsAre("by default"));
  ASSERT_TRUE(record.perhaps.has_value());
  EXPECT_EQ(record.perhaps->name, "c");
  EXPECT_TRUE(record.last) << "a field behind a struct that grew was read from its neighbour";
  EXPECT_EQ(record.added.name, "new");
}

TEST(RecordArchive, PassesOverWhatANewerBuildHasAppended) {
  newer::Record record;
  record.id = JobId(9);
  record.first = {"a", 1, {"x", "y"}};
  record.parts = {{"b", 2, {}}, {"c", 3, {"z"}}};
  record.last = true;
  older::Record old;
  ASSERT_TRUE(DecodeRecord(EncodeRecord(record), old));
  EXPECT_EQ(old.id, JobId(9));
  EXPECT_EQ(old.first.name, "a");
  ASSERT_EQ(old.parts.size(), 2u);
  EXPECT_EQ(old.parts[1].name, "c");
  EXPECT_FALSE(old.perhaps.has_value());
  EXPECT_TRUE(old.last);
}

TEST(RecordArchive, RefusesARecordThatEndsEarlyOrLate) {
  const std::string whole = EncodeRecord(kOld);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    older::Record record;
    EXPECT_FALSE(DecodeRecord(whole.substr(0, size), record)) << size << " of " << whole.size() << " bytes";
  }
  older::Record record;
  EXPECT_FALSE(DecodeRecord(whole + "x", record));
}

TEST(RecordArchive, RefusesLengthsBeyondTheRecordBeforeMemoryIsSpentOnThem) {
  std::string blob = EncodeRecord(kOld);
  // u32 whole, u64 id, u32 length of `first`, u32 length of its name, "a", then the count of `parts`.
  const std::size_t count = 4 + 8 + 4 + 4 + 1;
  ASSERT_EQ(blob[count], 2);
  blob[count + 3] = '\x7f';
  older::Record record;
  EXPECT_FALSE(DecodeRecord(blob, record));
  blob = EncodeRecord(kOld);
  blob[12] = '\x7f';  // of `first`
  EXPECT_FALSE(DecodeRecord(blob, record));
}

TEST(RecordArchive, KeepsEveryFieldOfAJob) {
  JobRecord job;
  job.id = JobId(3);
  job.user = {1000, 100};
  job.spec.env = {"A=1", std::string("B=\0x", 4)};
  job.spec.components.resize(2);
  job.spec.components[1].argv = {"./b", ""};
  job.spec.dependencies = {{DependencyKind::kAfterOk, JobId(2), 7}};
  job.spec.limits = {{3, 4, ~std::uint64_t{0}}};
  job.submitted_at = FromUnixMillis(1'700'000'000'123);
  job.members.resize(1);
  job.members[0].cores = {0, 65535};
  job.namespaces.resize(1);
  job.namespaces[0].nspace = "msa.3.1.0";
  JobRecord back;
  ASSERT_TRUE(DecodeRecord(EncodeRecord(job), back));
  EXPECT_EQ(wire::Encode(back), wire::Encode(job));
}

}  // namespace
}  // namespace msa::sqlite
