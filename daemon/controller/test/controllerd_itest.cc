// The real msa-controllerd over real sockets. Node daemons are played by FakeNode.

#include <fcntl.h>

#include <set>

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "msa/v1/job.grpc.pb.h"
#include "msa/v1/topology.grpc.pb.h"

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

class ControllerdTest : public ::testing::Test {
 protected:
  void Connect() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(16 << 20);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel =
        grpc::CreateCustomChannel(controller_.Address(), grpc::InsecureChannelCredentials(), arguments);
    jobs_ = v1::JobService::NewStub(channel);
    topology_ = v1::TopologyService::NewStub(channel);
  }
  void Start(const test::ControllerSettings& settings = {}) {
    controller_.Start(settings);
    Connect();
  }
  void Restart(const test::ControllerSettings& settings = {}) {
    controller_.Kill();
    Start(settings);
  }

  grpc::Status Submit(const v1::SubmitRequest& request, std::uint64_t* id = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1::SubmitReply reply;
    const grpc::Status status = jobs_->Submit(&context, request, &reply);
    if (id != nullptr) *id = reply.job_id();
    return status;
  }
  v1::Job GetJob(std::uint64_t id) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::Job job;
    const grpc::Status status = jobs_->GetJob(&context, request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }
  bool NodeIs(const std::string& name, v1::NodeState state) {
    grpc::ClientContext context;
    v1::ListNodesRequest request;
    request.add_names(name);
    v1::ListNodesReply reply;
    return topology_->ListNodes(&context, request, &reply).ok() && reply.nodes(0).state() == state;
  }

  ControllerProcess controller_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::TopologyService::Stub> topology_;
};

TEST_F(ControllerdTest, RunTellsWhereToAttachAndEndsWithTheFinalEvent) {
  Start();
  FakeNode node("cn0", controller_.Address(), FakeNode::Jobs::kFinish);
  ASSERT_TRUE(Eventually(kLimit, [&] { return NodeIs("cn0", v1::NODE_STATE_UP); }));
  grpc::ClientContext context;
  auto stream = jobs_->Run(&context, Request("t1"));
  std::vector<v1::JobEvent> events;
  v1::JobEvent event;
  while (stream->Read(&event)) events.push_back(event);
  const grpc::Status status = stream->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_GE(events.size(), 2u);
  EXPECT_TRUE(events.back().final());
  EXPECT_EQ(events.back().job().state(), v1::JOB_STATE_COMPLETED);
  bool attach = false;
  for (const auto& one : events) attach |= one.head_node() == "cn0" && one.attach_address() == "unix:/n/cn0";
  EXPECT_TRUE(attach);
  const auto launches = node.launches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].secret.size(), 64u);
  EXPECT_TRUE(launches[0].interactive);
  EXPECT_EQ(launches[0].user.uid, ::geteuid());
  EXPECT_EQ(launches[0].step.apps.at(0).argv.at(0), "true");
}

TEST_F(ControllerdTest, ATokenSubmitsOnceHoweverOftenItIsSent) {
  Start();
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  ASSERT_TRUE(Submit(Request("same"), &first).ok());
  ASSERT_TRUE(Submit(Request("same"), &second).ok());
  EXPECT_EQ(first, second);
  Restart();
  ASSERT_TRUE(Submit(Request("same"), &second).ok());
  EXPECT_EQ(first, second);
}

TEST_F(ControllerdTest, QueuedJobsRunExactlyOnceThoughItIsKilledThreeTimes) {
  Start();
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 20; ++i) {
    std::uint64_t id = 0;
    ASSERT_TRUE(Submit(Request("job" + std::to_string(i)), &id).ok());
    ids.insert(id);
    if (i == 7) Restart();
  }
  ASSERT_EQ(ids.size(), 20u);
  FakeNode node("cn0", controller_.Address(), FakeNode::Jobs::kFinish);
  ASSERT_TRUE(Eventually(kLimit, [&] { return !node.launches().empty(); }));
  Restart();
  ASSERT_TRUE(Eventually(kLimit, [&] { return node.launches().size() >= 4; }));
  Restart();
  for (const std::uint64_t id : ids) {
    EXPECT_TRUE(Eventually(kLimit, [&] { return GetJob(id).state() == v1::JOB_STATE_COMPLETED; }))
        << "job " << id;
    EXPECT_EQ(GetJob(id).incarnation(), 1u);
  }
  std::multiset<std::uint64_t> launched;
  for (const auto& launch : node.launches()) launched.insert(launch.job.value);
  EXPECT_EQ(launched, std::multiset<std::uint64_t>(ids.begin(), ids.end()));
}

