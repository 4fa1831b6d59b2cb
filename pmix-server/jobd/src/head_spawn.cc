// MPI_Comm_spawn: places, lends, starts, answers.
#include <algorithm>
#include <numeric>

#include "msa/pmix/open_mpi_env.h"

#include "head.h"

namespace msa::jobd {
namespace {

// A job's spawns under way at once: each holds a request of a rank that waits, so this is generous.
constexpr std::size_t kMaxSpawns = 4096;

std::uint32_t Total(const SpawnRequest& ask) {
  std::uint32_t sum = 0;
  for (const SpawnApp& app : ask.apps) sum += app.maxprocs;
  return sum;
}

std::string Processes(std::uint32_t n) { return n == 1 ? "1 process" : fmt::format("{} processes", n); }

}  // namespace

// What the job daemon is asked for: by a plan's keys, else by what Open MPI passes on.
std::vector<SpawnNeed> Head::NeedsOf(const SpawnJob& job) const {
  std::vector<SpawnNeed> needs;
  if (job.plan) {
    for (std::size_t i = 0; i < job.counts.size(); ++i) {
      const PlanCommand& command = job.plan->commands[i];
      needs.push_back({job.counts[i], command.hosts, command.module, command.nodes, command.per_node});
    }
    return needs;
  }
  for (const SpawnApp& app : job.ask.apps)
    needs.push_back({app.maxprocs, app.hosts, pmix::GetVariable(app.env, "MSA_ARCH").value_or(""), 0, 0});
  return needs;
}

void Head::OnSpawn(std::uint32_t from, std::uint64_t request, SpawnRequest ask) {
  if (Claim(from, request, ask)) return;
  const std::uint32_t number = next_spawn_++;
  const bool known = Find(ask.proc.nspace) != nullptr;
  SpawnJob& job = spawns_[number];
  job.from = from;
  job.request = request;
  job.number = number;
  job.ask = std::move(ask);
  if (!known || cancelled_ || exit_)
    return RefuseSpawn(
        number, pmix::kPmixErr,
        cancelled_ ? "spawn refused: the job is ending" : "spawn refused: its parent has ended");
  if (spawns_.size() > kMaxSpawns)
    return RefuseSpawn(
        number, pmix::kPmixErrOutOfResource,
        fmt::format("spawn refused: {} spawns of the job are under way, the limit", kMaxSpawns));
  for (const SpawnApp& app : job.ask.apps) {
    if (app.argv.empty() || app.argv[0].empty())
      return RefuseSpawn(number, pmix::kPmixErrBadParam, "spawn refused: a command is empty");
    if (app.maxprocs == 0 || app.maxprocs > wire::kMaxListItems)
      return RefuseSpawn(number, pmix::kPmixErrBadParam,
                         fmt::format("spawn of '{}' refused: {} processes asked, expected 1 to {}",
                                     app.argv[0], app.maxprocs, wire::kMaxListItems));
    for (const std::string& key : app.unknown)
      if (warned_keys_.insert(key).second)
        HubOfAsker(job.ask.proc.nspace)
            .Notice(fmt::format("spawn of '{}': key '{}' is not acted upon", app.argv[0], key));
  }
  if (job.ask.apps.empty())
    return RefuseSpawn(number, pmix::kPmixErrBadParam, "spawn refused: it names no command");
  TrySpawn(number);
}

void Head::TrySpawn(std::uint32_t number) {
  const auto it = spawns_.find(number);
  if (it == spawns_.end() || !it->second.nspace.empty() || it->second.grant_request != 0 || it->second.place)
    return;
  SpawnJob& job = it->second;
  for (;;) {
    auto decision = PlaceSpawn(NeedsOf(job), slots_);
    if (!decision.ok())
      return RefuseSpawn(number, pmix::kPmixErrBadParam, "spawn refused: " + decision.status().message());
    if (decision->fits && job.plan) return Reserve(job, std::move(decision->place));
    if (decision->fits) return PlaceSpawned(job, std::move(decision->place));
    const SpawnShortage& shortage = decision->shortage;
    // One loan a command at most: a controller that lends and never suffices must not keep a spawn for ever.
    const std::size_t commands = job.plan ? job.plan->commands.size() : job.ask.apps.size();
    const bool over = job.asks >= commands || (job.plan && job.no_more[shortage.command]);
    if (!over) return AskGrant(job, shortage);
    if (Linger(job)) return;
    if (job.plan && Shrink(job, shortage)) continue;
    std::string text = Shortage(job, shortage);
    if (!job.refusal.empty()) text += ": " + job.refusal;
    return RefuseSpawn(number, pmix::kPmixErrOutOfResource, text);
  }
}

// Children that have parted from their parents are about to leave their slots: a program that spawns again
// and again must not lose the race against their exits.
bool Head::Linger(SpawnJob& job) {
  const bool some_leave = std::any_of(namespaces_.begin(), namespaces_.end(), [](const auto& it) {
    const Namespace& ns = it.second;
    return ns.ending || (ns.reg.spawn != 0 && ns.any_connected && ns.linked.empty());
  });
  if (job.lingered || !some_leave) return false;
  job.lingered = true;
  job.timer = outlet_.After(options_.linger, [this, number = job.number] { TrySpawn(number); });
  return true;
}

void Head::AskGrant(SpawnJob& job, const SpawnShortage& shortage) {
  ++job.asks;
  job.shortage = shortage;
  wire::GrantAsk ask;
  ask.request = job.grant_request = next_grant_request_++;
  ask.slots = shortage.missing;
  ask.nodes = shortage.nodes;
  ask.module = shortage.module;
  ask.wait_ms = std::int64_t{job.ask.timeout_s} * 1000;
  if (job.plan) AddAlternatives(job, shortage, ask);
  open_asks_[ask.request] = ask;
  TellController(ask);
}

std::string Head::Shortage(const SpawnJob& job, const SpawnShortage& shortage) const {
  const std::uint32_t total =
      job.plan ? std::accumulate(job.counts.begin(), job.counts.end(), 0u) : Total(job.ask);
  std::string text = fmt::format(
      "spawn of {} of '{}' refused: {} free in the job, {} more needed", Processes(total),
      job.plan ? job.plan->commands[shortage.command].program : job.ask.apps[shortage.command].argv[0],
      slots_.free() == 1 ? std::string("1 slot") : fmt::format("{} slots", slots_.free()), shortage.missing);
  if (!shortage.nodes.empty()) text += fmt::format(" on node {}", fmt::join(shortage.nodes, ","));
  if (!shortage.module.empty()) text += fmt::format(" in module '{}'", shortage.module);
  return text;
}

void Head::Borrow(const wire::GrantAnswer& answer) {
  // The same cores may come back before the membership without them did.
  for (const std::uint64_t id : released_)
    if (const auto old = grants_.find(id); old != grants_.end())
      for (wire::GrantShare& share : old->second)
        for (const wire::GrantShare& lent : answer.shares)
          if (lent.member == share.member)
            std::erase_if(share.cores, [&](std::uint16_t core) {
              return std::find(lent.cores.begin(), lent.cores.end(), core) != lent.cores.end();
            });
  grants_[answer.grant.value] = answer.shares;
  if (answer.slurm_job.value != 0) companions_[answer.grant.value] = answer.slurm_job;
  RefreshSlots();
}

// Nothing is lent: what a component of the job holds in Slurm, which is in the membership now, and may be
// more than its steps have told of.
void Head::OnOwnNodes(const wire::GrantAnswer& answer) {
  het_ = het_ || (answer.slurm_job.value != 0 && answer.slurm_job != launch_.job);
  for (const wire::GrantShare& share : answer.shares)
    own_cores_[answer.slurm_job][share.member] = share.cores;
  if (open_asks_.erase(answer.request) == 0) return;
  const auto it = std::find_if(spawns_.begin(), spawns_.end(), [&](const auto& entry) {
    return entry.second.grant_request == answer.request;
  });
  if (it == spawns_.end()) return;
  it->second.grant_request = 0;
  --it->second.asks;
  // Its number is that of the companion, which users see.
  if (answer.request + 1 == next_grant_request_) --next_grant_request_;
  TrySpawn(it->first);
}

void Head::OnGrantAnswer(const wire::GrantAnswer& answer) {
  if (launch_.slurms && answer.grant.value == 0 && answer.reason.empty()) return OnOwnNodes(answer);
  const bool known = open_asks_.erase(answer.request) > 0;
  if (!known && (answer.grant.value == 0 || grants_.contains(answer.grant.value))) return;
  // Also one that nobody waits for any more: it is released below.
  if (answer.grant.value != 0) Borrow(answer);
  const auto it = std::find_if(spawns_.begin(), spawns_.end(), [&](const auto& entry) {
    return entry.second.grant_request == answer.request;
  });
  if (it == spawns_.end()) return ReleaseIdleGrants();  // its parent is gone
  SpawnJob& job = it->second;
  job.grant_request = 0;
  if (answer.grant.value == 0) {
    job.refusal = answer.reason;
    if (job.plan)
      job.no_more[job.shortage.command] = true;
    else
      job.asks = job.ask.apps.size();
    return TrySpawn(job.number);
  }
  TakeLent(job, answer.slots);
  job.grants.push_back(answer.grant);
  for (const std::uint32_t member : answer.members)
    if (!outlet_.IsJoined(member)) job.awaiting_members.insert(member);
  if (job.awaiting_members.empty()) return TrySpawn(job.number);
  // The new members' job daemons have the same time as those of a launch.
  job.timer = outlet_.After(Millis(10'000), [this, number = job.number] {
    RefuseSpawn(number, pmix::kPmixErrTimeout,
                "spawn refused: the job daemons of the nodes lent did not come within 10 s");
  });
}

void Head::PlaceSpawned(SpawnJob& job, SpawnPlace place) {
  outlet_.Cancel(job.timer);
  const Namespace& parent = *Find(job.ask.proc.nspace);
  NamespaceRegister reg;
  reg.spawn = job.number;
  reg.parent = job.ask.proc.nspace;
  reg.parent_rank = job.ask.proc.rank;
  reg.universe = static_cast<std::uint32_t>(slots_.total());
  wire::StepSpec& spec = reg.spec;
  spec = parent.reg.spec;
  spec.nspace = NamespaceOf(job);
  spec.stdio.in = "none";
  spec.rank_member = place.rank_member;
  spec.apps.clear();
  std::uint32_t component = 0;
  for (const SpawnApp& app : job.ask.apps) {
    std::string cwd = app.cwd;
    if (!cwd.empty() && !cwd.starts_with('/')) cwd = spec.cwd + "/" + cwd;
    spec.apps.push_back({component++, app.argv, app.env, cwd, app.maxprocs, 1});
    if (const auto port = pmix::ParentPort(app.env)) store_.ExpectFrom(spec.nspace, *port);
  }
  NumberNodes(reg);
  job.nspace = spec.nspace;
  AddNamespace(std::move(reg), std::move(place.rank_cores));
  Namespace& ns = *Find(job.nspace);
  ns.spawn = job.number;
  if (!job.plan || job.plan->time_ms <= 0) return;
  const Millis time(job.plan->time_ms);
  ns.time_timer = outlet_.After(time, [this, nspace = job.nspace, number = job.number, time] {
    EndNamespace(
        nspace,
        fmt::format("spawn {} is ended: its time (msa_time) of {} s is over", number, time.count() / 1000.0),
        EndKind::kFailure);
  });
}

void Head::RefuseSpawn(std::uint32_t number, pmix::PmixStatus status, const std::string& text) {
  const auto it = spawns_.find(number);
  if (it == spawns_.end() || !it->second.nspace.empty()) return;
  if (it->second.plan && !it->second.claimed) {
    const bool bad = status == pmix::kPmixErrBadParam;
    return RefusePlan(it->second, bad ? wire::SpawnRefusal::kInfoValue : wire::SpawnRefusal::kSpawn, text);
  }
  outlet_.Cancel(it->second.timer);
  WithdrawAsk(it->second);
  Tell(it->second.from, SpawnReply{status, {}}, it->second.request);
  StdioHub& hub = HubOfAsker(it->second.ask.proc.nspace);
  spawns_.erase(it);
  if (!text.empty()) hub.Notice(text);
  ReleaseIdleGrants();
  MaybeFinish();
}

void Head::WithdrawAsk(SpawnJob& job) {
  if (job.grant_request == 0 || open_asks_.erase(job.grant_request) == 0) return;
  TellController(wire::GrantWithdraw{job.grant_request});
  job.grant_request = 0;
}

// The spawning rank hears of its children when all of them run, or none will.
void Head::AnswerSpawn(Namespace& ns, pmix::PmixStatus status) {
  const auto it = spawns_.find(static_cast<std::uint32_t>(ns.spawn));
  if (ns.spawn == 0 || it == spawns_.end()) return;
  ns.spawn = 0;
  const std::string nspace = ns.reg.spec.nspace;
  Tell(it->second.from, SpawnReply{status, status == pmix::kPmixSuccess ? nspace : std::string()},
       it->second.request);
  spawns_.erase(it);
}

void Head::DropSpawnsOf(const std::string& nspace) {
  std::vector<std::uint32_t> orphans;
  for (const auto& [number, job] : spawns_)
    if (job.ask.proc.nspace == nspace && job.nspace.empty()) orphans.push_back(number);
  for (const std::uint32_t number : orphans) RefuseSpawn(number, pmix::kPmixErr, {});
}

}  // namespace msa::jobd
