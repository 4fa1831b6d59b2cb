// A job of N logical nodes on this machine, for tests of the PMIx host alone: one process with a PmixHost for
// each node, joined in a star to the first. It places, starts, spawns and ends tasks with no more policy than
// the tests need.
//
//   mini_job --directory DIR --shm DIR [--nodes N] [--topology XML] [--report] -n TASKS PROGRAM [ARG...]
//
// Its files go to the two directories, which are there. Exits with the highest code of its tasks, 128 + N for
// signal N. --report tells on stderr the time of the server's start and, for each namespace, how many of its
// ranks reached the server and finalised.

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include <fmt/ranges.h>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/base/clock.h"
#include "msa/pmix/collective.h"
#include "msa/pmix/data_store.h"
#include "msa/pmix/open_mpi_env.h"
#include "msa/pmix/pmix_host.h"

#include "mini_job_messages.h"

namespace msa::pmix {
namespace {

struct Options {
  std::uint32_t nodes = 1;
  std::uint32_t tasks = 1;
  std::string topology;
  bool report = false;
  std::vector<std::string> argv;
  std::string directory;  // of the job
  std::string shm;
};

std::string NodeName(std::uint32_t index) { return "mini" + std::to_string(index); }

class Node {
 public:
  Node(std::uint32_t index, Options options, std::map<std::uint32_t, UniqueFd> links)
      : index_(index), options_(std::move(options)), engine_({.self = index}), links_(std::move(links)) {}

  int Run() {
    loop_ = Must(EventLoop::Create());
    const std::string own = options_.directory + "/" + NodeName(index_);
    Must(MakeDirectory(own));
    Must(MakeDirectory(options_.shm + "/" + NodeName(index_)));
    for (auto& [peer, fd] : links_) {
      peers_[peer] = Must(FrameChannel::Create(*loop_, MakePlainStream(std::move(fd)),
                                               {.on_frame = [this](wire::Frame frame) { OnFrame(frame); },
                                                .on_closed = [this](Status) { loop_->Stop(); },
                                                .on_drained = {}}));
    }
    const SteadyTime before = SteadyNow();
    host_ = Must(PmixHost::Start({.nspace = fmt::format("mini-jobd.{}", getpid()),
                                  .hostname = NodeName(index_),
                                  .directory = own,
                                  .topology_xml = options_.topology,
                                  .on_event = {},
                                  .on_log = {}},
                                 *loop_, [this](Upcall upcall) { OnUpcall(std::move(upcall)); }));
    if (options_.report)
      fmt::print(stderr, "mini_job: {} init_us={}\n", NodeName(index_),
                 std::chrono::duration_cast<std::chrono::microseconds>(SteadyNow() - before).count());
    if (index_ == 0) {
      NamespaceMessage step{"step", {{options_.argv, {}, "", options_.tasks}}, {}, {}};
      for (std::uint32_t rank = 0; rank < options_.tasks; ++rank)
        step.rank_node.push_back(
            static_cast<std::uint32_t>(std::uint64_t{rank} * options_.nodes / options_.tasks));
      Launch(step, [](PmixStatus status) {
        if (status != kPmixSuccess) Die("the step could not be started: " + StatusText(status));
      });
    }
    Must(loop_->Run());
    host_.reset();
    return worst_;
  }

 private:
  [[noreturn]] static void Die(const std::string& why) {
    fmt::print(stderr, "mini_job: {}\n", why);
    std::_Exit(125);
  }
  static void Must(const Status& status) {
    if (!status.ok()) Die(status.ToString());
  }
  template <class T>
  static T Must(Result<T> result) {
    Must(result.status());
    return std::move(*result);
  }

  // ---- messages

