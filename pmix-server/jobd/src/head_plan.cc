// Planned spawns: libmsampi asks for permission first, so that `soft`, waiting and refusals work as MPI says.
// A plan is a SpawnJob whose place is reserved until PMIx_Spawn brings its ticket.
#include <algorithm>

#include "msa/pmix/open_mpi_env.h"

#include "head.h"

namespace msa::jobd {
namespace {

constexpr std::string_view kTicket = "MSA_SPAWN_TICKET";

// The largest member of the set below `count` that is at most `most`.
std::optional<std::uint32_t> Below(const PlanCommand& command, std::uint32_t count, std::uint32_t most) {
  for (const std::uint32_t member : command.counts)
    if (member < count && member <= most) return member;
  return std::nullopt;
}

}  // namespace

std::string Head::NamespaceOf(const SpawnJob& job) {
  const Namespace* parent = Find(job.ask.proc.nspace);
  const StepId step = parent == nullptr ? launch_.step.step : StepOf(*parent).id;
  return fmt::format("msa.{}.{}.{}.{}", launch_.job, launch_.incarnation, step, job.number);
}

void Head::OnPlan(std::uint32_t from, std::uint64_t request, PlanRequest plan) {
  const std::uint32_t number = next_spawn_++;
  const Namespace* asker = Find(plan.proc.nspace);
  for (const std::string& key : plan.unknown)
    if (warned_keys_.insert(key).second)
      HubOfAsker(plan.proc.nspace)
          .Notice(fmt::format("MPI_Comm_spawn: info key '{}' is not known to msa and not acted upon", key));
  SpawnJob& job = spawns_[number];
  job.from = from;
  job.request = request;
  job.number = number;
  job.deadline = outlet_.SteadyTimeNow() + Millis(plan.wait_ms);
  for (const PlanCommand& command : plan.commands)
    job.counts.push_back(command.counts.empty() ? 0 : command.counts[0]);
  job.no_more.resize(plan.commands.size(), false);
  job.ask.proc = plan.proc;
  job.plan = std::move(plan);
  if (cancelled_ || exit_ || asker == nullptr || asker->ending)
    return RefusePlan(job, wire::SpawnRefusal::kSpawn, "the job is ending");
  TrySpawn(number);
}

// The asker is gone or has thought better of it. PMIx_Spawn under way goes on.
void Head::OnPlanDrop(std::uint32_t from, const PlanDrop& message) {
  const auto it = std::find_if(spawns_.begin(), spawns_.end(), [&](const auto& entry) {
    const SpawnJob& job = entry.second;
    return job.plan && !job.claimed && job.from == from && job.request == message.request;
  });
  if (it == spawns_.end()) return;
  Forget(it->second);
}

void Head::Forget(SpawnJob& job) {
  outlet_.Cancel(job.timer);
  WithdrawAsk(job);
  if (job.place)
    for (std::size_t rank = 0; rank < job.place->rank_member.size(); ++rank)
      GiveSlots(job.place->rank_member[rank], job.place->rank_cores[rank]);
  spawns_.erase(job.number);
  ReleaseIdleGrants();
  RetryWaiting();
  MaybeFinish();
}

bool Head::IsReserved(const SpawnJob& job, std::uint32_t member) {
  return job.place && std::count(job.place->rank_member.begin(), job.place->rank_member.end(), member) > 0;
}

void Head::RefusePlan(SpawnJob& job, wire::SpawnRefusal refusal, const std::string& text) {
  PlanReply reply;
  reply.refusal = refusal;
  reply.reason = text;
  reply.counts.resize(job.counts.size(), 0);
  Tell(job.from, reply, job.request);
  Forget(job);
}

void Head::Reserve(SpawnJob& job, SpawnPlace place) {
  outlet_.Cancel(job.timer);
  if (place.rank_member.empty()) {  // a set whose largest member that can be started is 0
    PlanReply reply;
    reply.counts = job.counts;
    Tell(job.from, reply, job.request);
    return Forget(job);
  }
  job.place = std::move(place);
  if (job.plan->nam.value > 0) return AskAllotment(job);
  Permit(job);
}

void Head::Permit(SpawnJob& job) {
  PlanReply reply;
  reply.counts = job.counts;
  reply.ticket = fmt::format("{}.{}.{}", launch_.job, launch_.incarnation, job.number);
  reply.nspace = NamespaceOf(job);
  job.timer = outlet_.After(options_.plan_unused, [this, number = job.number] {
    const auto it = spawns_.find(number);
    if (it == spawns_.end() || it->second.claimed) return;
    outlet_.Log(fmt::format("spawn {} was permitted and never started; its slots are free again", number));
    Forget(it->second);
  });
  Tell(job.from, reply, job.request);
}

// The processes have their slots; their memory is the last thing asked for, as nothing takes it back.
void Head::AskAllotment(SpawnJob& job) {
  job.nam_request = next_grant_request_++;
  TellController(wire::NamAllotmentAsk{job.nam_request, job.plan->nam});
  job.timer = outlet_.After(options_.allotment_wait, [this, number = job.number] {
    const auto it = spawns_.find(number);
    if (it == spawns_.end()) return;
    RefusePlan(it->second, wire::SpawnRefusal::kSpawn,
               fmt::format("spawn refused: the controller did not answer for {} bytes of network attached "
                           "memory (msa_nam) within {} s; spawn again",
                           it->second.plan->nam.value, options_.allotment_wait.count() / 1000));
  });
}

void Head::OnAllotment(const wire::NamAllotment& answer) {
  const auto it = std::find_if(spawns_.begin(), spawns_.end(), [&](const auto& entry) {
    return answer.request != 0 && entry.second.nam_request == answer.request;
  });
  if (it == spawns_.end()) return;  // its asker is gone
  SpawnJob& job = it->second;
  outlet_.Cancel(job.timer);
  job.nam_request = 0;
  if (answer.reason.empty()) return Permit(job);
  RefusePlan(job, wire::SpawnRefusal::kSpawn, "spawn refused: msa_nam: " + answer.reason);
}

// Fewer processes of the command that is short. False: it has no smaller member.
bool Head::Shrink(SpawnJob& job, const SpawnShortage& shortage) {
  std::uint32_t& count = job.counts[shortage.command];
  const auto next = Below(job.plan->commands[shortage.command], count, shortage.fits);
  // With a fixed number of nodes what fits of a larger count says nothing of a smaller one.
  const auto any = Below(job.plan->commands[shortage.command], count, count);
  const auto member = job.plan->commands[shortage.command].nodes > 0 ? any : next;
  if (!member) return false;
  count = *member;
  return true;
}

std::int64_t Head::WaitLeft(const SpawnJob& job) const {
  const auto left = std::chrono::duration_cast<Millis>(job.deadline - outlet_.SteadyTimeNow());
  return std::max<std::int64_t>(left.count(), 0);
}

void Head::AddAlternatives(const SpawnJob& job, const SpawnShortage& shortage, wire::GrantAsk& ask) {
  const PlanCommand& command = job.plan->commands[shortage.command];
  ask.wait_ms = WaitLeft(job);
  ask.time_ms = job.plan->time_ms;
  ask.slots_per_node = shortage.slots_per_node;
  ask.nodes_exactly = shortage.more_nodes;
  // Each more than what fits anyway, and with a fixed number of nodes at least one a node.
  const std::uint32_t least = std::max(shortage.more_nodes, 1u);
  for (const std::uint32_t member : command.counts)
    if (member < job.counts[shortage.command] && member >= shortage.fits + least)
      ask.alternatives.push_back(member - shortage.fits);
}

// The controller lent `slots`: all that was asked, or an alternative.
void Head::TakeLent(SpawnJob& job, std::uint32_t slots) {
  if (!job.plan || slots == 0 || slots >= job.shortage.missing) return;
  job.counts[job.shortage.command] = job.shortage.fits + slots;
}

// PMIx_Spawn with a ticket: the reserved place is used. False: no ticket.
bool Head::Claim(std::uint32_t from, std::uint64_t request, SpawnRequest& ask) {
  std::optional<std::string> ticket;
  for (SpawnApp& app : ask.apps) {
    if (auto found = pmix::GetVariable(app.env, kTicket)) ticket = std::move(found);
    std::erase_if(app.env, [](const std::string& line) {
      return line.size() > kTicket.size() && line.starts_with(kTicket) && line[kTicket.size()] == '=';
    });
  }
  if (!ticket) return false;
  const auto it = std::find_if(spawns_.begin(), spawns_.end(), [&](const auto& entry) {
    const SpawnJob& job = entry.second;
    return job.place && !job.claimed && job.nam_request == 0 && job.ask.proc == ask.proc &&
           *ticket == fmt::format("{}.{}.{}", launch_.job, launch_.incarnation, job.number);
  });
  std::vector<std::uint32_t> asked;
  for (const SpawnApp& app : ask.apps) asked.push_back(app.maxprocs);
  if (it != spawns_.end()) {
    std::vector<std::uint32_t> permitted = it->second.counts;
    std::erase(permitted, 0u);
    if (asked == permitted) {
      SpawnJob& job = it->second;
      job.claimed = true;
      job.from = from;
      job.request = request;
      job.ask = std::move(ask);
      const std::uint32_t number = job.number;
      PlaceSpawned(job, std::move(*job.place));
      if (const auto placed = spawns_.find(number); placed != spawns_.end()) placed->second.place.reset();
      return true;
    }
  }
  HubOfAsker(ask.proc.nspace)
      .Notice(fmt::format(
          "spawn refused: its permission '{}' is unknown, used, expired or for other commands", *ticket));
  Tell(from, SpawnReply{pmix::kPmixErrBadParam, {}}, request);
  return true;
}

// Slots of the job became free: spawns that wait may not need anybody else's any more.
void Head::RetryWaiting() {
  std::vector<std::uint32_t> waiting;
  for (const auto& [number, job] : spawns_)
    if (!job.place && job.nspace.empty() && (job.grant_request != 0 || job.lingered))
      waiting.push_back(number);
  for (const std::uint32_t number : waiting) {
    const auto it = spawns_.find(number);
    if (it == spawns_.end()) continue;
    SpawnJob& job = it->second;
    if (Find(job.ask.proc.nspace) == nullptr) continue;  // its parent is gone, it is about to be dropped
    auto decision = PlaceSpawn(NeedsOf(job), slots_);
    if (!decision.ok() || !decision->fits) continue;
    WithdrawAsk(job);
    if (job.plan)
      Reserve(job, std::move(decision->place));
    else
      PlaceSpawned(job, std::move(decision->place));
  }
}

}  // namespace msa::jobd
