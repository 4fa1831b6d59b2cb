#pragma once
// The controller with a store in memory and an outlet that records what goes out. Invariants are checked
// after every event.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "msa/base/wire.h"
#include "msa/job/controller.h"

namespace msa::job_test {

inline const UserIdentity kAda{1000, 1000};
inline const UserIdentity kBob{1001, 1001};
inline const UserIdentity kRoot{0, 0};
inline constexpr std::uint32_t kOperator = 990;

// cn[0-1] of 4 cores, bn[0-1] of 8, dn0 of 4.
inline SystemTopology Small() {
  SystemTopology t;
  t.system_name = "small";
  t.modules = {
      {ModuleId(0), "cluster", "cluster"}, {ModuleId(1), "booster", "booster"}, {ModuleId(2), "dam", "dam"}};
  const auto add = [&](const char* name, std::uint32_t module, std::uint32_t cores) {
    t.nodes.push_back({.name = name, .module = ModuleId(module), .cores = cores, .synthetic = true});
  };
  add("cn0", 0, 4);
  add("cn1", 0, 4);
  add("bn0", 1, 8);
  add("bn1", 1, 8);
  add("dn0", 2, 4);
  return t;
}

// What a store would hold after the commits.
class MemoryStore {
 public:
  void Apply(const Effect& effect) {
    if (const auto* put = std::get_if<effect::PutJob>(&effect)) {
      state_.last_job = std::max(state_.last_job, put->record.id);
      jobs_[put->record.id] = wire::Encode(put->record);
    } else if (const auto* put = std::get_if<effect::PutNode>(&effect)) {
      nodes_[put->record.name] = put->record;
    } else if (const auto* put = std::get_if<effect::PutGrant>(&effect)) {
      state_.last_grant = std::max(state_.last_grant, put->record.id);
      grants_[put->record.id] = put->record;
    } else if (const auto* gone = std::get_if<effect::DeleteJob>(&effect)) {
      jobs_.erase(gone->job);
    } else if (const auto* gone = std::get_if<effect::DeleteGrant>(&effect)) {
      grants_.erase(gone->grant);
    } else {
      ApplyNam(effect);
    }
  }
  StoredState Load() const {
    StoredState state = state_;
    for (const auto& [id, blob] : jobs_) {
      wire::Decoder decoder(blob);
      state.jobs.emplace_back().Fields(decoder);
      EXPECT_TRUE(decoder.ok());
    }
    for (const auto& [name, node] : nodes_) state.nodes.push_back(node);
    for (const auto& [id, grant] : grants_) state.grants.push_back(grant);
    for (const auto& [uuid, blob] : regions_) Read(blob, state.nam.regions.emplace_back());
    for (const auto& [id, blob] : leases_) Read(blob, state.nam.leases.emplace_back());
    return state;
  }
  std::size_t regions() const { return regions_.size(); }
  std::size_t leases() const { return leases_.size(); }
  std::size_t jobs() const { return jobs_.size(); }
  std::size_t grants() const { return grants_.size(); }

 private:
  void ApplyNam(const Effect& effect) {
    if (const auto* put = std::get_if<nam_effect::PutRegion>(&effect)) {
      regions_[put->record.uuid] = wire::Encode(put->record);
    } else if (const auto* gone = std::get_if<nam_effect::DeleteRegion>(&effect)) {
      regions_.erase(gone->uuid);
    } else if (const auto* put = std::get_if<nam_effect::PutLease>(&effect)) {
      state_.nam.last_lease = std::max(state_.nam.last_lease, put->record.id);
      leases_[put->record.id] = wire::Encode(put->record);
    } else if (const auto* gone = std::get_if<nam_effect::DeleteLease>(&effect)) {
      leases_.erase(gone->lease);
    }
  }
  template <class Record>
  static void Read(const std::string& blob, Record& record) {
    wire::Decoder decoder(blob);
    record.Fields(decoder);
    EXPECT_TRUE(decoder.ok());
  }