TEST_F(ControllerdTest, ASubmitThatWasCommittedButNotAnsweredIsFoundAgainByItsToken) {
  Start({.environment = {"MSA_FAULT=controller.submit.after_commit=kill"}});
  EXPECT_EQ(Submit(Request("lost")).error_code(), grpc::StatusCode::UNAVAILABLE);
  (void)controller_.Wait();
  Start();
  std::uint64_t id = 0;
  ASSERT_TRUE(Submit(Request("lost"), &id).ok());
  EXPECT_EQ(id, 1u);
}

TEST_F(ControllerdTest, CancelsAJobWhoseOwnerHasGone) {
  Start();
  FakeNode node("cn0", controller_.Address(), FakeNode::Jobs::kHang);
  grpc::ClientContext context;
  auto stream = jobs_->Run(&context, Request("owned"));
  v1::JobEvent event;
  while (event.job().state() != v1::JOB_STATE_RUNNING) ASSERT_TRUE(stream->Read(&event));
  context.TryCancel();
  (void)stream->Finish();
  EXPECT_TRUE(
      Eventually(kLimit, [&] { return GetJob(event.job().id()).state() == v1::JOB_STATE_CANCELLED; }));
}

TEST_F(ControllerdTest, AnOwnerThatComesBackAfterARestartKeepsItsJob) {
  const test::ControllerSettings settings{.arguments = {"--owner-grace-ms", "5000"}};
  Start(settings);
  FakeNode node("cn0", controller_.Address(), FakeNode::Jobs::kHang);
  grpc::ClientContext first;
  grpc::ClientContext other;
  auto kept = jobs_->Run(&first, Request("kept"));
  auto left = jobs_->Run(&other, Request("left"));
  v1::JobEvent event;
  while (event.job().state() != v1::JOB_STATE_RUNNING) ASSERT_TRUE(kept->Read(&event));
  const std::uint64_t kept_id = event.job().id();
  event.Clear();
  while (event.job().state() != v1::JOB_STATE_RUNNING) ASSERT_TRUE(left->Read(&event));
  const std::uint64_t left_id = event.job().id();
  Restart(settings);
  EXPECT_EQ(kept->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  grpc::ClientContext again;
  auto stream = jobs_->Run(&again, Request("kept"));
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.job().id(), kept_id);
  EXPECT_TRUE(Eventually(kLimit, [&] { return GetJob(left_id).state() == v1::JOB_STATE_CANCELLED; }));
  EXPECT_EQ(GetJob(kept_id).state(), v1::JOB_STATE_RUNNING);
  again.TryCancel();
}

TEST_F(ControllerdTest, CancelEndsAPendingJobAtOnceAndTellsItsWatchers) {
  Start();
  std::uint64_t id = 0;
  ASSERT_TRUE(Submit(Request("p"), &id).ok());
  grpc::ClientContext watching;
  v1::WatchRequest watch;
  watch.set_job_id(id);
  auto stream = jobs_->Watch(&watching, watch);
  v1::JobEvent event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.job().state(), v1::JOB_STATE_PENDING);
  grpc::ClientContext context;
  v1::CancelJobRequest request;
  request.set_job_id(id);
  v1::CancelJobReply reply;
  ASSERT_TRUE(jobs_->CancelJob(&context, request, &reply).ok());
  EXPECT_EQ(reply.job().state(), v1::JOB_STATE_CANCELLED);
  while (!event.final()) ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.job().state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(stream->Finish().ok());
  grpc::ClientContext again;
  EXPECT_EQ(jobs_->CancelJob(&again, request, &reply).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ControllerdTest, DeliversASignalToTheHead) {
  Start();
  FakeNode node("cn0", controller_.Address(), FakeNode::Jobs::kHang);
  std::uint64_t id = 0;
  ASSERT_TRUE(Submit(Request("s"), &id).ok());
  ASSERT_TRUE(Eventually(kLimit, [&] { return GetJob(id).state() == v1::JOB_STATE_RUNNING; }));
  grpc::ClientContext context;
  v1::SignalJobRequest request;
  request.set_job_id(id);
  request.set_signal(SIGUSR1);
  v1::SignalJobReply reply;
  ASSERT_TRUE(jobs_->SignalJob(&context, request, &reply).ok());
  EXPECT_TRUE(Eventually(kLimit, [&] { return node.signals() == std::vector<int>{SIGUSR1}; }));
}

