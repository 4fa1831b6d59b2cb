// Links to the heads of other jobs, and ports. The head of the job that opened a port keeps all that is
// published under its name; clients of other jobs reach it over a link.
#include <algorithm>

#include "msa/job/port_name.h"

#include "head.h"

namespace msa::jobd {
namespace {

// Tickets given out and not used; each has a socket for 30 s.
constexpr std::size_t kMaxOffers = 256;
// Clients that wait for their turn at one port.
constexpr std::size_t kMaxClients = 4096;

}  // namespace

bool Head::IsOwnPort(std::uint32_t port_owner) const { return foreign_.own_ports.contains(port_owner); }

// ------------------------------------------------------------------------------------------ ports

template <class M>
void Head::Forward(const StoreCaller& caller, std::uint32_t port_owner, M message) {
  WithPortJob(port_owner, [this, caller, message = std::move(message)](JobId job, const std::string& reason) {
    if (job.value == 0 || !foreign_.jobs.contains(job)) {
      outlet_.Log("connect: " + reason);
      return AnswerStore(caller, {pmix::kPmixErrUnreachable, {}});
    }
    Introduce(job, message.proc.nspace);
    const std::uint64_t id = foreign_.next_request++;
    foreign_.forwarded[id] = {job, caller};
    ToForeign(job, message, id);
  });
}
template void Head::Forward(const StoreCaller&, std::uint32_t, StorePublish);
template void Head::Forward(const StoreCaller&, std::uint32_t, StoreLookup);

// Whether the client's turn has come; else it waits in the port's queue.
bool Head::TakeTurn(const StoreCaller& caller, const std::string& port, StorePublish& message) {
  const auto it = foreign_.turns.find(port);
  if (it == foreign_.turns.end()) {
    PortTurn& turn = foreign_.turns[port];
    turn.holder = message.proc;
    turn.caller = caller;
    return true;
  }
  if (it->second.queue.size() >= kMaxClients) {
    outlet_.Log(fmt::format("{} clients wait at port {}, the limit; one is refused", kMaxClients, port));
    AnswerStore(caller, {pmix::kPmixErrOutOfResource, {}});
    return false;
  }
  it->second.queue.push_back({caller, std::move(message)});
  return false;
}

bool Head::IsGone(const pmix::Proc& proc) const {
  if (const auto own = namespaces_.find(proc.nspace); own != namespaces_.end())
    return proc.rank >= own->second.tasks.size() || own->second.tasks[proc.rank] == TaskPhase::kEnded;
  return std::none_of(foreign_.jobs.begin(), foreign_.jobs.end(),
                      [&](const auto& job) { return job.second.known.contains(proc.nspace); });
}

void Head::AdvanceTurns() {
  if (foreign_.in_turns) return;
  foreign_.in_turns = true;
  std::vector<std::string> ports;
  for (const auto& [port, turn] : foreign_.turns) ports.push_back(port);
  for (const std::string& port : ports)
    while (foreign_.turns.contains(port) && AdvanceTurn(port, foreign_.turns[port])) continue;
  foreign_.in_turns = false;
}

// The holder has met the server, or is gone: the next one. True: there is a next one to look at.
bool Head::AdvanceTurn(const std::string& port, PortTurn& turn) {
  const std::string key = port + ":connect";
  const pmix::DataStore::Caller anybody{turn.holder, 0};
  const bool gone = turn.gave_up || IsGone(turn.holder);
  const bool unread = store_.Has(anybody, key, pmix::Range::kSession);
  if (!gone && !(turn.accepted && !unread)) return false;
  if (gone && unread) Apply(store_.Unpublish(anybody, {key}, pmix::Range::kSession), std::nullopt);
  while (!turn.queue.empty()) {
    PortTurn::Waiting next = std::move(turn.queue.front());
    turn.queue.pop_front();
    if (IsGone(next.message.proc)) {
      AnswerStore(next.caller, {pmix::kPmixErrUnreachable, {}});
      continue;
    }
    turn.holder = next.message.proc;
    turn.caller = next.caller;
    turn.accepted = turn.gave_up = false;
    Publish(next.caller, std::move(next.message));
    return true;
  }
  foreign_.turns.erase(port);
  return false;
}

// ------------------------------------------------------------------------------------------ links

// `then` is called once: with the job that opened the port and is linked, or with 0 and a reason.
void Head::WithPortJob(std::uint32_t port_owner, std::function<void(JobId, const std::string&)> then) {
  if (const auto it = foreign_.port_jobs.find(port_owner); it != foreign_.port_jobs.end())
    return then(it->second, {});
  for (auto& [request, asked] : foreign_.asked_links)
    if (asked.port_owner == port_owner) {
      asked.waiting.push_back(std::move(then));
      return;
    }
  constexpr std::size_t kMost = 64;  // the controller's limit, too
  if (foreign_.asked_links.size() >= kMost)
    return then(JobId(), fmt::format("{} foreign ports are looked for already, the limit", kMost));
  const std::uint64_t request = foreign_.next_request++;
  AskedLink& asked = foreign_.asked_links[request];
  asked.port_owner = port_owner;
  asked.secret = outlet_.NewSecret();
  asked.waiting.push_back(std::move(then));
  TellController(wire::LinkAsk{request, port_owner, asked.secret});
}

void Head::OnLinkOffer(const wire::LinkOffer& offer) {
  wire::LinkReady ready{offer.asker, offer.incarnation, offer.request, {}, {}};
  const auto id = std::tuple(offer.asker, offer.incarnation, offer.request);
  if (const auto known = foreign_.offered.find(id); known != foreign_.offered.end()) {
    ready.address = known->second.address;
  } else if (exit_ || cancelled_ || left_) {
    ready.reason = fmt::format("job {}, which opened the port, is ending", launch_.job);
  } else if (foreign_.offered.size() >= kMaxOffers) {
    ready.reason = fmt::format("job {} has {} links in the making, the limit", launch_.job, kMaxOffers);
  } else {
    const std::uint64_t link = foreign_.next_link++;
    const auto address =
        outlet_.ListenLink(link, {offer.asker, offer.incarnation, offer.request, offer.secret});
    if (address.ok()) {
      foreign_.offered[id] = {link, *address};
      ready.address = *address;
    } else {
      ready.reason =
          fmt::format("job {} cannot listen for the link: {}", launch_.job, address.status().message());
    }
  }
  TellController(ready);
}

void Head::OnLinkAnswer(const wire::LinkAnswer& answer) {
  const auto it = foreign_.asked_links.find(answer.request);
  if (it == foreign_.asked_links.end()) return;
  AskedLink asked = std::move(it->second);
  foreign_.asked_links.erase(it);
  std::string reason = answer.reason;
  JobId job = answer.job;
  const auto known = foreign_.jobs.find(job);
  if (job.value != 0 && (known == foreign_.jobs.end() || known->second.incarnation != answer.incarnation)) {
    const std::uint64_t link = foreign_.next_link++;
    const Status opened = outlet_.OpenLink(
        link, {launch_.job, launch_.incarnation, answer.request, asked.secret}, answer.address);
    if (opened.ok()) {
      Meet(job, answer.incarnation, link);
    } else {
      reason = opened.message();
      job = JobId();
    }
  }
  if (job.value != 0) {
    foreign_.port_jobs[asked.port_owner] = job;
  } else {
    Main().hub->Notice("connect refused: " + reason);
  }
  for (const auto& then : asked.waiting) then(job, reason);
}

ForeignJob& Head::Meet(JobId job, Incarnation incarnation, std::uint64_t link) {
  if (const auto old = foreign_.jobs.find(job);
      old != foreign_.jobs.end() && old->second.incarnation != incarnation)
    LoseForeign(job, "the job was started anew");
  ForeignJob& other = foreign_.jobs[job];
  other.incarnation = incarnation;
  other.links.insert(link);
  if (other.send_on == 0) other.send_on = link;
  return other;
}

void Head::OnLinkUp(std::uint64_t link) {
  for (auto it = foreign_.offered.begin(); it != foreign_.offered.end(); ++it) {
    if (it->second.link != link) continue;
    const auto [job, incarnation, request] = it->first;
    foreign_.offered.erase(it);
    Meet(job, incarnation, link);
    return;
  }
}

void Head::OnLinkFrame(std::uint64_t link, const wire::Frame& frame) {
  constexpr std::size_t kMaxHeld = 4096;  // frames that wait while namespaces are registered: milliseconds
  if (left_) return;
  for (auto& [job, other] : foreign_.jobs) {
    if (!other.links.contains(link)) continue;
    if (other.registering.empty()) return FromForeign(JobId(job), frame);
    other.held.push_back(frame);
    if (other.held.size() > kMaxHeld) LoseForeign(JobId(job), "it sent more than can be kept");
    return;
  }
}

void Head::OnLinkLost(std::uint64_t link, const std::string& reason) {
  std::erase_if(foreign_.offered, [&](const auto& offer) { return offer.second.link == link; });
  for (const auto& [job, other] : foreign_.jobs)
    if (other.links.contains(link))
      return LoseForeign(JobId(job), fmt::format("the link to job {} broke: {}", job, reason));
}

// The other job has ended, or cannot be reached any more: all that needs it fails. Nothing of this job ends.
void Head::LoseForeign(JobId job, const std::string& reason) {
  const auto it = foreign_.jobs.find(job);
  if (it == foreign_.jobs.end()) return;
  outlet_.Log(fmt::format("job {}: {}", job, reason));
  const std::set<std::string> known = it->second.known;
  for (const std::uint64_t link : it->second.links) outlet_.CloseLink(link);
  for (const std::string& nspace : known) ForeignNamespaceEnded(job, {nspace, true, reason});
  foreign_.jobs.erase(job);
  std::erase_if(foreign_.port_jobs, [&](const auto& port) { return port.second == job; });
  std::vector<StoreCaller> callers;
  std::erase_if(foreign_.forwarded, [&](const auto& entry) {
    if (entry.second.job == job) callers.push_back(entry.second.caller);
    return entry.second.job == job;
  });
  for (const StoreCaller& caller : callers) AnswerStore(caller, {pmix::kPmixErrUnreachable, {}});
  std::erase_if(foreign_.modex_in, [&](const auto& entry) { return entry.second.job == job; });
  std::vector<ForeignState::Modex> asked;
  std::erase_if(foreign_.modex_out, [&](const auto& entry) {
    if (entry.second.job == job) asked.push_back(entry.second);
    return entry.second.job == job;
  });
  for (const ForeignState::Modex& one : asked)
    Tell(one.member, ModexReply{pmix::kPmixErrUnreachable, {}}, one.request);
  AdvanceTurns();
}

}  // namespace msa::jobd