  StoredState state_;
  std::map<JobId, std::string> jobs_;  // as bytes: what has no field is lost, as on disk
  std::map<std::string, NodeRecord> nodes_;
  std::map<GrantId, GrantRecord> grants_;
  std::map<RegionUuid, std::string> regions_;
  std::map<LeaseId, std::string> leases_;
};

class Harness {
 public:
  explicit Harness(ControllerOptions options = {}, SystemTopology topology = Small())
      : options_(options), topology_(std::move(topology)) {
    options_.operator_uid = kOperator;
    controller_ = std::make_unique<Controller>(topology_, options_);
  }

  Instant now = FromUnixMillis(1'700'000'000'000);
  std::vector<Effect> sent;  // since Clear(), without what the store took

  Controller& controller() { return *controller_; }
  MemoryStore& store() { return store_; }
  void Clear() { sent.clear(); }

  // One event, and the scheduling passes that it asks for.
  void On(Event event) {
    Take(controller_->On(std::move(event), now));
    while (pass_wanted_ && auto_pass) {
      pass_wanted_ = false;
      Take(controller_->On(event::SchedulePass{}, now));
    }
  }
  bool auto_pass = true;

  // Lets time pass, with every tick that was asked for.
  void Sleep(Millis span) {
    const Instant until = now + span;
    while (!wakes_.empty() && *wakes_.begin() <= until) {
      now = std::max(now, *wakes_.begin());
      wakes_.erase(wakes_.begin());
      On(event::Tick{});
    }
    now = until;
    On(event::Tick{});
  }

  void Register(const std::string& node, std::vector<JobdInfo> jobds = {}) {
    event::NodeRegistered e;
    e.node = node;
    e.session = ++last_session_;
    sessions[node] = e.session;
    e.facts.cores = topology_.nodes[*topology_.NodeIndex(node)].cores;
    e.facts.machine_cores = 2;
    e.attach_address = "unix:/d/n/" + node + "/noded.sock";
    e.jobd_address = "unix:/d/n/" + node + "/j%J";
    e.jobds = std::move(jobds);
    e.uid = node_uid;
    e.user_name = node_uid == kBob.uid ? "bob" : "root";
    On(e);
  }
  void RegisterAll() {
    for (const NodeSpec& node : topology_.nodes) Register(node.name);
  }
  void BeatAll() {
    for (const auto& [node, session] : sessions) On(event::NodeHeartbeat{.node = node, .session = session});
  }
  // Time in steps below the node timeout, with heartbeats.
  void Live(Millis span) {
    for (; span > Millis(0); span -= Millis(1000)) {
      Sleep(std::min(span, Millis(1000)));
      BeatAll();
    }
  }

  // The daemon is killed and started again: what is not in the store is gone.
  std::vector<Effect> Restart() {
    controller_ = std::make_unique<Controller>(topology_, options_);
    wakes_.clear();
    auto effects = controller_->Restore(store_.Load(), now);
    EXPECT_TRUE(effects.ok()) << effects.status().ToString();
    if (!effects.ok()) return {};
    Take(*effects);
    sessions.clear();
    return std::move(*effects);
  }

