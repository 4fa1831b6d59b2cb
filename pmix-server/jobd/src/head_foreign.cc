// Namespaces of other jobs, and operations over processes of several jobs: each head gathers its own job's
// part, the heads exchange the parts. No blob passes through the controller.
#include <algorithm>

#include "msa/job/port_name.h"

#include "head.h"

namespace msa::jobd {
namespace {

// As CollectiveOptions::max_data_bytes: the result travels in one frame.
constexpr std::size_t kMaxResult = std::size_t{60} << 20;
// Operations that another job has begun and this one has not.
constexpr std::size_t kMaxEarly = 4096;
// Namespaces of one other job at a time.
constexpr std::size_t kMaxNamespaces = 16384;

// What another job needs to know: where ranks are, not with which environment they run. Nodes are named so
// that nobody there takes them for his own, the transports between the jobs being those of a network.
NamespaceRegister Abridged(const NamespaceRegister& reg, JobId job) {
  NamespaceRegister out;
  out.spec.step = reg.spec.step;
  out.spec.nspace = reg.spec.nspace;
  for (const wire::App& app : reg.spec.apps) {
    wire::App short_app;
    short_app.ntasks = app.ntasks;
    short_app.cwd = "/";
    if (!app.argv.empty()) short_app.argv.push_back(app.argv[0]);
    out.spec.apps.push_back(std::move(short_app));
  }
  for (const std::string& node : reg.nodes) out.nodes.push_back(fmt::format("job{}.{}", job, node));
  out.rank_node = reg.rank_node;
  out.spec.rank_member.assign(reg.rank_node.size(), 0);
  out.universe = reg.universe;
  return out;
}

}  // namespace

void Head::FromForeign(JobId job, const wire::Frame& frame) {
  const auto with = [&](auto message, auto&& act) {
    auto decoded = wire::Decode<decltype(message)>(frame.payload);
    if (decoded.ok()) return act(std::move(*decoded));
    outlet_.Log(fmt::format("message of job {}: {}", job, decoded.status().message()));
  };
  const StoreCaller caller{0, frame.id, job, {}};
  const auto is_its = [&](const pmix::Proc& proc) {
    return foreign_.jobs.at(job).known.contains(proc.nspace);
  };
  switch (frame.type) {
    case ForeignRegister::kType:
      return with(ForeignRegister{}, [&](auto m) { OnForeignRegister(job, std::move(m)); });
    case ForeignEnded::kType:
      return with(ForeignEnded{}, [&](auto m) { ForeignNamespaceEnded(job, m); });
    case StorePublish::kType:
      return with(StorePublish{}, [&](auto m) {
        if (!is_its(m.proc)) return AnswerStore(caller, {pmix::kPmixErrBadParam, {}});
        OnPublish(caller, std::move(m));
      });
    case StoreLookup::kType:
      return with(StoreLookup{}, [&](auto m) {
        if (!is_its(m.proc)) return AnswerStore(caller, {pmix::kPmixErrBadParam, {}});
        OnLookup(caller, std::move(m));
      });
    case StoreReply::kType:
      return with(StoreReply{}, [&](auto m) {
        const auto it = foreign_.forwarded.find(frame.id);
        if (it == foreign_.forwarded.end() || it->second.job != job) return;
        const StoreCaller asker = it->second.caller;
        foreign_.forwarded.erase(it);
        AnswerStore(asker, std::move(m));
      });
    case ForeignPart::kType:
      return with(ForeignPart{}, [&](auto m) { OnPart(job, std::move(m)); });
    case ForeignModex::kType:
      return with(ForeignModex{}, [&](auto m) { OnModexIn(job, frame.id, m); });
    case ForeignModexReply::kType:
      return with(ForeignModexReply{}, [&](auto m) {
        const auto it = foreign_.modex_out.find(frame.id);
        if (it == foreign_.modex_out.end() || it->second.job != job) return;
        Tell(it->second.member, ModexReply{m.status, std::move(m.data)}, it->second.request);
        foreign_.modex_out.erase(it);
      });
    default:
      outlet_.Log(fmt::format("job {} sent a message of type {:#06x}; ignored", job, frame.type));
  }
}

// ------------------------------------------------------------------------------------------ namespaces

// The other job hosts the namespace, and those that it is connected to, before it hears of their processes.
void Head::Introduce(JobId job, const std::string& nspace) {
  const Namespace* ns = Find(nspace);
  const auto it = foreign_.jobs.find(job);
  if (ns == nullptr || it == foreign_.jobs.end() || !it->second.told.insert(nspace).second) return;
  ToForeign(job, ForeignRegister{Abridged(ns->reg, launch_.job), launch_.job});
  for (const std::string& other : std::set<std::string>(ns->linked)) Introduce(job, other);
}

void Head::OnForeignRegister(JobId job, ForeignRegister message) {
  ForeignJob& other = foreign_.jobs.at(job);
  const std::string nspace = message.reg.spec.nspace;
  if (!nspace.starts_with(fmt::format("msa.{}.{}.", job, other.incarnation)) ||
      other.known.size() >= kMaxNamespaces)
    return LoseForeign(job, fmt::format("it names '{}' as a namespace of its own", nspace.substr(0, 64)));
  if (!other.known.insert(nspace).second) return;
  foreign_.port_jobs[PortOwnerOf(nspace)] = job;
  message.job = job;
  std::set<std::uint32_t>& waiting = other.registering[nspace];
  for (const auto& [index, member] : members_) waiting.insert(index);
  TellAll(message);
  foreign_.jobs.at(job).regs[nspace] = std::move(message.reg);
}

void Head::OnForeignReady(std::uint32_t from, const ForeignReady& message) {
  const JobId job = JobOf(message.nspace);
  if (job.value == 0) return;
  if (!message.error.empty())
    Main().hub->Notice(fmt::format("node {} cannot host {} of job {}: {}", members_.at(from).node,
                                   message.nspace, job, message.error));
  auto& registering = foreign_.jobs.at(job).registering;
  const auto it = registering.find(message.nspace);
  if (it == registering.end()) return;
  it->second.erase(from);
  if (it->second.empty()) registering.erase(it);
  ServeHeld(job);
}

void Head::ServeHeld(JobId job) {
  for (;;) {
    const auto it = foreign_.jobs.find(job);
    if (it == foreign_.jobs.end() || !it->second.registering.empty() || it->second.held.empty()) return;
    const wire::Frame frame = std::move(it->second.held.front());
    it->second.held.pop_front();
    FromForeign(job, frame);
  }
}

JobId Head::JobOf(const std::string& foreign_nspace) const {
  for (const auto& [job, other] : foreign_.jobs)
    if (other.known.contains(foreign_nspace)) return JobId(job);
  return JobId();
}

// Whoever is connected to it hears of a failure by an event; nothing of this job is ended for another job's
// failure, whatever --on-child-failure says.
void Head::ForeignNamespaceEnded(JobId job, const ForeignEnded& message) {
  const auto it = foreign_.jobs.find(job);
  if (it == foreign_.jobs.end() || it->second.known.erase(message.nspace) == 0) return;
  it->second.registering.erase(message.nspace);
  it->second.regs.erase(message.nspace);
  foreign_.port_jobs.erase(PortOwnerOf(message.nspace));
  std::vector<std::string> targets;
  for (auto& [own, others] : foreign_.connected)
    if (others.erase(message.nspace) > 0) targets.push_back(own);
  std::erase_if(foreign_.connected, [](const auto& entry) { return entry.second.empty(); });
  if (message.failed && !targets.empty())
    TellAll(NamespaceEvent{pmix::kPmixErrJobAborted, {message.nspace, pmix::kRankWildcard}, targets});
  FailCrossOf(message.nspace, message.reason);
  TellAll(message);
  Apply(store_.NamespaceEnded(message.nspace, message.reason), std::nullopt);
}

void Head::TellForeignEnd(const Namespace& ns, const std::string& reason) {
  const std::string nspace = ns.reg.spec.nspace;
  FailCrossOf(nspace, reason);
  foreign_.connected.erase(nspace);
  const bool failed = ns.abnormal || ns.result.code() != 0;
  for (auto& [job, other] : foreign_.jobs)
    if (other.told.erase(nspace) > 0) ToForeign(JobId(job), ForeignEnded{nspace, failed, reason});
}

void Head::ForeignMemberJoined(std::uint32_t index) {
  for (const auto& [job, other] : foreign_.jobs)
    for (const auto& [nspace, reg] : other.regs) Tell(index, ForeignRegister{reg, JobId(job)});
}

void Head::ForeignMemberLost(std::uint32_t index, const std::string& reason) {
  std::vector<JobId> jobs;
  for (auto& [job, other] : foreign_.jobs) {
    for (auto& [nspace, waiting] : other.registering) waiting.erase(index);
    std::erase_if(other.registering, [](const auto& entry) { return entry.second.empty(); });
    jobs.push_back(JobId(job));
  }
  for (const JobId job : jobs) ServeHeld(job);
  std::vector<pmix::CollectiveKey> lost;
  for (const auto& [key, operation] : foreign_.cross)
    if (operation.expected.contains(index)) lost.push_back(key);
  for (const pmix::CollectiveKey& key : lost) FailCross(key, pmix::kPmixErrUnreachable, reason);
  std::vector<ForeignState::Modex> unanswered;
  std::erase_if(foreign_.modex_in, [&](const auto& entry) {
    if (entry.second.member == index) unanswered.push_back(entry.second);
    return entry.second.member == index;
  });
  for (const ForeignState::Modex& one : unanswered)
    ToForeign(one.job, ForeignModexReply{pmix::kPmixErrUnreachable, {}}, one.request);
  std::erase_if(foreign_.modex_out, [&](const auto& entry) { return entry.second.member == index; });
}

// ------------------------------------------------------------------------------------------ collectives

// Who takes part; false: a process of it is unknown.
bool Head::Understand(const pmix::CollectiveKey& key, CrossOperation& operation) {
  for (const pmix::Proc& proc : key.procs) {
    const Namespace* ns = Find(proc.nspace);
    if (ns == nullptr) {
      const JobId job = JobOf(proc.nspace);
      if (job.value == 0) return false;
      operation.jobs.insert(job);
      continue;
    }
    const auto& members = ns->reg.spec.rank_member;
    if (proc.rank == pmix::kRankWildcard)
      operation.expected.insert(members.begin(), members.end());
    else if (proc.rank < members.size())
      operation.expected.insert(members[proc.rank]);
    else
      return false;
  }
  return std::all_of(operation.expected.begin(), operation.expected.end(),
                     [&](std::uint32_t member) { return members_.contains(member); });
}

void Head::OnCollective(std::uint32_t from, std::uint64_t request, ForeignCollective message) {
  const auto refuse = [&](pmix::PmixStatus status, const std::string& reason) {
    Tell(from, ForeignResult{status, {}, reason}, request);
  };
  const pmix::CollectiveKey& key = message.key;
  if (key.kind > pmix::CollectiveKind::kDisconnect || key.procs.empty())
    return refuse(pmix::kPmixErrBadParam, "a collective over several jobs without processes");
  CrossOperation& operation = foreign_.cross[key];
  if (operation.expected.empty() && (!Understand(key, operation) || !operation.expected.contains(from))) {
    foreign_.cross.erase(key);
    return refuse(pmix::kPmixErrUnreachable, "a process of the operation is gone, or of a job not connected");
  }
  if (!operation.expected.contains(from) || operation.waiting.contains(from))
    return refuse(pmix::kPmixErrBadParam, "the node has no part in this operation, or has given it");
  operation.waiting[from] = request;
  operation.blobs[from] = std::move(message.data);
  if (operation.failed) {
    const auto [status, reason] = *operation.failed;
    if (operation.waiting.size() == operation.expected.size()) foreign_.cross.erase(key);
    return refuse(status, reason);
  }
  if (message.timeout_s > 0 && operation.timer == TimerId{})
    operation.timer = outlet_.After(std::chrono::seconds(message.timeout_s), [this, key] {
      FailCross(key, pmix::kPmixErrTimeout, "the caller's time limit passed before all jobs had joined");
    });
  AdvanceCross(key);
}

void Head::OnPart(JobId job, ForeignPart message) {
  const bool its = std::any_of(message.key.procs.begin(), message.key.procs.end(),
                               [&](const pmix::Proc& proc) { return JobOf(proc.nspace) == job; });
  if (!its || (!foreign_.cross.contains(message.key) && foreign_.cross.size() >= kMaxEarly))
    return outlet_.Log(fmt::format("job {} takes part in an operation that is not its; ignored", job));
  if (message.status != pmix::kPmixSuccess) {
    foreign_.cross.try_emplace(message.key);
    return FailCross(message.key, message.status, message.reason);
  }
  foreign_.cross[message.key].parts[job] = std::move(message.data);
  AdvanceCross(message.key);
}

void Head::AdvanceCross(const pmix::CollectiveKey& key) {
  const auto it = foreign_.cross.find(key);
  if (it == foreign_.cross.end() || it->second.failed) return;
  CrossOperation& operation = it->second;
  if (operation.expected.empty() || operation.blobs.size() < operation.expected.size()) return;
  std::size_t bytes = 0;
  for (const auto& [member, blob] : operation.blobs) bytes += blob.size();
  for (const auto& [job, part] : operation.parts) bytes += part.size();
  if (bytes > kMaxResult)
    return FailCross(
        key, pmix::kPmixErrOutOfResource,
        fmt::format("the contributions have {} bytes, at most {} can be exchanged", bytes, kMaxResult));
  if (!operation.sent) {
    operation.sent = true;
    ForeignPart part{key, {}, pmix::kPmixSuccess, {}};
    for (const auto& [member, blob] : operation.blobs) part.data += blob;
    for (const JobId job : operation.jobs) {
      // It may not have heard of us yet: a server that has read its client's address comes here at once.
      for (const pmix::Proc& proc : key.procs) Introduce(job, proc.nspace);
      ToForeign(job, part);
    }
  }
  for (const JobId job : operation.jobs)
    if (!operation.parts.contains(job)) return;
  CrossOperation done = std::move(operation);
  foreign_.cross.erase(it);
  CompleteCross(key, std::move(done));
}

void Head::CompleteCross(const pmix::CollectiveKey& key, CrossOperation operation) {
  outlet_.Cancel(operation.timer);
  std::string& own = operation.parts[launch_.job];
  for (const auto& [member, blob] : operation.blobs) own += blob;
  ForeignResult result;
  for (const auto& [job, part] : operation.parts) result.data += part;
  // Open MPI 4.1 parts two worlds (MPI_Comm_disconnect, MPI_Finalize) by a fence over both.
  for (const pmix::Proc& one : key.procs) {
    if (Find(one.nspace) == nullptr) continue;
    std::set<std::string>& others = foreign_.connected[one.nspace];
    for (const pmix::Proc& other : key.procs) {
      if (Find(other.nspace) != nullptr) continue;
      if (key.kind == pmix::CollectiveKind::kConnect)
        others.insert(other.nspace);
      else
        others.erase(other.nspace);
    }
  }
  std::erase_if(foreign_.connected, [](const auto& entry) { return entry.second.empty(); });
  for (const auto& [member, request] : operation.waiting) Tell(member, result, request);
}

// Everybody who waits hears of it now, and who comes later then.
void Head::FailCross(const pmix::CollectiveKey& key, pmix::PmixStatus status, const std::string& reason) {
  const auto it = foreign_.cross.find(key);
  if (it == foreign_.cross.end() || it->second.failed) return;
  CrossOperation& operation = it->second;
  outlet_.Cancel(operation.timer);
  operation.failed = {status, reason};
  operation.blobs.clear();
  operation.parts.clear();
  const std::set<JobId> jobs = operation.jobs;
  const auto waiting = operation.waiting;
  if (!operation.expected.empty() && waiting.size() == operation.expected.size()) foreign_.cross.erase(it);
  for (const JobId job : jobs) ToForeign(job, ForeignPart{key, {}, status, reason});
  for (const auto& [member, request] : waiting) Tell(member, ForeignResult{status, {}, reason}, request);
}

void Head::FailCrossOf(const std::string& nspace, const std::string& reason) {
  std::vector<pmix::CollectiveKey> keys;
  for (const auto& [key, operation] : foreign_.cross)
    if (std::any_of(key.procs.begin(), key.procs.end(),
                    [&](const pmix::Proc& proc) { return proc.nspace == nspace; }))
      keys.push_back(key);
  for (const pmix::CollectiveKey& key : keys) {
    FailCross(key, pmix::kPmixErrUnreachable, reason);
    foreign_.cross.erase(key);
  }
}

// ------------------------------------------------------------------------------------------ direct modex

void Head::OnModexOut(std::uint32_t from, std::uint64_t request, const ForeignModex& message) {
  const JobId job = JobOf(message.proc.nspace);
  if (job.value == 0) return Tell(from, ModexReply{pmix::kPmixErrNotFound, {}}, request);
  const std::uint64_t id = foreign_.next_request++;
  foreign_.modex_out[id] = {job, from, request};
  ToForeign(job, message, id);
}

void Head::OnModexIn(JobId job, std::uint64_t request, const ForeignModex& message) {
  const Namespace* ns = Find(message.proc.nspace);
  const bool there = ns != nullptr && message.proc.rank < ns->reg.spec.rank_member.size() &&
                     foreign_.jobs.at(job).told.contains(message.proc.nspace);
  const std::uint32_t member = there ? ns->reg.spec.rank_member[message.proc.rank] : 0;
  if (!there || !members_.contains(member))
    return ToForeign(job, ForeignModexReply{pmix::kPmixErrNotFound, {}}, request);
  const std::uint64_t id = foreign_.next_request++;
  foreign_.modex_in[id] = {job, member, request};
  Tell(member, ForeignModexServe{message.proc}, id);
}

void Head::OnModexServed(std::uint64_t id, const ForeignModexReply& message) {
  const auto it = foreign_.modex_in.find(id);
  if (it == foreign_.modex_in.end()) return;
  ToForeign(it->second.job, message, it->second.request);
  foreign_.modex_in.erase(it);
}

}  // namespace msa::jobd