  void Send(Envelope envelope) {
    envelope.from = index_;
    Route(envelope);
  }
  void Route(const Envelope& envelope) {
    if (envelope.to == index_) {
      loop_->Post([this, envelope] { Handle(envelope); });
      return;
    }
    peers_.at(index_ == 0 ? envelope.to : 0)->SendMessage(envelope);
  }
  void OnFrame(const wire::Frame& frame) {
    const Envelope envelope = Must(wire::Decode<Envelope>(frame.payload));
    if (envelope.to == index_) return Handle(envelope);
    Route(envelope);
  }
  void Ask(std::uint32_t to, Kind kind, std::string payload, std::function<void(Reply)> then) {
    const std::uint64_t id = next_id_++;
    asked_[id] = std::move(then);
    Send({0, to, kind, id, std::move(payload)});
  }
  void Answer(const Envelope& question, const Reply& reply) {
    Send({0, question.from, kAnswer, question.id, wire::Encode(reply)});
  }
  void Broadcast(Kind kind, const std::string& payload, std::function<void(PmixStatus)> all_done) {
    auto left = std::make_shared<std::uint32_t>(options_.nodes);
    auto worst = std::make_shared<PmixStatus>(kPmixSuccess);
    for (std::uint32_t node = 0; node < options_.nodes; ++node)
      Ask(node, kind, payload, [left, worst, all_done](const Reply& reply) {
        if (reply.status != kPmixSuccess) *worst = reply.status;
        if (--*left == 0) all_done(*worst);
      });
  }

  void Handle(const Envelope& envelope) {
    switch (envelope.kind) {
      case kAnswer: {
        auto then = std::move(asked_.at(envelope.id));
        asked_.erase(envelope.id);
        return then(Must(wire::Decode<Reply>(envelope.payload)));
      }
      case kCollective:
        return Apply(
            Must(engine_.FromPeer(envelope.from, Must(wire::Decode<CollectiveMessage>(envelope.payload)))));
      case kModex:
        return host_->LocalModex(Must(wire::Decode<TaskMessage>(envelope.payload)).proc,
                                 [this, envelope](PmixStatus status, const std::string& data) {
                                   Answer(envelope, {status, data, {}});
                                 });
      case kPublish:
      case kLookup:
      case kUnpublish:
        return OnStore(envelope);
      case kSpawn:
        return OnSpawn(envelope);
      case kAbort:
        return OnAbort(envelope);
      case kRegister:
        return OnRegister(envelope);
      case kStart:
        return Answer(envelope, {StartTasks(envelope.payload), "", {}});
      case kKill:
        return KillTasks(envelope.payload);
      case kForget:
        return host_->DeregisterNamespace(envelope.payload, [this, envelope] {
          Apply(engine_.ForgetNamespace(envelope.payload));
          known_.erase(envelope.payload);
          Answer(envelope, {});
        });
      case kExited:
        return OnExited(Must(wire::Decode<TaskMessage>(envelope.payload)));
      case kQuit:
        return loop_->Stop();
      default:
        Die(fmt::format("message of kind {}", envelope.kind));
    }
  }

  // ---- upcalls of the local clients

