// Jobs of one user that connect: shared names, and tickets by which their heads link. No data of the jobs
// passes here.
#include <algorithm>

#include "msa/job/port_name.h"

#include "controller_impl.h"

namespace msa {
namespace {

// A port of a namespace that nobody has reported: its head's report may be on its way. Asked again after
// 2 s (HeadOptions::resend).
constexpr Millis kUnknownPortWait{1000};
// Links asked for and not answered, of one job: one for each foreign port in use.
constexpr std::ptrdiff_t kMaxLinkAsks = 64;

bool HasNamespace(const JobRecord& record, std::uint32_t port_owner) {
  if (PortOwnerOf(fmt::format("msa.{}.{}.0", record.id, record.incarnation)) == port_owner) return true;
  return std::any_of(record.namespaces.begin(), record.namespaces.end(),
                     [&](const auto& known) { return PortOwnerOf(known.nspace) == port_owner; });
}

NameDirectory::Client ClientOf(const JobRecord& record) { return {record.user.uid, record.id}; }

}  // namespace

void Controller::Impl::TellNames(const NameDirectory::Answers& answers) {
  for (const NameDirectory::Answer& one : answers)
    if (const Job* job = Find(one.job)) SendToMember(*job, job->record.head, one.answer);
}

// Whether every head of the user's jobs has said what it has published: after a start of the controller
// they do as their nodes come back.
bool Controller::Impl::NamesAreKnown(std::uint32_t uid) const {
  if (now >= names_settled) return true;
  return std::none_of(active.begin(), active.end(), [&](JobId id) {
    const Job& job = *Find(id);
    return job.names_unknown && job.record.user.uid == uid;
  });
}

void Controller::Impl::OnMessage(Job& job, const std::string&, wire::NamePublish& m) {
  const NameDirectory::Client client = ClientOf(job.record);
  switch (m.change) {
    case wire::NameChange::kAll:
      job.names_unknown = false;
      for (const JobId other : m.links)
        if (const Job* peer = Find(other); peer != nullptr && active.contains(other) &&
                                           other != job.record.id &&
                                           peer->record.user.uid == job.record.user.uid)
          links.emplace(std::min(other, job.record.id), std::max(other, job.record.id));
      return TellNames(names.Replace(client, m.names));
    case wire::NameChange::kWithdraw:
      return SendToMember(job, job.record.head, names.Withdraw(client, m.request, m.names));
    case wire::NameChange::kPublish:
      break;
    default:
      return Emit(effect::Log{fmt::format("job {}: a change of names of kind {}; ignored", job.record.id,
                                          static_cast<int>(m.change))});
  }
  // Not answered: the head asks again.
  if (!NamesAreKnown(client.uid)) return;
  TellNames(names.Publish(client, m.request, m.names));
}

void Controller::Impl::OnMessage(Job& job, const std::string&, wire::NameLookup& m) {
  if (m.withdraw) return names.StopWaiting(job.record.id, m.request);
  const NameDirectory::Client client = ClientOf(job.record);
  if (!m.wait && !names.HasAll(client, m.keys) && !NamesAreKnown(client.uid)) return;
  TellNames(names.Lookup(client, m));
}

void Controller::Impl::OnMessage(Job& job, const std::string&, wire::LinkAsk& m) {
  const std::pair<JobId, std::uint64_t> id{job.record.id, m.request};
  const auto refuse = [&](const std::string& reason) {
    link_asks.erase(id);
    SendToMember(job, job.record.head, wire::LinkAnswer{m.request, JobId(), Incarnation(), {}, reason});
  };
  if (job.record.state == JobState::kEnding) return refuse("the job is ending");
  if (m.secret.size() != 64) return refuse("the link's secret has not 64 hex digits");
  const Job* owner = nullptr;
  for (const JobId other : active) {
    const Job& candidate = *Find(other);
    if (candidate.record.user.uid == job.record.user.uid && other != job.record.id &&
        candidate.record.state != JobState::kPending && HasNamespace(candidate.record, m.port_owner))
      owner = &candidate;
  }
  if (owner != nullptr && owner->record.state == JobState::kEnding)
    return refuse(fmt::format("job {}, which opened the port, is ending", owner->record.id));
  if (owner == nullptr) {
    for (const JobId old : ended) {
      const JobRecord& record = Find(old)->record;
      if (record.user.uid == job.record.user.uid && HasNamespace(record, m.port_owner))
        return refuse(fmt::format("job {}, which opened the port, has ended", old));
    }
  }
  const auto first = link_asks.lower_bound({job.record.id, 0});
  const auto behind = link_asks.lower_bound({JobId(job.record.id.value + 1), 0});
  if (!link_asks.contains(id) && std::distance(first, behind) >= kMaxLinkAsks)
    return refuse(fmt::format("{} links are being made already, the limit", kMaxLinkAsks));
  LinkTicket& ticket = link_asks.try_emplace(id, LinkTicket{JobId(), now}).first->second;
  if (owner == nullptr) {
    if (now - ticket.since < kUnknownPortWait) return;
    return refuse("no running job of this user has opened the port");
  }
  ticket.owner = owner->record.id;
  SendToMember(*owner, owner->record.head,
               wire::LinkOffer{job.record.id, job.record.incarnation, m.request, m.secret});
}

void Controller::Impl::OnMessage(Job& job, const std::string&, wire::LinkReady& m) {
  const auto it = link_asks.find({m.asker, m.request});
  Job* asker = FindActive(m.asker, m.incarnation);
  // Only the job that was asked may answer.
  if (it == link_asks.end() || it->second.owner != job.record.id || asker == nullptr)
    return Emit(effect::Log{
        fmt::format("job {} answers a link that job {} has not asked for; ignored", job.record.id, m.asker)});
  link_asks.erase(it);
  wire::LinkAnswer answer{m.request, JobId(), Incarnation(), {}, m.reason};
  if (!m.address.empty()) {
    answer.job = job.record.id;
    answer.incarnation = job.record.incarnation;
    answer.address = m.address;
    links.emplace(std::min(m.asker, job.record.id), std::max(m.asker, job.record.id));
  }
  SendToMember(*asker, asker->record.head, answer);
}

void Controller::Impl::EndLinks(const Job& job) {
  const JobId id = job.record.id;
  names.JobEnded(ClientOf(job.record));
  std::erase_if(link_asks, [&](const auto& ask) { return ask.first.first == id; });
  const std::string reason =
      job.record.reason.empty() ? fmt::format("job {} has ended", id) : job.record.reason;
  for (auto it = links.begin(); it != links.end();) {
    if (it->first != id && it->second != id) {
      ++it;
      continue;
    }
    const JobId other = it->first == id ? it->second : it->first;
    if (const Job* peer = Find(other); peer != nullptr && active.contains(other))
      SendToMember(*peer, peer->record.head, wire::LinkEnd{id, job.record.incarnation, reason});
    it = links.erase(it);
  }
}

}  // namespace msa
