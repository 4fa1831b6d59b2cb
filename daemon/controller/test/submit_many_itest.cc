// Many submissions over one stream to the real msa-controllerd, and the stores of earlier builds.

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <set>

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "msa/v1/job.grpc.pb.h"

#include "controller_process.h"
#include "fake_node.h"
#include "submit_request.h"

namespace msa {
namespace {

using test::ControllerProcess;
using test::Eventually;
using test::FakeNode;
using test::Request;

constexpr Millis kLimit{30'000};

class SubmitManyTest : public ::testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::SubmitRequest, v1::SubmitReply>;

  void Start(const test::ControllerSettings& settings = {}) {
    controller_.Start(settings);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(16 << 20);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // Answers that nobody reads fill 64 KiB of the client, not the megabytes that gRPC would grow to.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    jobs_ = v1::JobService::NewStub(
        grpc::CreateCustomChannel(controller_.Address(), grpc::InsecureChannelCredentials(), arguments));
  }
  void Restart(const test::ControllerSettings& settings = {}) {
    controller_.Kill();
    Start(settings);
  }

  static std::vector<v1::SubmitRequest> Requests(int count, const std::string& prefix) {
    std::vector<v1::SubmitRequest> out;
    for (int i = 0; i < count; ++i) out.push_back(Request(prefix + std::to_string(i)));
    return out;
  }

  // Sends all and reads answers until the stream ends; each answer by its token. `status` of the stream.
  std::map<std::string, v1::SubmitReply> SubmitAll(const std::vector<v1::SubmitRequest>& requests,
                                                   grpc::Status* status) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    const auto stream = jobs_->SubmitMany(&context);
    std::thread writer([&] {
      for (const v1::SubmitRequest& request : requests)
        if (!stream->Write(request)) return;
      stream->WritesDone();
    });
    std::map<std::string, v1::SubmitReply> replies;
    v1::SubmitReply reply;
    while (stream->Read(&reply))
      EXPECT_TRUE(replies.emplace(reply.submit_token(), reply).second)
          << reply.submit_token() << " is answered twice";
    writer.join();
    *status = stream->Finish();
    return replies;
  }

  // The second half once the first is answered: two commits at least, where one could take all that has come.
  std::map<std::string, v1::SubmitReply> SubmitInHalves(const std::vector<v1::SubmitRequest>& requests,
                                                        grpc::Status* status) {
    const auto middle = requests.begin() + static_cast<std::ptrdiff_t>(requests.size() / 2);
    auto replies = SubmitAll({requests.begin(), middle}, status);
    if (status->ok()) replies.merge(SubmitAll({middle, requests.end()}, status));
    return replies;
  }