  void OnUpcall(Upcall upcall) {
    std::visit([this](auto& call) { On(call); }, upcall);
  }
  void On(ClientConnected& call) { tasks_[call.proc].connected = true; }
  void On(ClientFinalized& call) {
    tasks_[call.proc].finalized = true;
    call.reply(kPmixSuccess);
  }
  void On(Aborted& call) {
    Ask(0, kAbort, wire::Encode(TaskMessage{call.proc, call.exit_code, true, false}),
        [reply = call.reply](const Reply& answer) { reply(answer.status); });
  }
  void Collect(CollectiveKind kind, const std::vector<Proc>& procs, std::uint32_t timeout_s, std::string data,
               DataReply reply) {
    std::vector<std::uint32_t> participants;
    for (const Proc& proc : procs) {
      const auto known = known_.find(proc.nspace);
      if (known == known_.end()) return reply(kPmixErrNotFound, "");  // it has ended
      if (proc.rank == kRankWildcard)
        participants.insert(participants.end(), known->second.rank_node.begin(),
                            known->second.rank_node.end());
      else
        participants.push_back(known->second.rank_node.at(proc.rank));
    }
    const std::uint64_t id = next_id_++;
    collectives_[id] = std::move(reply);
    if (timeout_s > 0)
      (void)loop_->After(std::chrono::seconds(timeout_s), [this, id] { Apply(engine_.OnTimeout(id)); });
    Apply(engine_.LocalContribution({id, kind, procs, std::move(participants), std::move(data)}));
  }
  void On(Fence& call) {
    Collect(CollectiveKind::kFence, call.procs, call.timeout_s, std::move(call.data), call.reply);
  }
  void On(Connect& call) {
    Collect(CollectiveKind::kConnect, call.procs, call.timeout_s, "",
            [reply = call.reply](PmixStatus status, const std::string&) { reply(status); });
  }
  void On(Disconnect& call) {
    Collect(CollectiveKind::kDisconnect, call.procs, call.timeout_s, "",
            [reply = call.reply](PmixStatus status, const std::string&) { reply(status); });
  }
  void Apply(CollectiveEffects effects) {
    for (CollectiveEffect& effect : effects) {
      if (auto* send = std::get_if<SendToPeer>(&effect)) {
        Send({0, send->member, kCollective, 0, wire::Encode(send->message)});
        continue;
      }
      auto& complete = std::get<CollectiveComplete>(effect);
      auto reply = std::move(collectives_.at(complete.operation));
      collectives_.erase(complete.operation);
      reply(complete.status, std::move(complete.data));
    }
  }
  void On(DirectModex& call) {
    const auto known = known_.find(call.proc.nspace);
    if (known == known_.end() || call.proc.rank >= known->second.rank_node.size())
      return call.reply(kPmixErrNotFound, "");
    Ask(known->second.rank_node[call.proc.rank], kModex,
        wire::Encode(TaskMessage{call.proc, 0, false, false}),
        [reply = call.reply](const Reply& answer) { reply(answer.status, answer.data); });
  }
  void On(Publish& call) {
    Ask(0, kPublish,
        wire::Encode(StoreCall{call.proc, call.range, call.persistence, call.data, {}, false, 0}),
        [reply = call.reply](const Reply& answer) { reply(answer.status); });
  }
  void On(Lookup& call) {
    Ask(0, kLookup,
        wire::Encode(StoreCall{call.proc, call.range, {}, {}, call.keys, call.wait, call.timeout_s}),
        [reply = call.reply](const Reply& answer) {
          std::vector<std::pair<Proc, KeyValue>> values;
          for (const Reply::Value& value : answer.values) values.emplace_back(value.proc, value.value);
          reply(answer.status, std::move(values));
        });
  }
  void On(Unpublish& call) {
    Ask(0, kUnpublish, wire::Encode(StoreCall{call.proc, call.range, {}, {}, call.keys, false, 0}),
        [reply = call.reply](const Reply& answer) { reply(answer.status); });
  }
  void On(pmix::Spawn& call) {
    NamespaceMessage message;
    message.parent = call.proc;
    for (SpawnApp& app : call.apps) {
      if (options_.report)
        fmt::print(stderr, "mini_job: spawn argv={} maxprocs={} cwd='{}' hosts={} unknown={}\n", app.argv,
                   app.maxprocs, app.cwd, app.hosts, app.unknown);
      message.apps.push_back({app.argv, app.env, app.cwd, app.maxprocs});
    }
    Ask(0, kSpawn, wire::Encode(message),
        [reply = call.reply](const Reply& answer) { reply(answer.status, answer.data); });
  }

  // ---- the head: store, spawn, end

