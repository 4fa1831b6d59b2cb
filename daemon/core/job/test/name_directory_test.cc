#include "name_directory.h"

#include <gtest/gtest.h>

namespace msa {
namespace {

using wire::NameStatus;
using Client = NameDirectory::Client;

constexpr Client kServer{1000, JobId(1)};
constexpr Client kClient{1000, JobId(2)};
constexpr Client kStranger{1001, JobId(3)};

wire::SharedName Name(const std::string& key, const std::string& value = "port") {
  return {key, value, "msa.1.1.0", 0};
}
wire::NameLookup Ask(std::uint64_t request, std::vector<std::string> keys, bool wait = false) {
  return {request, std::move(keys), wait, false};
}

class NameDirectoryTest : public ::testing::Test {
 protected:
  NameStatus Publish(const Client& client, std::vector<wire::SharedName> names) {
    last = directory.Publish(client, 7, names);
    Check();
    EXPECT_EQ(last.at(0).answer.request, 7u);
    return last.at(0).answer.status;
  }
  NameDirectory::Answers Lookup(const Client& client, const wire::NameLookup& lookup) {
    auto answers = directory.Lookup(client, lookup);
    Check();
    return answers;
  }
  void Check() {
    const Status status = directory.CheckInvariants();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  NameDirectory directory{NameLimits{.names_per_job = 4,
                                     .bytes_per_job = 200,
                                     .names_per_user = 5,
                                     .keys_per_lookup = 3,
                                     .waiting_per_job = 2}};
  NameDirectory::Answers last;
};

TEST_F(NameDirectoryTest, JobsOfOneUserSeeEachOthersNames) {
  EXPECT_EQ(Publish(kServer, {Name("ocean", "1.0:2")}), NameStatus::kOk);
  const auto found = Lookup(kClient, Ask(1, {"ocean"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].job, kClient.job);
  EXPECT_EQ(found[0].answer.status, NameStatus::kOk);
  EXPECT_EQ(found[0].answer.names.at(0).value, "1.0:2");
}

TEST_F(NameDirectoryTest, AnotherUsersJobsDoNot) {
  Publish(kServer, {Name("ocean")});
  EXPECT_EQ(Lookup(kStranger, Ask(1, {"ocean"})).at(0).answer.status, NameStatus::kNotFound);
  EXPECT_EQ(Publish(kStranger, {Name("ocean", "other")}), NameStatus::kOk);
  EXPECT_EQ(Lookup(kClient, Ask(1, {"ocean"})).at(0).answer.names.at(0).value, "port");
  directory.JobEnded(kStranger);
  EXPECT_EQ(directory.names(), 1u);
}

TEST_F(NameDirectoryTest, RefusesANameThatAnotherJobHas) {
  Publish(kServer, {Name("ocean")});
  EXPECT_EQ(Publish(kClient, {Name("ice"), Name("ocean")}), NameStatus::kTaken);
  EXPECT_EQ(directory.names(), 1u) << "all or nothing";
  EXPECT_EQ(Publish(kServer, {Name("ocean", "again")}), NameStatus::kOk) << "a repeated message";
  EXPECT_EQ(Lookup(kClient, Ask(1, {"ocean"})).at(0).answer.names.at(0).value, "port");
}

TEST_F(NameDirectoryTest, WithdrawsOnlyItsOwnNames) {
  Publish(kServer, {Name("ocean")});
  directory.Withdraw(kClient, 1, {Name("ocean")});
  EXPECT_EQ(directory.names(), 1u);
  EXPECT_EQ(directory.Withdraw(kServer, 9, {Name("ocean"), Name("none")}).request, 9u);
  EXPECT_EQ(directory.names(), 0u);
  EXPECT_EQ(Publish(kClient, {Name("ocean")}), NameStatus::kOk);
}

TEST_F(NameDirectoryTest, ALookupWaitsUntilAllItsNamesAreThere) {
  EXPECT_TRUE(Lookup(kClient, Ask(1, {"a", "b"}, true)).empty());
  EXPECT_TRUE(Lookup(kClient, Ask(1, {"a", "b"}, true)).empty()) << "a repeated message";
  EXPECT_EQ(directory.waiting(), 1u);
  Publish(kServer, {Name("a")});
  EXPECT_EQ(last.size(), 1u);
  Publish(kServer, {Name("b")});
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[1].job, kClient.job);
  EXPECT_EQ(last[1].answer.request, 1u);
  EXPECT_EQ(last[1].answer.names.size(), 2u);
  EXPECT_EQ(directory.waiting(), 0u);
}

TEST_F(NameDirectoryTest, SaysWhatItFoundOfSeveral) {
  Publish(kServer, {Name("a")});
  const auto found = Lookup(kClient, Ask(1, {"a", "b"}));
  EXPECT_EQ(found.at(0).answer.status, NameStatus::kPartial);
  EXPECT_EQ(found.at(0).answer.names.size(), 1u);
}

TEST_F(NameDirectoryTest, NamesAndWaitsOfAJobGoWithIt) {
  Publish(kServer, {Name("a"), Name("b")});
  Lookup(kServer, Ask(1, {"c"}, true));
  directory.JobEnded(kServer);
  Check();
  EXPECT_EQ(directory.names(), 0u);
  EXPECT_EQ(directory.waiting(), 0u);
}

TEST_F(NameDirectoryTest, TakesWhatAHeadSaysAfterARestart) {
  Lookup(kClient, Ask(4, {"b"}, true));
  Publish(kServer, {Name("a")});
  const auto served = directory.Replace(kServer, {Name("b"), Name("c")});
  Check();
  ASSERT_EQ(served.size(), 1u);
  EXPECT_EQ(served[0].answer.request, 4u);
  EXPECT_EQ(Lookup(kClient, Ask(1, {"a"})).at(0).answer.status, NameStatus::kNotFound);
  EXPECT_EQ(directory.names(), 2u);
}

TEST_F(NameDirectoryTest, KeepsItsLimits) {
  EXPECT_EQ(Publish(kServer, {Name("")}), NameStatus::kLimit);
  EXPECT_EQ(Publish(kServer, {Name(std::string(512, 'k'))}), NameStatus::kLimit);
  EXPECT_EQ(Publish(kServer, {Name("k", std::string(4097, 'v'))}), NameStatus::kLimit);
  EXPECT_EQ(Publish(kServer, {Name("k", std::string(300, 'v'))}), NameStatus::kLimit) << "bytes of a job";
  EXPECT_EQ(Publish(kServer, {Name("a"), Name("b"), Name("c"), Name("d"), Name("e")}), NameStatus::kLimit);
  EXPECT_EQ(Publish(kServer, {Name("a"), Name("b"), Name("c"), Name("d")}), NameStatus::kOk);
  EXPECT_EQ(Publish(kClient, {Name("e"), Name("f")}), NameStatus::kLimit) << "names of a user";
  EXPECT_EQ(Publish(kStranger, {Name("e"), Name("f")}), NameStatus::kOk) << "another user's";
  EXPECT_EQ(Lookup(kClient, Ask(1, {})).at(0).answer.status, NameStatus::kLimit);
  EXPECT_EQ(Lookup(kClient, Ask(1, {"a", "b", "c", "d"})).at(0).answer.status, NameStatus::kLimit);
  Lookup(kClient, Ask(1, {"x"}, true));
  Lookup(kClient, Ask(2, {"x"}, true));
  EXPECT_EQ(Lookup(kClient, Ask(3, {"x"}, true)).at(0).answer.status, NameStatus::kLimit);
  directory.StopWaiting(kClient.job, 1);
  EXPECT_TRUE(Lookup(kClient, Ask(3, {"x"}, true)).empty());
}

}  // namespace
}  // namespace msa
