#pragma once
// A job of Slurm's on one node, and what its msa-companion and msa-slurm-agent say.
#include <gmock/gmock.h>

#include "harness.h"

namespace msa::job_test {

inline constexpr JobId kJob{7};
inline constexpr JobId kCompanion{31};

class Companions : public ::testing::Test {
 protected:
  Companions() : h(Slurms()) {
    h.RegisterAll();
    Step(kJob, 0, "cn0", {0, 1});
    h.FromHead(kJob, wire::JobStarted{ToUnixMillis(h.now)});
    h.Clear();
  }
  static ControllerOptions Slurms() {
    ControllerOptions options;
    options.slurm = true;
    return options;
  }
  void Step(JobId job, std::uint32_t step, const std::string& node, std::vector<std::uint16_t> cores,
            Incarnation incarnation = Incarnation(0)) {
    wire::SlurmStepBegin begin;
    begin.job = job;
    begin.component_job = job;
    begin.step = StepId(step);
    begin.user = kAda;
    begin.user_name = "ada";
    begin.ntasks = begin.ntasks_here = 1;
    begin.nodes = {{node, 1}};
    begin.cores = std::move(cores);
    begin.incarnation = incarnation;
    h.On(event::SlurmStepBegin{node, begin, "5ec7e7"});
  }
  void AgentUp() {
    wire::SlurmAgentState state;
    state.slurmctld_up = true;
    h.On(event::FromSlurmAgent{0, state});
  }
  // The agent is up and has told what the job itself holds: nothing that its steps have not.
  void AgentKnows() {
    AgentUp();
    wire::GrantAsk first = Ask();
    first.request = 99;
    h.FromHead(kJob, first);
    Answer(Own({{"cn0", {0, 1}}}));
    h.Clear();
  }
  static wire::SlurmJobAnswer Own(std::vector<wire::SlurmNodeCores> cores, JobId component = kJob) {
    wire::SlurmJobAnswer answer;
    answer.job.job = component;
    answer.job.leader = kJob;
    answer.job.user = kAda;
    answer.job.state = "RUNNING";
    answer.cores = std::move(cores);
    return answer;
  }
  wire::GrantAsk Ask(std::int64_t wait_ms = 60'000) {
    wire::GrantAsk ask;
    ask.request = 1;
    ask.slots = 2;
    ask.module = "booster";
    ask.wait_ms = wait_ms;
    return ask;
  }
  template <class M>
  void Report(const M& message, std::uint64_t request = 1) {
    wire::CompanionReport report;
    report.request = request;
    report.type = M::kType;
    report.payload = wire::Encode(message);
    h.FromHead(kJob, report);
  }
  void Gone() {
    wire::CompanionReport report;
    report.request = 1;
    report.payload = "killed";
    h.FromHead(kJob, report);
  }
  static wire::CompanionGranted Granted(const std::string& node = "bn0") {
    wire::CompanionGranted granted;
    granted.job = kCompanion;
    granted.nodes = {{node, {4, 5, 6}}};
    granted.slots = 2;
    return granted;
  }
  static wire::SlurmJobAnswer Truth(const std::string& node = "bn0") {
    wire::SlurmJobAnswer answer;
    answer.job.job = answer.job.leader = kCompanion;
    answer.job.user = kAda;
    answer.job.state = "RUNNING";
    answer.job.nodes = {node};
    answer.cores = {{node, {4, 5, 6, 7}}};
    return answer;
  }
  template <class M>
  std::vector<effect::ToSlurmAgent> ToAgent() const {
    std::vector<effect::ToSlurmAgent> out;
    for (auto& one : h.Sent<effect::ToSlurmAgent>())
      if (one.type == M::kType) out.push_back(one);
    return out;
  }
  void Answer(const wire::SlurmJobAnswer& answer) {
    const auto asked = ToAgent<wire::SlurmJobQuestion>();
    ASSERT_FALSE(asked.empty());
    h.On(event::FromSlurmAgent{asked.back().id, answer});
  }
  std::vector<std::uint16_t> Orders() const {
    std::vector<std::uint16_t> out;
    for (const auto& order : h.ToJobd<wire::CompanionOrder>("cn0")) out.push_back(order.type);
    return out;
  }
  std::vector<wire::GrantAnswer> Answers() const { return h.ToJobd<wire::GrantAnswer>("cn0"); }
  void Lend() {
    AgentKnows();
    h.FromHead(kJob, Ask());
    Report(Granted());
    Answer(Truth());
  }
  // All that Slurm has, as its agent tells it.
  void Tell(JobId id, bool over, bool complete = false) {
    wire::SlurmJobsChanged changed;
    changed.complete = complete;
    wire::SlurmJob job;
    job.job = job.leader = id;
    job.over = over;
    job.state = over ? "CANCELLED" : "RUNNING";
    changed.jobs = {job};
    h.On(event::FromSlurmAgent{0, changed});
  }
  GrantView View() {
    const auto grants = h.controller().ListGrants({.released = true});
    return grants.ok() && !grants->empty() ? grants->front() : GrantView();
  }

  Harness h;
};

}  // namespace msa::job_test
