// Who is charged what. A region costs its NAM nodes the bytes of its segments (nam_book::ChargeOf) until namd
// has freed them; its
// owner if it is persistent or of no job; and the job that made it as long as both live.
#include <algorithm>
#include <limits>

#include "msa/topology/size_text.h"

#include "book_impl.h"

namespace msa {
namespace {

std::string Text(std::uint64_t bytes) { return SizeText(Bytes(bytes)); }

std::uint64_t Less(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

NamBook::Impl::Job* NamBook::Impl::FindJob(JobId id) {
  const auto it = jobs.find(id);
  return it == jobs.end() ? nullptr : &it->second;
}

void NamBook::Impl::ChargeJob(Job& job, std::uint64_t bytes, Sign sign) {
  held_by_jobs -= Held(job);
  job.used = sign == Sign::kAdd ? job.used + bytes : job.used - bytes;
  held_by_jobs += Held(job);
}

void NamBook::Impl::SetReserved(Job& job, std::uint64_t reserved) {
  held_by_jobs -= Held(job);
  job.reserved = reserved;
  held_by_jobs += Held(job);
}

void NamBook::Impl::Account(const Region& region, Sign sign) {
  const RegionRecord& record = region.record;
  const std::uint64_t way = sign == Sign::kAdd ? 1 : ~std::uint64_t{0};
  Job* job = FindJob(record.job);
  const auto charge = [&](const std::string& name, std::uint64_t bytes) {
    const auto node = FindNode(name);
    if (!node) return;
    nodes[*node].used += way * bytes;
    if (job != nullptr) nodes[*node].by_jobs += way * bytes;
  };
  for (std::size_t e = 0; e < record.extents.size(); ++e)
    if (!record.extents[e].freed) charge(record.extents[e].node, region.charges[e]);
  std::uint64_t bytes = region.bytes;
  if (region.committed() && region.pending) {
    const Pending& next = *region.pending;
    for (std::size_t e = 0; e < next.charges.size(); ++e)
      charge(next.layout.extents[e].node, next.charges[e]);
    bytes = std::max(bytes, next.bytes);
  }
  if (job != nullptr) {
    ChargeJob(*job, bytes, sign);
    sign == Sign::kAdd ? (void)job->regions.insert(record.uuid) : (void)job->regions.erase(record.uuid);
  }
  User& user = users[record.owner.uid];
  if (!record.user_name.empty()) user.name = record.user_name;
  user.regions += static_cast<std::uint32_t>(way);
  if (ChargedToUser(record)) user.used += way * bytes;
  if (user.regions == 0) users.erase(record.owner.uid);
}

std::uint64_t NamBook::Impl::Capacity() const {
  std::uint64_t sum = 0;
  for (const Node& node : nodes)
    if (node.up) sum += node.capacity;
  return sum;
}

std::int64_t NamBook::Impl::Free() const {
  std::int64_t free = -static_cast<std::int64_t>(held_by_jobs);
  for (const Node& node : nodes)
    if (node.up)
      free += static_cast<std::int64_t>(node.capacity) - static_cast<std::int64_t>(node.used - node.by_jobs);
  return free;
}

Status NamBook::Impl::CheckUserQuota(const UserIdentity& user, const std::string& name,
                                     std::uint64_t more) const {
  const auto it = users.find(user.uid);
  const std::uint64_t used = it == users.end() ? 0 : it->second.used;
  const std::uint64_t quota = policy.user_quota.value;
  if (quota == 0 || more == 0 || more <= Less(quota, used)) return Status::Ok();
  return Error(
      Code::kResourceExhausted,
      "user {} (uid {}): {} of network attached memory asked, the quota is {}, {} used, {} free; remove "
      "regions that are not needed (see 'msactl region list'), or ask the operator for more",
      name, user.uid, Text(more), Text(quota), Text(used), Text(Less(quota, used)));
}

std::optional<std::uint64_t> NamBook::Impl::LimitOf(const Job& job) const {
  if (job.started.reserved) return job.reserved;
  if (policy.job_default.value == 0) return std::nullopt;
  return job.reserved + policy.job_default.value;
}

Status NamBook::Impl::CheckJobQuota(const Job& job, std::uint64_t more) const {
  const auto in_effect = LimitOf(job);
  if (!in_effect || more == 0 || more <= Less(*in_effect, job.used)) return Status::Ok();
  const std::uint64_t limit = *in_effect;
  const JobId id = job.started.job;
  if (!job.started.reserved && job.reserved == 0)
    return Error(
        Code::kResourceExhausted,
        "job {}: {} of network attached memory asked, a job without --nam may draw {}, {} used, {} free; "
        "give the job an allotment with --nam",
        id, Text(more), Text(limit), Text(job.used), Text(Less(limit, job.used)));
  return Error(
      Code::kResourceExhausted,
      "job {}: {} of network attached memory asked, its allotment is {}, {} used, {} free; raise --nam, or "
      "free windows that are not needed",
      id, Text(more), Text(limit), Text(job.used), Text(Less(limit, job.used)));
}

Status NamBook::Impl::CheckFree(const Job* job, std::uint64_t more) const {
  // A job draws on its allotment first.
  const std::uint64_t draw =
      job == nullptr ? more : Less(job->used + more, job->reserved) - Less(job->used, job->reserved);
  const std::int64_t free = Free();
  if (draw == 0 || static_cast<std::int64_t>(draw) <= free) return Status::Ok();
  std::uint64_t used = 0;
  std::uint64_t promised = held_by_jobs;
  for (const Node& node : nodes) {
    if (!node.up) continue;
    used += node.used;
    promised = Less(promised, node.by_jobs);
  }
  return Error(
      Code::kResourceExhausted,
      "{} of network attached memory asked, {} exist, {} used, {} promised to running jobs (--nam), {} "
      "free; wait for jobs to end, or remove regions that are not needed (see 'msactl region df')",
      Text(more), Text(Capacity()), Text(used), Text(promised),
      Text(static_cast<std::uint64_t>(std::max<std::int64_t>(free, 0))));
}

void NamBook::Impl::Do(nam_event::Request& e, wire::NamUsageAsk&) {
  wire::NamUsage usage;
  for (const Node& node : nodes) {
    wire::NamNodeUsage one{node.spec.name, node.up, Bytes(node.capacity), Bytes(node.used), 0};
    for (const RegionUuid& uuid : node.regions)
      if (Find(uuid)->record.phase != RegionPhase::kReserved) ++one.regions;
    usage.nodes.push_back(std::move(one));
  }
  const auto all = [&](std::uint32_t uid) { return e.caller.operator_ || e.caller.user.uid == uid; };
  for (const auto& [uid, user] : users)
    if (all(uid)) usage.users.push_back({uid, user.name, Bytes(user.used), policy.user_quota, user.regions});
  if (!e.caller.operator_ && !users.contains(e.caller.user.uid))
    usage.users.push_back({e.caller.user.uid, e.caller.user_name, Bytes(), policy.user_quota, 0});
  std::uint64_t undrawn = 0;
  for (const auto& [id, job] : jobs) {
    undrawn += Less(job.reserved, job.used);
    if (all(job.started.user.uid) && (job.used > 0 || job.reserved > 0))
      usage.jobs.push_back({id, Bytes(job.used), Bytes(LimitOf(job).value_or(0))});
  }
  usage.reserved = Bytes(undrawn);
  Answer(e.tag, NamReplyBody(std::move(usage)));
}

void NamBook::Impl::Handle(nam_event::AllotmentAsk& e) {
  wire::NamAllotment answer;
  answer.request = e.request;
  const auto reply = [&](std::string reason) {
    answer.reason = std::move(reason);
    Emit(nam_effect::AllotmentReply{e.job, std::move(answer)});
  };
  Job* job = FindJob(e.job);
  if (job == nullptr) return reply(fmt::format("job {} does not run", e.job));
  answer.allotment = Bytes(job->reserved);
  const std::uint64_t more = e.more.value;
  if (more == 0) return reply("");
  const std::uint64_t limit = policy.job_quota.value != 0 ? policy.job_quota.value : kMaxNamBytes;
  if (more > Less(limit, job->reserved))
    return reply(
        fmt::format("{} of network attached memory asked beyond the {} that job {} has; one job may have "
                    "{}; ask for less",
                    Text(more), Text(job->reserved), e.job, Text(limit)));
  const std::uint64_t grows = Less(job->reserved + more, job->used) - Less(job->reserved, job->used);
  const std::int64_t free = Free();
  if (static_cast<std::int64_t>(grows) > free)
    return reply(
        fmt::format("{} of network attached memory asked, {} are free; ask for less, or wait for jobs to "
                    "end",
                    Text(more), Text(static_cast<std::uint64_t>(std::max<std::int64_t>(free, 0)))));
  SetReserved(*job, job->reserved + more);
  answer.allotment = Bytes(job->reserved);
  reply("");
}

}  // namespace msa
