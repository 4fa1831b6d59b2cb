#include "jobd_harness.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/support/run_until.h"

extern char** environ;

namespace msa::jobd {
namespace {

constexpr char kSecret[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

}  // namespace

JobdHarness::JobdHarness(std::vector<NodeSpec> nodes) {
  loop_ = std::move(*EventLoop::Create());
  for (NodeSpec& spec : nodes) {
    auto node = std::make_unique<Node>();
    node->spec = spec;
    node->socket = directory_ / (spec.name + ".sock");
    if (!spec.spare) {
      node->index = next_index_++;
      node->in_job = true;
    }
    order_.push_back(spec.name);
    std::filesystem::create_directory(shm_ / spec.name);
    nodes_[spec.name] = std::move(node);
  }
  head_ = order_.front();
}

JobdHarness::~JobdHarness() {
  for (auto& [name, node] : nodes_) {
    node->channel.reset();
    if (node->pid <= 0) continue;
    ::kill(node->pid, SIGKILL);
    ::waitpid(node->pid, nullptr, 0);
  }
}

void JobdHarness::Listen(Node& node) {
  node.listener = std::move(*ListenUnix(node.socket));
  ASSERT_TRUE(
      loop_->Watch(node.listener.get(), EPOLLIN, [this, &node](std::uint32_t) { Accept(node); }).ok());
}

void JobdHarness::Accept(Node& node) {
  auto fd = AcceptUnix(node.listener.get());
  if (!fd.ok() || !*fd) return;
  FrameChannel::Handlers handlers;
  handlers.on_frame = [this, &node](wire::Frame frame) { OnFrame(node, frame); };
  handlers.on_closed = [](const Status&) {};
  node.channel =
      std::move(*FrameChannel::Create(*loop_, MakePlainStream(std::move(*fd)), std::move(handlers)));
}

void JobdHarness::StartJobd(Node& node) {
  node.hello.reset();
  node.run_directory = directory_ / fmt::format("{}-w{}", node.spec.name, ++starts_);
  const std::vector<std::string> words = {
      MSA_TEST_JOBD,     "--node",           node.spec.name,        "--noded",           node.socket,
      "--directory",     node.run_directory, "--trampoline",        MSA_TEST_TRAMPOLINE, "--topology-xml",
      MSA_TEST_TOPOLOGY, "--shm-directory",  shm_ / node.spec.name, "--system",          directory_.path(),
      "--srun",          MSA_TEST_SRUN,      "--companion",         MSA_TEST_COMPANION};
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string log = directory_ / (node.spec.name + ".log");
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::setenv("MSA_JOBD_COOKIE", "biscuit", 1);
  ::setenv("MSA_TEST_DIRECTORY", directory_.path().c_str(), 1);  // for the srun that it may start
  const int rc = ::posix_spawn(&node.pid, MSA_TEST_JOBD, &actions, nullptr, argv.data(), environ);
  ::unsetenv("MSA_JOBD_COOKIE");
  posix_spawn_file_actions_destroy(&actions);
  ASSERT_EQ(rc, 0);
}

void JobdHarness::WarmUp() {
  for (auto& [name, node] : nodes_) {
    if (!node->listener) Listen(*node);
    StartJobd(*node);
  }
  ASSERT_TRUE(Until([&] {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [](const auto& it) { return it.second->hello.has_value(); });
  })) << "job daemons did not come";
}

wire::Member JobdHarness::MemberOf(const Node& node) const {
  wire::Member member;
  member.index = node.index;
  member.node = node.spec.name;
  member.module = ModuleId(node.spec.module_id);
  member.module_name = node.spec.module;
  member.module_kind = node.spec.module;
  for (std::uint16_t i = 0; i < node.spec.cores; ++i) member.cores.push_back(i);
  member.address = "unix:" + directory_ / (node.spec.name + ".j");
  member.grant = GrantId(node.grant);
  member.oversubscribed = true;
  return member;
}

std::vector<wire::Member> JobdHarness::Members() const {
  std::vector<wire::Member> members;
  for (const std::string& name : order_)
    if (nodes_.at(name)->in_job) members.push_back(MemberOf(*nodes_.at(name)));
  return members;
}

void JobdHarness::MakeComponents(const RunSpec& spec) {
  launch_.mode = spec.mode;
  launch_.script = spec.script;
  if (spec.mode == wire::JobMode::kStep) return;
  for (const wire::Member& member : launch_.members) {
    if (launch_.components.empty() || launch_.components.back().module != member.module_name)
      launch_.components.push_back({member.module_name, 0, 0, 1, {}});
    wire::PlacedComponent& component = launch_.components.back();
    component.shares.push_back({member.index, member.cores, static_cast<std::uint32_t>(member.cores.size())});
    component.ntasks += component.shares.back().tasks;
  }
  for (std::size_t i = 0; i < spec.component_tasks.size(); ++i) {
    launch_.components[i].ntasks = spec.component_tasks[i];
    std::uint32_t left = spec.component_tasks[i];
    for (wire::ComponentShare& share : launch_.components[i].shares)
      left -= share.tasks = std::min<std::uint32_t>(left, static_cast<std::uint32_t>(share.cores.size()));
  }
  wire::StepSpec& step = launch_.step;
  step.step = wire::kBatchStep;
  step.nspace = "msa.7.1.batch";
  if (spec.mode == wire::JobMode::kAlloc) {
    step.apps.clear();
    step.rank_member.clear();
  }
}

void JobdHarness::Launch(const RunSpec& spec) {
  launch_.job = JobId(7);
  launch_.incarnation = Incarnation(1);
  launch_.epoch = Epoch(epoch_);
  launch_.secret = kSecret;
  launch_.user = {::geteuid(), ::getegid()};
  launch_.user_name = "somebody";
  launch_.job_name = "test";
  launch_.interactive = spec.interactive;
  launch_.slurms = spec.slurms;
  launch_.members = Members();
  wire::StepSpec& step = launch_.step;
  step.nspace = "msa.7.1.0";
  step.mpi_library = false;  // what the job daemon does for programs without it; with it: tests/e2e
  step.apps = spec.apps;
  std::uint32_t ranks = 0;
  for (std::uint32_t i = 0; i < step.apps.size(); ++i) {
    step.apps[i].component = i;
    ranks += step.apps[i].ntasks;
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    step.rank_member.push_back(spec.rank_node.empty() ? 0 : nodes_.at(spec.rank_node.at(rank))->index);
  for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH", "ASAN_OPTIONS"})
    if (const char* value = ::getenv(name)) step.env.push_back(std::string(name) + "=" + value);
  step.env.insert(step.env.end(), spec.env.begin(), spec.env.end());
  step.cwd = spec.cwd.empty() ? directory_.path() : spec.cwd;
  step.stdio = spec.stdio;
  step.kill_policy = spec.kill_policy;
  MakeComponents(spec);
  launched_at = std::chrono::steady_clock::now();
  LaunchAgain();
  if (spec.attach) Attach({spec.interactive, 0, spec.wants_stdin});
}

void JobdHarness::LaunchAgain() {
  for (const wire::Member& member : launch_.members) {
    wire::LaunchJob mine = launch_;
    mine.self_index = member.index;
    mine.head_index = nodes_.at(head_)->index;
    nodes_.at(member.node)->channel->SendMessage(mine);
  }
}

void JobdHarness::Run(const RunSpec& spec) {
  WarmUp();
  Launch(spec);
  ASSERT_TRUE(UntilOver()) << "the job did not end; notices:\n" << Notices() << "\noutput:\n" << AllOut();
}

bool JobdHarness::UntilOver(std::chrono::seconds limit) {
  return Until(
      [&] {
        return exit.has_value() && std::none_of(nodes_.begin(), nodes_.end(), [](const auto& it) {
                 return it.second->in_job && it.second->pid > 0;
               });
      },
      limit);
}

bool JobdHarness::Until(const std::function<bool()>& done, std::chrono::seconds limit) {
  return support::RunUntil(*loop_, limit, [&] {
    Reap();
    return done();
  });
}

void JobdHarness::Reap() {
  for (auto& [name, node] : nodes_) {
    int status = 0;
    if (node->pid <= 0 || ::waitpid(node->pid, &status, WNOHANG) != node->pid) continue;
    node->pid = -1;
    if (status != 0) bad_ends_ += fmt::format("{}: {}\n", name, DescribeWaitStatus(status));
  }
}

// ------------------------------------------------------------------------------------------ frames

void JobdHarness::OnFrame(Node& node, const wire::Frame& frame) {
  if (frame.id != 0) return OnSessionFrame(frame);
  switch (frame.type) {
    case wire::JobdHello::kType: {
      node.hello = *wire::Decode<wire::JobdHello>(frame.payload);
      EXPECT_EQ(node.hello->cookie, "biscuit");
      node.channel->SendMessage(wire::JobdWelcome{});
      return;
    }
    case wire::JobStarted::kType:
      if (!started) started_at = std::chrono::steady_clock::now();
      started = true;
      return;
    case wire::NamespaceReport::kType:
      return reports.push_back(*wire::Decode<wire::NamespaceReport>(frame.payload));
    case wire::GrantAsk::kType:
      return OnGrantAsk(*wire::Decode<wire::GrantAsk>(frame.payload));
    case wire::GrantRelease::kType:
      return OnRelease(wire::Decode<wire::GrantRelease>(frame.payload)->grant.value);
    case wire::GrantWithdraw::kType:
      return;  // its grant, if any, is released
    case wire::NamePublish::kType:
      return;  // what the job publishes: no other job is here
    case wire::NamFromTask::kType:
      return nam_asks.push_back(*wire::Decode<wire::NamFromTask>(frame.payload));
    case wire::NamTaskGone::kType:
      return nam_gone.push_back(*wire::Decode<wire::NamTaskGone>(frame.payload));
    case wire::CompanionReport::kType:
      return companions.push_back(*wire::Decode<wire::CompanionReport>(frame.payload));
    case wire::MemberFailed::kType:
      return failures.push_back(*wire::Decode<wire::MemberFailed>(frame.payload));
    case wire::JobExit::kType:
      exit = *wire::Decode<wire::JobExit>(frame.payload);
      if (!ack_exit) return;
      node.channel->SendMessage(wire::ExitAck{});
      for (auto& [name, other] :
           nodes_)  // the controller's QuitJob reaches the others through their node daemons
        if (other.get() != &node && other->in_job && other->channel != nullptr)
          other->channel->SendMessage(wire::JobdQuit{"job is over"});
      return;
    default:
      ADD_FAILURE() << "unexpected frame type " << frame.type;
  }
}

void JobdHarness::OnSessionFrame(const wire::Frame& frame) {
  constexpr std::uint16_t kSessionOver = 0x04ff;
  std::uint64_t seq = 0;
  switch (frame.type) {
    case wire::Output::kType:
      records.push_back(*wire::Decode<wire::Output>(frame.payload));
      seq = records.back().seq;
      break;
    case wire::Notice::kType:
      notices.push_back(*wire::Decode<wire::Notice>(frame.payload));
      seq = notices.back().seq;
      break;
    case wire::SessionEnd::kType:
      end = *wire::Decode<wire::SessionEnd>(frame.payload);
      ends[frame.id] = *end;
      seq = end->seq;
      break;
    case wire::StepStatus::kType: {
      const auto status = *wire::Decode<wire::StepStatus>(frame.payload);
      if (status.running)
        running.insert(frame.id);
      else
        waits[frame.id] = status.reason;
      return;
    }
    case wire::InputAck::kType:
      return input_acks.push_back(*wire::Decode<wire::InputAck>(frame.payload));
    case kSessionOver:
      ended_sessions.insert(frame.id);
      return;
    default:
      ADD_FAILURE() << "unexpected session frame type " << frame.type;
      return;
  }
  last_seq = seq;
  if (ack_output) ToSession(frame.id, wire::OutputAck{seq});
}

void JobdHarness::TellMembers(const std::string& reason) {
  const wire::MembersChanged changed{Epoch(++epoch_), Members(), reason};
  for (auto& [name, node] : nodes_)
    if (node->in_job && node->channel != nullptr) node->channel->SendMessage(changed);
}

void JobdHarness::OnGrantAsk(const wire::GrantAsk& ask) {
  if (!answered_.insert(ask.request).second) return;
  asks.push_back(ask);
  wire::GrantAnswer answer;
  answer.request = ask.request;
  for (const std::string& name : order_) {
    Node& node = *nodes_.at(name);
    const bool wanted =
        ask.nodes.empty() || std::find(ask.nodes.begin(), ask.nodes.end(), name) != ask.nodes.end();
    if (!node.spec.spare || node.in_job || !wanted || node.spec.cores < ask.slots || node.pid <= 0) continue;
    node.in_job = true;
    node.index = next_index_++;
    node.grant = next_grant_++;
    TellMembers({});
    wire::LaunchJob launch = launch_;
    launch.epoch = Epoch(epoch_);
    launch.members = Members();
    launch.self_index = node.index;
    launch.head_index = nodes_.at(head_)->index;
    launch.has_step = false;
    node.channel->SendMessage(launch);
    answer.grant = GrantId(node.grant);
    answer.epoch = Epoch(epoch_);
    answer.members = {node.index};
    for (const wire::Member& member : launch.members)
      if (member.index == node.index) answer.shares = {{node.index, member.cores}};
    break;
  }
  if (answer.grant.value == 0) answer.reason = fmt::format("no free node has {} slots", ask.slots);
  ToHead(answer);
}

void JobdHarness::OnRelease(std::uint64_t grant) {
  for (auto& [name, node] : nodes_) {
    if (node->grant != grant || !node->in_job) continue;
    releases.push_back(grant);
    node->channel->SendMessage(wire::JobdQuit{"released"});
    node->in_job = false;
    node->grant = 0;
    TellMembers({});
  }
}

void JobdHarness::DropNode(const std::string& name, const std::string& reason) {
  nodes_.at(name)->in_job = false;
  TellMembers(reason);
}

// ------------------------------------------------------------------------------------------ sessions, faults

std::uint64_t JobdHarness::Attach(const wire::AttachOpen& open) {
  const std::uint64_t session = next_session_++;
  ToSession(session, open);
  return session;
}

std::uint64_t JobdHarness::OpenStep(const wire::StepOpen& open) {
  const std::uint64_t session = next_session_++;
  ToSession(session, open);
  return session;
}

void JobdHarness::ToSession(std::uint64_t session, std::uint16_t type, const std::string& payload) {
  nodes_.at(head_)->channel->Send(wire::Pack(type, session, payload));
}

void JobdHarness::CloseSession(std::uint64_t session) { ToSession(session, 0x04ff, {}); }

void JobdHarness::KillNoded(const std::string& name) {
  Node& node = *nodes_.at(name);
  loop_->Unwatch(node.listener.get());
  node.listener.reset();
  ::unlink(node.socket.c_str());
  node.channel.reset();
  node.hello.reset();
}

void JobdHarness::ReviveNoded(const std::string& name) { Listen(*nodes_.at(name)); }

void JobdHarness::KillJobd(const std::string& name, int signal) { ::kill(nodes_.at(name)->pid, signal); }
bool JobdHarness::JobdAlive(const std::string& name) const { return nodes_.at(name)->pid > 0; }
pid_t JobdHarness::JobdPid(const std::string& name) const { return nodes_.at(name)->pid; }

// ------------------------------------------------------------------------------------------ what was seen

namespace {

std::string Joined(const std::vector<wire::Output>& records, std::uint32_t rank, std::uint32_t spawn,
                   wire::Stream stream) {
  std::string out;
  for (const wire::Output& record : records)
    if (record.rank.value == rank && record.spawn == spawn && record.stream == stream) out += record.data;
  return out;
}

}  // namespace

std::string JobdHarness::Out(std::uint32_t rank, std::uint32_t spawn) const {
  return Joined(records, rank, spawn, wire::Stream::kOut);
}
std::string JobdHarness::Err(std::uint32_t rank, std::uint32_t spawn) const {
  return Joined(records, rank, spawn, wire::Stream::kErr);
}

std::string JobdHarness::AllOut() const {
  std::string out;
  for (const wire::Output& record : records) out += record.data;
  return out;
}

std::string JobdHarness::Notices() const {
  std::string out;
  for (const wire::Notice& notice : notices) out += notice.text + "\n";
  return out;
}

std::string JobdHarness::Logs() const {
  std::string out;
  for (const std::string& name : order_) {
    std::ifstream log(directory_ / (name + ".log"));
    std::stringstream text;
    text << log.rdbuf();
    out += name + ":\n" + text.str();
  }
  return out;
}

std::string JobdHarness::RunDirectory(const std::string& node) const {
  return nodes_.at(node)->run_directory;
}
std::string JobdHarness::ShmDirectory() const { return shm_.path(); }

}  // namespace msa::jobd