  void OnStore(const Envelope& envelope) {
    const StoreCall call = Must(wire::Decode<StoreCall>(envelope.payload));
    const DataStore::Caller caller{call.proc, envelope.from};
    StoreResult result;
    if (envelope.kind == kLookup) {
      const std::uint64_t id = next_id_++;
      lookups_[id] = envelope;
      DataStore::LookupRequest request{id, caller, call.keys, call.range, call.wait, {}};
      if (call.timeout_s > 0) {
        request.deadline = SteadyNow() + std::chrono::seconds(call.timeout_s);
        (void)loop_->After(std::chrono::seconds(call.timeout_s),
                           [this] { Settle(store_.OnTime(SteadyNow())); });
      }
      return Settle(store_.Lookup(request));
    }
    result = envelope.kind == kPublish ? store_.Publish(caller, call.range, call.persistence, call.data)
                                       : store_.Unpublish(caller, call.keys, call.range);
    Answer(envelope, {result.status, result.reason, {}});
    Settle(result);
  }
  void Settle(const StoreResult& result) {
    for (const LookupDone& done : result.done) {
      Reply reply{done.status, done.reason, {}};
      for (const auto& [proc, value] : done.values) reply.values.push_back({proc, value});
      Answer(lookups_.at(done.lookup), reply);
      lookups_.erase(done.lookup);
    }
  }
  void OnSpawn(const Envelope& envelope) {
    NamespaceMessage message = Must(wire::Decode<NamespaceMessage>(envelope.payload));
    message.nspace = fmt::format("spawn{}", ++spawns_);
    for (const AppMessage& app : message.apps)
      for (std::uint32_t i = 0; i < app.size; ++i)
        message.rank_node.push_back(static_cast<std::uint32_t>(message.rank_node.size()) % options_.nodes);
    for (const AppMessage& app : message.apps)
      if (const auto port = ParentPort(app.env)) store_.ExpectFrom(message.nspace, *port);
    Launch(message, [this, envelope, nspace = message.nspace](PmixStatus status) {
      Answer(envelope, {status, nspace, {}});
    });
  }
  void Launch(const NamespaceMessage& message, std::function<void(PmixStatus)> done) {
    running_[message.nspace] = message.rank_node.size();
    Broadcast(kRegister, wire::Encode(message), [this, nspace = message.nspace, done](PmixStatus registered) {
      if (registered != kPmixSuccess) return done(registered);
      Broadcast(kStart, nspace, done);
    });
  }
  void OnAbort(const Envelope& envelope) {
    const TaskMessage message = Must(wire::Decode<TaskMessage>(envelope.payload));
    worst_ = std::max(worst_, message.code);
    EndFailed(message.proc.nspace, message.connected);
    Answer(envelope, {});
  }
  // Kills what is left of the namespace. If the rank had joined, its parents are ended too: libpmix waits for
  // ever for the local ranks of a fence that lost their connection before it began. Not at once: where ranks
  // die while a fence is being answered, it answers twice, the second time from freed memory, on whose mutex
  // its thread then waits for ever (seen under the address sanitizer, one run of four).
  void EndFailed(const std::string& nspace, bool connected) {
    if (!aborted_.insert(nspace).second) return;
    (void)loop_->After(Millis(100), [this, nspace] {
      for (std::uint32_t node = 0; node < options_.nodes; ++node) Send({0, node, kKill, 0, nspace});
    });
    const std::string parent = known_.at(nspace).parent.nspace;
    if (connected && !parent.empty()) EndFailed(parent, true);
  }
  void OnExited(const TaskMessage& message) {
    const std::string& nspace = message.proc.nspace;
    auto& counts = counts_[nspace];
    counts.first += message.connected ? 1 : 0;
    counts.second += message.finalized ? 1 : 0;
    if (!aborted_.contains(nspace)) worst_ = std::max(worst_, message.code);
    Settle(store_.ProcEnded(message.proc));
    if (message.code != 0) EndFailed(nspace, message.connected);
    if (--running_.at(nspace) > 0) return;
    running_.erase(nspace);
    Settle(store_.NamespaceEnded(nspace, "namespace " + nspace + " has ended"));
    if (options_.report)
      fmt::print(stderr, "mini_job: {} connected={} finalized={}\n", nspace, counts.first, counts.second);
    Broadcast(kForget, nspace, [this](PmixStatus) {
      if (!running_.empty()) return;
      if (options_.report)
        fmt::print(stderr, "mini_job: left_entries={} waiting={}\n", store_.entries(), store_.waiting());
      for (std::uint32_t node = options_.nodes; node-- > 0;) Send({0, node, kQuit, 0, ""});
    });
  }

  // ---- tasks