  static JobSpec Spec(const std::string& module, std::uint32_t ntasks, std::uint32_t nodes = 0) {
    JobSpec spec;
    spec.cwd = "/home/ada";
    spec.env = {"PATH=/bin"};
    spec.components.resize(1);
    spec.components[0].resources.module = module;
    spec.components[0].resources.ntasks = ntasks;
    spec.components[0].resources.min_nodes = nodes;
    spec.components[0].argv = {"./a.out", "x"};
    return spec;
  }
  static event::Submit Request(JobSpec spec, bool interactive = false) {
    static int counter = 0;
    return {.token = fmt::format("token-{}", ++counter),
            .user = kAda,
            .user_name = "ada",
            .spec = std::move(spec),
            .interactive = interactive,
            .secret = "5ec7e7",
            .reply = 1};
  }
  Result<JobId> Submit(event::Submit request) {
    On(std::move(request));
    const effect::Reply reply = TakeReply();
    if (!reply.status.ok()) return reply.status;
    return reply.job;
  }
  JobId MustSubmit(JobSpec spec, bool interactive = false) {
    const auto id = Submit(Request(std::move(spec), interactive));
    EXPECT_TRUE(id.ok()) << id.status().ToString();
    return id.ok() ? *id : JobId();
  }
  JobId MustRun(JobSpec spec, bool interactive = false) {
    const JobId id = MustSubmit(std::move(spec), interactive);
    FromHead(id, wire::JobStarted{ToUnixMillis(now)});
    EXPECT_EQ(State(id), JobState::kRunning);
    return id;
  }
  const JobRecord& Record(JobId id) { return *controller_->GetJob(id)->record; }
  JobState State(JobId id) { return Record(id).state; }
  std::string Reason(JobId id) { return controller_->GetJob(id)->reason; }
  std::string HeadNode(JobId id) { return controller_->GetJob(id)->head_node; }

  void FromHead(JobId id, JobdMessage message) {
    On(event::FromJobd{HeadNode(id), id, Record(id).incarnation, std::move(message)});
  }
  static wire::JobExit ExitOf(JobId id, JobState state = JobState::kCompleted, int code = 0) {
    wire::JobExit exit;
    exit.job = id;
    exit.incarnation = Incarnation(1);
    exit.state = state;
    exit.exit_code = code;
    return exit;
  }
  void End(JobId id, JobState state = JobState::kCompleted, int code = 0) {
    FromHead(id, ExitOf(id, state, code));
  }

  template <class E>
  std::vector<E> Sent() const {
    std::vector<E> out;
    for (const Effect& effect : sent)
      if (const E* e = std::get_if<E>(&effect)) out.push_back(*e);
    return out;
  }
  // Messages of one type to job daemons on `node` ("" any).
  template <class M>
  std::vector<M> ToJobd(const std::string& node = "") const {
    std::vector<M> out;
    for (const auto& e : Sent<effect::SendToJobd>())
      if (e.type == M::kType && (node.empty() || e.node == node)) out.push_back(*wire::Decode<M>(e.payload));
    return out;
  }
  std::vector<std::string> QuitNodes() const {
    std::vector<std::string> out;
    for (const auto& e : Sent<effect::SendQuitJob>()) out.push_back(e.node);
    return out;
  }
  effect::Reply TakeReply() {
    const auto replies = Sent<effect::Reply>();
    EXPECT_EQ(replies.size(), 1u);
    std::erase_if(sent, [](const Effect& e) { return std::holds_alternative<effect::Reply>(e); });
    return replies.empty() ? effect::Reply{} : replies[0];
  }
  std::uint32_t CoresUsed() { return controller_->System().cores_used; }

  std::map<std::string, SessionId> sessions;
  std::uint32_t node_uid = 0;  // of the node daemons

 private:
  void Take(const std::vector<Effect>& effects) {
    const Status invariants = controller_->CheckInvariants();
    EXPECT_TRUE(invariants.ok()) << invariants.ToString();
    for (const Effect& effect : effects) {
      store_.Apply(effect);
      if (const auto* wake = std::get_if<effect::WakeAt>(&effect)) wakes_.insert(wake->at);
      if (std::holds_alternative<effect::NeedSchedulePass>(effect)) pass_wanted_ = true;
      sent.push_back(effect);
    }
  }

  ControllerOptions options_;
  SystemTopology topology_;
  std::unique_ptr<Controller> controller_;
  MemoryStore store_;
  std::set<Instant> wakes_;
  bool pass_wanted_ = false;
  SessionId last_session_ = 0;
};

}  // namespace msa::job_test