TEST_F(ControllerdTest, SaysWhatIsWrongWithARequest) {
  Start();
  v1::SubmitRequest unknown = Request("u");
  unknown.mutable_spec()->mutable_components(0)->set_module("boster");
  grpc::Status status = Submit(unknown);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_NE(status.error_message().find("'booster'"), std::string::npos) << status.error_message();
  v1::SubmitRequest many = Request("m");
  many.mutable_spec()->mutable_components(0)->set_min_nodes(12);
  many.mutable_spec()->mutable_components(0)->set_ntasks(12);
  status = Submit(many);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_NE(status.error_message().find("12"), std::string::npos) << status.error_message();
  v1::SubmitRequest policy = Request("k");
  policy.mutable_spec()->set_kill_policy(static_cast<v1::KillPolicy>(9));
  EXPECT_EQ(Submit(policy).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext context;
  v1::GetJobRequest get;
  get.set_job_id(99);
  v1::Job job;
  EXPECT_EQ(jobs_->GetJob(&context, get, &job).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControllerdTest, RefusesNodesThatDoNotBelong) {
  Start();
  FakeNode stranger("xx9", controller_.Address(), FakeNode::Jobs::kFinish);
  ASSERT_TRUE(Eventually(kLimit, [&] { return !stranger.refusal().ok(); }));
  EXPECT_EQ(stranger.refusal().code(), Code::kNotFound);
  EXPECT_EQ(stranger.registrations(), 0);
}

TEST_F(ControllerdTest, TakesANodeThatStaysAwayForDownAndTakesItBack) {
  Start({.arguments = {"--node-timeout-ms", "300", "--heartbeat-ms", "100"}});
  auto node = std::make_unique<FakeNode>("cn0", controller_.Address(), FakeNode::Jobs::kFinish);
  ASSERT_TRUE(Eventually(kLimit, [&] { return NodeIs("cn0", v1::NODE_STATE_UP); }));
  node.reset();
  ASSERT_TRUE(Eventually(kLimit, [&] { return NodeIs("cn0", v1::NODE_STATE_DOWN); }));
  node = std::make_unique<FakeNode>("cn0", controller_.Address(), FakeNode::Jobs::kFinish);
  EXPECT_TRUE(Eventually(kLimit, [&] { return NodeIs("cn0", v1::NODE_STATE_UP); }));
}

TEST_F(ControllerdTest, WarnsOfANodeWhoseClockIsOff) {
  Start();
  FakeNode node("cn0", controller_.Address(), FakeNode::Jobs::kFinish);
  const auto listed = [&] {
    grpc::ClientContext context;
    v1::ListNodesRequest request;
    request.add_names("cn0");
    v1::ListNodesReply reply;
    EXPECT_TRUE(topology_->ListNodes(&context, request, &reply).ok());
    return reply.nodes(0);
  };
  ASSERT_TRUE(Eventually(kLimit, [&] { return NodeIs("cn0", v1::NODE_STATE_UP); }));
  EXPECT_FALSE(listed().clock_off());
  node.clock_ahead_ms = 3'600'000;
  ASSERT_TRUE(Eventually(kLimit, [&] { return listed().clock_off(); }));
  EXPECT_GT(listed().clock_offset_ms(), 3'590'000);
  EXPECT_NE(listed().reason().find("ahead of the controller's"), std::string::npos) << listed().reason();
  node.clock_ahead_ms = 0;
  EXPECT_TRUE(Eventually(kLimit, [&] { return !listed().clock_off() && listed().reason().empty(); }));
}

TEST_F(ControllerdTest, ADrainOutlivesARestart) {
  Start();
  v1::DrainNodesRequest drain;
  drain.add_names("cn1");
  drain.set_reason("new memory");
  v1::ChangeNodesReply reply;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(topology_->DrainNodes(&context, drain, &reply).ok());
    EXPECT_TRUE(reply.nodes(0).drained());
  }
  Restart();
  grpc::ClientContext listing;
  v1::ListNodesRequest list;
  list.add_names("cn1");
  v1::ListNodesReply nodes;
  ASSERT_TRUE(topology_->ListNodes(&listing, list, &nodes).ok());
  EXPECT_TRUE(nodes.nodes(0).drained());
  EXPECT_EQ(nodes.nodes(0).reason(), "new memory");
  grpc::ClientContext resuming;
  v1::ResumeNodesRequest resume;
  resume.add_names("cn1");
  ASSERT_TRUE(topology_->ResumeNodes(&resuming, resume, &reply).ok());
  EXPECT_FALSE(reply.nodes(reply.nodes_size() - 1).drained());
  drain.set_names(0, "cn11");
  grpc::ClientContext wrong;
  EXPECT_EQ(topology_->DrainNodes(&wrong, drain, &reply).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControllerdTest, StatusTellsProcessAndCounts) {
  Start();
  grpc::ClientContext context;
  v1::StatusReply reply;
  ASSERT_TRUE(topology_->GetStatus(&context, {}, &reply).ok());
  EXPECT_EQ(reply.pid(), static_cast<std::uint32_t>(controller_.pid()));
  EXPECT_EQ(reply.system_name(), "test");
  EXPECT_EQ(reply.nodes(), 3u);
  EXPECT_EQ(reply.modules(), 2u);
  EXPECT_GT(reply.store_bytes(), 0);
  grpc::ClientContext listing;
  v1::ListModulesReply modules;
  ASSERT_TRUE(topology_->ListModules(&listing, {}, &modules).ok());
  ASSERT_EQ(modules.modules_size(), 2);
  EXPECT_EQ(modules.modules(1).name(), "booster");
}

TEST_F(ControllerdTest, ASecondControllerInTheDirectoryIsRefusedWithThePidOfTheFirst) {
  Start();
  SpawnSpec spec;
  spec.argv = {MSA_CONTROLLERD, "--dir", controller_.File("."), "--topology",
               controller_.File("topology.toml")};
  const UniqueFd out(::open(controller_.File("second").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  spec.err = out.get();
  const auto second = Spawn(spec);
  ASSERT_TRUE(second.ok());
  int status = 0;
  ASSERT_EQ(::waitpid(second->pid, &status, 0), second->pid);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_NE(ReadTail(controller_.File("second"), 4096).find(std::to_string(controller_.pid())),
            std::string::npos);
  EXPECT_TRUE(Submit(Request("first goes on")).ok());
}

TEST_F(ControllerdTest, AFullDiskRefusesJobsAndLosesNone) {
  Start({.file_size_kib = 1024});
  v1::SubmitRequest request = Request("");
  request.mutable_spec()->add_env("FILL=" + std::string(100 << 10, 'x'));
  std::uint64_t accepted = 0;
  grpc::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    request.set_submit_token("fill" + std::to_string(i));
    status = Submit(request);
    if (status.ok()) accepted += 1;
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_GT(accepted, 0u);
  Restart();
  grpc::ClientContext context;
  v1::ListJobsReply listed;
  ASSERT_TRUE(jobs_->ListJobs(&context, {}, &listed).ok());
  EXPECT_EQ(static_cast<std::uint64_t>(listed.jobs_size()), accepted);
  EXPECT_TRUE(Submit(Request("space again")).ok());
}

TEST_F(ControllerdTest, SigtermEndsItInOrderWhileClientsWait) {
  Start();
  FakeNode node("cn0", controller_.Address(), FakeNode::Jobs::kHang);
  grpc::ClientContext context;
  auto stream = jobs_->Run(&context, Request("waits"));
  v1::JobEvent event;
  while (event.job().state() != v1::JOB_STATE_RUNNING) ASSERT_TRUE(stream->Read(&event));
  const int status = controller_.Terminate();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << DescribeWaitStatus(status);
  while (stream->Read(&event)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  Start();
  EXPECT_EQ(GetJob(event.job().id()).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(ControllerdTest, AnOverlongMessageIsRefused) {
  Start();
  v1::SubmitRequest request = Request("long");
  request.mutable_spec()->add_env("A=" + std::string(17 << 20, 'x'));
  EXPECT_EQ(Submit(request).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  request = Request("env");
  request.mutable_spec()->add_env("A=" + std::string(2 << 20, 'x'));
  EXPECT_EQ(Submit(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Submit(Request("short")).ok());
}

}  // namespace
}  // namespace msa