  void OnRegister(const Envelope& envelope) {
    const NamespaceMessage message = Must(wire::Decode<NamespaceMessage>(envelope.payload));
    known_[message.nspace] = message;
    NamespaceInfo info{.nspace = message.nspace, .job_id = "1", .universe_size = options_.nodes * 4};
    info.tmpdir = options_.directory + "/" + NodeName(index_);
    info.parent_nspace = message.parent.nspace;
    info.parent_rank = message.parent.rank;
    std::map<std::uint32_t, std::uint32_t> place;  // node -> index among those with ranks
    for (const std::uint32_t node : message.rank_node) place.emplace(node, 0);
    for (auto& [node, at] : place) {
      at = static_cast<std::uint32_t>(info.nodes.size());
      info.nodes.push_back(NodeName(node));
    }
    for (const std::uint32_t node : message.rank_node) info.rank_node.push_back(place[node]);
    std::uint32_t first = 0;
    for (const AppMessage& app : message.apps) {
      info.apps.push_back({first, app.size, app.cwd, fmt::format("{}", fmt::join(app.argv, " "))});
      first += app.size;
    }
    host_->RegisterNamespace(info, NodeName(index_), {getuid(), getgid()},
                             [this, envelope](const Status& status) {
                               if (!status.ok()) fmt::print(stderr, "mini_job: {}\n", status.ToString());
                               Answer(envelope, {status.ok() ? kPmixSuccess : kPmixErr, "", {}});
                             });
  }

  PmixStatus StartTasks(const std::string& nspace) {
    const NamespaceMessage& message = known_.at(nspace);
    std::uint32_t rank = 0;
    for (const AppMessage& app : message.apps)
      for (std::uint32_t i = 0; i < app.size; ++i, ++rank)
        if (message.rank_node[rank] == index_) StartTask({nspace, rank}, app, message.rank_node.size());
    return kPmixSuccess;
  }

  void StartTask(const Proc& proc, const AppMessage& app, std::size_t world) {
    std::vector<std::string> env = CurrentEnvironment();
    const auto overlay = [&](const std::vector<std::string>& lines) {
      for (const std::string& line : lines)
        if (const auto equals = line.find('='); equals != std::string::npos)
          SetVariable(env, line.substr(0, equals), line.substr(equals + 1));
    };
    overlay(app.env);
    overlay(Must(host_->ClientEnvironment(proc)));
    env = OpenMpiEnvironment(std::move(env), {.shm_directory = options_.shm + "/" + NodeName(index_),
                                              .topology_xml = options_.topology,
                                              .world_size = static_cast<std::uint32_t>(world),
                                              .tasks_on_machine = static_cast<std::uint32_t>(world),
                                              .machine_cores = std::thread::hardware_concurrency(),
                                              .network = DetectNetwork()});
    auto handle = msa::Spawn(
        {.argv = app.argv, .env = env, .cwd = app.cwd.empty() ? "." : app.cwd, .out = 1, .err = 2});
    if (!handle.ok()) {
      fmt::print(stderr, "mini_job: {}\n", handle.status().ToString());
      return Send({0, 0, kExited, 0, wire::Encode(TaskMessage{proc, 127, false, false})});
    }
    Task& task = tasks_[proc];
    task.process = std::move(*handle);
    const int fd = task.process.pidfd.get();
    Must(loop_->Watch(fd, EPOLLIN, [this, proc, fd](std::uint32_t) {
      Task& ended = tasks_.at(proc);
      const auto status = ReapChild(ended.process.pid);
      if (!status) return;
      loop_->Unwatch(fd);
      const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
      const TaskMessage message{proc, code, ended.connected, ended.finalized};
      tasks_.erase(proc);
      const auto report = [this, message] {
        Send({0, 0, kExited, 0, wire::Encode(message)});
        if (killing_.contains(message.proc.nspace)) KillTasks(message.proc.nspace);
      };
      if (WIFSIGNALED(*status))
        AfterTurn(report);
      else
        report();
    }));
  }