  std::vector<v1::Job> List(v1::ListJobsRequest request = {}) {
    grpc::ClientContext context;
    request.set_limit(10000);
    v1::ListJobsReply reply;
    const grpc::Status status = jobs_->ListJobs(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {reply.jobs().begin(), reply.jobs().end()};
  }
  std::set<std::uint64_t> Ids() {
    std::set<std::uint64_t> ids;
    for (const v1::Job& job : List()) ids.insert(job.id());
    return ids;
  }

  ControllerProcess controller_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
};

TEST_F(SubmitManyTest, AnswersEachAndWhatIsWrongWithSomeHurtsNoOther) {
  Start();
  auto requests = Requests(300, "t");
  requests[7].mutable_spec()->mutable_components(0)->set_module("boster");
  requests[8].mutable_spec()->set_kill_policy(static_cast<v1::KillPolicy>(9));
  requests[9].clear_submit_token();
  grpc::Status status;
  const auto replies = SubmitAll(requests, &status);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(replies.size(), 300u);
  EXPECT_EQ(replies.at("t7").code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_NE(replies.at("t7").error().find("'booster'"), std::string::npos) << replies.at("t7").error();
  EXPECT_EQ(replies.at("t8").code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(replies.at("").code(), grpc::StatusCode::INVALID_ARGUMENT);
  std::set<std::uint64_t> ids;
  for (const auto& [token, reply] : replies)
    if (reply.code() == 0) ids.insert(reply.job_id());
  EXPECT_EQ(ids.size(), 297u);
  EXPECT_EQ(Ids(), ids);
}

TEST_F(SubmitManyTest, WhatWasAnsweredIsOnDisk) {
  Start();
  grpc::Status status;
  const auto replies = SubmitAll(Requests(200, "d"), &status);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(replies.size(), 200u);
  Restart();
  std::set<std::uint64_t> ids;
  for (const auto& [token, reply] : replies) ids.insert(reply.job_id());
  EXPECT_EQ(Ids(), ids);
}

TEST_F(SubmitManyTest, AControllerThatIsKilledTakesWhatIsSentAgainOnce) {
  Start({.environment = {"MSA_FAULT=controller.submit.after_commit=kill@2"}});
  const auto requests = Requests(500, "k");
  grpc::Status status;
  const auto before = SubmitInHalves(requests, &status);
  ASSERT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_LT(before.size(), 500u);
  (void)controller_.Wait();
  Start();
  const auto after = SubmitAll(requests, &status);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(after.size(), 500u);
  for (const auto& [token, reply] : before) EXPECT_EQ(after.at(token).job_id(), reply.job_id()) << token;
  EXPECT_EQ(Ids().size(), 500u);
}

TEST_F(SubmitManyTest, AFailedCommitRefusesThoseThatSharedItAndTheyMayBeSentAgain) {
  Start({.environment = {"MSA_FAULT=controller.commit.before=fail@2"}});
  const auto requests = Requests(500, "f");
  grpc::Status status;
  const auto replies = SubmitInHalves(requests, &status);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(replies.size(), 500u);
  std::set<std::uint64_t> taken;
  std::size_t refused = 0;
  for (const auto& [token, reply] : replies) {
    if (reply.code() == 0) {
      taken.insert(reply.job_id());
      continue;
    }
    ++refused;
    EXPECT_EQ(reply.code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << reply.error();
    EXPECT_NE(reply.error().find("the job is not queued"), std::string::npos) << reply.error();
  }
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(Ids(), taken) << "a refused job is listed, or one that was taken is not";
  Restart();
  EXPECT_EQ(Ids(), taken) << "a refused job is on disk, or one that was taken is not";
  const auto again = SubmitAll(requests, &status);
  for (const auto& [token, reply] : again) EXPECT_EQ(reply.code(), 0) << reply.error();
  EXPECT_EQ(Ids().size(), 500u);
}

TEST_F(SubmitManyTest, AClientThatTakesNoAnswersIsReadNoFurther) {
  Start();
  constexpr int kMany = 12000;
  grpc::ClientContext context;
  const auto stream = jobs_->SubmitMany(&context);
  std::atomic<int> written = 0;
  std::thread writer([&] {
    const std::string long_token(50, 'x');
    for (int i = 0; i < kMany; ++i) {
      if (!stream->Write(Request(long_token + std::to_string(i)))) return;
      ++written;
    }
    stream->WritesDone();
  });
  // Until it stands still for two seconds.
  std::size_t known = 0;
  SteadyTime since = SteadyNow();
  EXPECT_TRUE(Eventually(Millis(60000), [&] {
    v1::ListJobsRequest request;
    const std::size_t now = List(request).size();
    if (now != known) since = SteadyNow();
    known = now;
    return known > 0 && SteadyNow() - since > Millis(2000);
  }));
  EXPECT_GE(known, 1024u);
  EXPECT_LT(known, static_cast<std::size_t>(kMany)) << "answers that nobody takes pile up in the controller";
  int answers = 0;
  v1::SubmitReply reply;
  while (stream->Read(&reply)) answers += reply.code() == 0 ? 1 : 0;
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers, kMany);
  EXPECT_EQ(written, kMany);
}

TEST_F(SubmitManyTest, ADaemonThatIsToldToEndSaysSoAndTheRestIsSentAgain) {
  Start();
  grpc::ClientContext context;
  const auto stream = jobs_->SubmitMany(&context);
  ASSERT_TRUE(stream->Write(Request("one")));
  v1::SubmitReply reply;
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_EQ(reply.code(), 0);
  EXPECT_EQ(controller_.Terminate(), 0);
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  Start();
  grpc::Status status;
  const auto replies = SubmitAll({Request("one"), Request("two")}, &status);
  EXPECT_EQ(replies.at("one").job_id(), reply.job_id());
  EXPECT_EQ(Ids().size(), 2u);
}

TEST_F(SubmitManyTest, EndedJobsAreListedByStateNameAndTimeWithTheirNamespaces) {
  Start();
  FakeNode node("cn0", controller_.Address(), FakeNode::Jobs::kFinish);
  auto named = Request("n1");
  named.mutable_spec()->set_name("special");
  grpc::Status status;
  (void)SubmitAll({named, Request("n2")}, &status);
  v1::ListJobsRequest request;
  request.set_ended(true);
  ASSERT_TRUE(Eventually(kLimit, [&] {
    request.add_states(v1::JOB_STATE_COMPLETED);
    return List(request).size() == 2;
  }));
  request.set_name("special");
  request.set_namespaces(true);
  std::vector<v1::Job> found = List(request);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name(), "special");
  EXPECT_FALSE(found[0].has_spec());
  request.set_since_ms(found[0].ended_at_ms() + 1);
  EXPECT_TRUE(List(request).empty());
  request.clear_since_ms();
  request.set_until_ms(found[0].submitted_at_ms());
  EXPECT_TRUE(List(request).empty());
}

TEST_F(SubmitManyTest, AStoreOfAnEarlierBuildIsTakenUpAndTheLogSaysSo) {
  const std::string make =
      "python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())' " +
      controller_.File("state.db") + " <" MSA_STORE_DATA "/schema1.sql";
  ASSERT_EQ(::system(make.c_str()), 0) << make;
  Start();
  EXPECT_NE(controller_.Log().find("from schema version 1 to 3"), std::string::npos) << controller_.Log();
  v1::ListJobsRequest request;
  request.set_ended(true);
  const std::vector<v1::Job> jobs = List(request);
  ASSERT_EQ(jobs.size(), 6u);
  EXPECT_EQ(jobs[1].name(), "bad");
  EXPECT_EQ(jobs[1].exit().code(), 3);
  EXPECT_EQ(jobs[1].ended_at_ms(), 1795278410962);
}

}  // namespace
}  // namespace msa