  // One after the other, and each only after libpmix has seen the connection of the one before break. libpmix
  // 4.2.2 answers the local ranks that wait in a fence when one of them is lost, by an event, and frees the
  // fence's tracker when the last of them is: ranks that are lost in one turn of its loop leave that event
  // with freed memory, and its thread, or PMIx_server_finalize, crashes or waits for ever.
  void KillTasks(const std::string& nspace) {
    const auto next = tasks_.lower_bound({nspace, 0});
    if (next == tasks_.end() || next->first.nspace != nspace) return;
    killing_.insert(nspace);
    SignalProcess(next->second.process, SIGKILL);
  }
  // A round through libpmix's thread: its loop has turned since, and seen what had ended before.
  void AfterTurn(std::function<void()> then) {
    const std::string nspace = fmt::format("turn{}.{}", index_, ++turns_);
    NamespaceInfo info{.nspace = nspace, .job_id = "1", .nodes = {"elsewhere"}, .rank_node = {0}};
    info.tmpdir = options_.directory + "/" + NodeName(index_);
    info.apps.push_back({0, 1, "/", "turn"});
    host_->RegisterNamespace(info, NodeName(index_), {getuid(), getgid()},
                             [this, nspace, then = std::move(then)](const Status& status) {
                               Must(status);
                               host_->DeregisterNamespace(nspace, then);
                             });
  }

  struct Task {
    ProcessHandle process;
    bool connected = false;
    bool finalized = false;
  };
  std::uint32_t index_;
  Options options_;
  CollectiveEngine engine_;
  std::map<std::uint32_t, UniqueFd> links_;
  std::unique_ptr<EventLoop> loop_;
  std::map<std::uint32_t, std::unique_ptr<FrameChannel>> peers_;
  std::unique_ptr<PmixHost> host_;
  std::map<std::uint64_t, std::function<void(Reply)>> asked_;
  std::map<std::uint64_t, DataReply> collectives_;
  std::uint64_t next_id_ = 1;
  std::map<std::string, NamespaceMessage> known_;
  std::map<Proc, Task> tasks_;
  std::set<std::string> killing_;
  std::uint32_t turns_ = 0;
  // head only
  DataStore store_;
  std::map<std::uint64_t, Envelope> lookups_;
  std::map<std::string, std::size_t> running_;         // tasks not ended
  std::map<std::string, std::pair<int, int>> counts_;  // connected, finalised
  std::set<std::string> aborted_;
  std::uint32_t spawns_ = 0;
  std::int32_t worst_ = 0;
};

Options Parse(int argc, char** argv) {
  Options options;
  int at = 1;
  const auto value = [&] { return at + 1 < argc ? std::string(argv[++at]) : std::string("0"); };
  for (; at < argc && argv[at][0] == '-'; ++at) {
    const std::string name = argv[at];
    if (name == "--nodes") options.nodes = static_cast<std::uint32_t>(std::stoul(value()));
    if (name == "-n") options.tasks = static_cast<std::uint32_t>(std::stoul(value()));
    if (name == "--topology") options.topology = value();
    if (name == "--directory") options.directory = value();
    if (name == "--shm") options.shm = value();
    if (name == "--report") options.report = true;
  }
  options.argv.assign(argv + at, argv + argc);
  return options;
}

int Main(int argc, char** argv) {
  // As the job daemon: libpmix writes to ranks that may be gone.
  std::signal(SIGPIPE, SIG_IGN);
  Options options = Parse(argc, argv);
  if (options.argv.empty() || options.directory.empty() || options.shm.empty()) return 125;
  std::map<std::uint32_t, UniqueFd> links;
  std::vector<pid_t> members;
  for (std::uint32_t node = 1; node < options.nodes; ++node) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 125;
    const pid_t pid = fork();  // before any thread
    if (pid == 0) {
      links.clear();
      std::map<std::uint32_t, UniqueFd> own;
      own.emplace(0, UniqueFd(pair[1]));
      ::close(pair[0]);
      std::_Exit(Node(node, options, std::move(own)).Run());
    }
    ::close(pair[1]);
    links.emplace(node, UniqueFd(pair[0]));
    members.push_back(pid);
  }
  const int code = Node(0, options, std::move(links)).Run();
  for (const pid_t pid : members) waitpid(pid, nullptr, 0);
  return code;
}

}  // namespace
}  // namespace msa::pmix

int main(int argc, char** argv) { return msa::pmix::Main(argc, argv); }
