// Connections that are being made, and those that were lost.

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "msa/base/wire.h"

#include "engine.h"
#include "tcp_connections.h"

namespace msa::nam {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kAskAgain = milliseconds(200);
// Connecting takes 1 to 25 ms; after this it is looked at whether anybody listens.
constexpr auto kProbeAfter = milliseconds(1);
// For who listens and does not answer. Long, since 64 clients that begin at once on a loaded host took 6 s.
constexpr auto kConnectLimit = seconds(30);
constexpr auto kInquiryLimit = seconds(5);
// A request is answered in 20 us. The server of one that waits this long is asked whether it is there.
constexpr auto kSilence = milliseconds(20);

}  // namespace

void ListenProbe::Start(const std::string& address) {
  socket_.reset(socket(reinterpret_cast<const sockaddr*>(address.data())->sa_family,
                       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return;
  // Closed by a reset: see Server::DropEnded().
  const linger at_once{1, 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  const auto* to = reinterpret_cast<const sockaddr*>(address.data());
  if (connect(socket_.get(), to, static_cast<socklen_t>(address.size())) == 0)
    answer_ = Answer::kThere;
  else if (errno == ECONNREFUSED)
    answer_ = Answer::kRefused;
  if (answer_ != Answer::kPending) socket_.reset();
}

ListenProbe::Answer ListenProbe::Look(const std::string& address, SteadyTime now) {
  if (now - begun_ > kAskAgain) {
    Reset();
    begun_ = now;
    Start(address);
  }
  if (answer_ != Answer::kPending || !socket_) return answer_;
  pollfd fd{socket_.get(), POLLOUT, 0};
  if (poll(&fd, 1, 0) <= 0) return answer_;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) answer_ = Answer::kThere;
  if (error == ECONNREFUSED) answer_ = Answer::kRefused;
  socket_.reset();
  return answer_;
}

void Engine::Tick(SteadyTime now) {
  for (Operation* operation : std::exchange(unposted_receives_, {})) PostReceive(*operation);
  for (std::size_t i = 0; i < links_.size(); ++i) TickLink(*links_[i], now);
  for (std::size_t i = links_.size(); i-- > 0;) {
    if (!links_[i]->abandoned || links_[i]->in_flight > 0) continue;
    const auto known = known_.find(links_[i]->address);
    if (--known->second.links == 0) {
      fi_av_remove(port_.av(), &known->second.at, 1, 0);
      known_.erase(known);
    }
    links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Engine::TickLink(Link& link, SteadyTime now) {
  if (link.state == Link::State::kBroken) return;
  const bool connecting = link.state == Link::State::kGreeting && !link.abandoned;
  const SteadyTime troubled = link.state != Link::State::kUp ? link.since : link.blocked;
  if ((connecting || link.state == Link::State::kSuspect || link.blocked != SteadyTime{}) &&
      port_.over_tcp()) {
    if (now - troubled >= kProbeAfter && link.probe.Look(link.address, now) == ListenProbe::Answer::kRefused)
      return Break(link, Error(Code::kUnavailable,
                               "nothing listens at the NAM daemon's fabric address (port {}); it "
                               "has stopped or was restarted",
                               PortOf(link.address)));
  }
  if (connecting && now - link.since > kConnectLimit)
    return Break(link, Error(Code::kUnavailable, "no answer from the NAM daemon's fabric address within {} s",
                             kConnectLimit.count()));
  if (link.state == Link::State::kSuspect) return Investigate(link);
  if (link.state == Link::State::kUp && link.blocked != SteadyTime{} && now - link.blocked > kConnectLimit)
    return Break(link,
                 Error(Code::kUnavailable, "no connection to the NAM daemon's fabric address within {} s",
                       kConnectLimit.count()));
  if (link.state == Link::State::kUp && link.calls > 0 && now - link.heard > kSilence &&
      link.questions.empty())
    Ask(link, {}, nullptr);
  PostQuestions(link, now);
  Post(link);
}

int Engine::SleepMillis() const {
  int millis = -1;
  for (const std::shared_ptr<Link>& link : links_) {
    if (link->abandoned || link->state == Link::State::kBroken) continue;
    if (link->state != Link::State::kUp || link->blocked != SteadyTime{}) return 1;
    if (link->calls > 0) millis = static_cast<int>(kSilence.count());
  }
  return millis;
}

// --------------------------------------------------------------------------------------------- questions

void Engine::Ask(Link& link, const CheckQuestion& question, Work* work) {
  next_id_ += 0x9e3779b97f4a7c15u;
  link.questions.push_back({next_id_, question, work, false, {}});
}

void Engine::PostQuestions(Link& link, SteadyTime now) {
  for (std::size_t i = 0; i < link.questions.size(); ++i) {
    Question& question = link.questions[i];
    if (question.in_flight || (question.sent != SteadyTime{} && now - question.sent < kAskAgain)) continue;
    const std::uint64_t id = question.id;
    Result<std::vector<std::string>> fragments =
        Fragment({FragmentKind::kCheck, CheckQuestion::kType, id, instance_, port_.address()},
                 wire::Encode(question.question));
    if (!fragments.ok()) return;
    question.in_flight = true;
    question.sent = now;
    if (PostMessage(link, fragments->front(), id)) continue;
    for (Question& unsent : link.questions) {
      if (unsent.id != id) continue;
      unsent.in_flight = false;
      unsent.sent = {};
    }
    return;
  }
}

// Whether the message is of the server that the link is to.
bool Engine::Confirm(Link& link, std::uint64_t instance) {
  if (link.state == Link::State::kBroken) return false;
  if (link.instance == 0) link.instance = instance;
  if (link.instance != instance) {
    Break(link, Error(Code::kUnavailable, "the NAM daemon was restarted"));
    return false;
  }
  link.heard = SteadyNow();
  return true;
}

void Engine::OnAnswer(std::uint64_t id, std::uint64_t instance, const std::string& payload) {
  for (const std::shared_ptr<Link>& link : std::vector<std::shared_ptr<Link>>(links_)) {
    const auto it = std::find_if(link->questions.begin(), link->questions.end(),
                                 [&](const Question& q) { return q.id == id; });
    if (it == link->questions.end()) continue;
    const Result<CheckAnswer> answer = wire::Decode<CheckAnswer>(payload);
    if (!answer.ok() || !Confirm(*link, instance)) return;
    Work* work = it->work;
    link->questions.erase(it);
    if (work != nullptr) {
      std::erase(link->lost, work);
      link->explained |= answer->code != 0;
      Finish(*work, answer->code == 0
                        ? Error(Code::kUnavailable, "the connection was lost in the middle of a transfer")
                        : Status(static_cast<Code>(answer->code), answer->message));
    }
    if (link->state == Link::State::kGreeting) link->state = Link::State::kUp;
    if (link->state == Link::State::kSuspect) Investigate(*link);
    return Post(*link);
  }
}

// --------------------------------------------------------------------------------------------------- loss

// The connection was lost. If that was a refused transfer's doing, the server says so when it is asked.
void Engine::Suspect(Link& link) {
  if (link.state != Link::State::kUp) return;
  link.state = Link::State::kSuspect;
  link.since = SteadyNow();
  link.explained = false;
  link.blocked = {};
  link.probe.Reset();
  std::erase_if(link.questions, [](const Question& q) { return q.work == nullptr; });
  link.outbox.clear();
  FailCalls(link,
            Error(Code::kUnavailable,
                  "the connection to the NAM daemon was lost; the request may have been carried out or not"));
  next_tick_ = {};
}

void Engine::Investigate(Link& link) {
  const Status lost = Error(Code::kUnavailable, "the connection to the NAM daemon was lost");
  if (SteadyNow() - link.since > kInquiryLimit) return Break(link, lost);
  const auto asked = [&](const Work* work) {
    return std::any_of(link.questions.begin(), link.questions.end(),
                       [&](const Question& q) { return q.work == work; });
  };
  for (Work* work : link.lost)
    if (!asked(work)) Ask(link, {work->key.key, work->begin, work->end - work->begin, work->write}, work);
  PostQuestions(link, SteadyNow());
  if (link.state != Link::State::kSuspect || link.in_flight > 0 || !link.lost.empty() ||
      !link.questions.empty())
    return;
  if (!link.explained) return Break(link, lost);
  link.state = Link::State::kUp;
  Post(link);
}

void Engine::FailCalls(Link& link, const Status& why) {
  std::vector<PendingCall*> calls;
  for (const auto& [id, call] : calls_)
    if (call->link == &link) calls.push_back(call);
  for (PendingCall* call : calls) Finish(*call, why);
}

void Engine::Break(Link& link, Status why) {
  if (link.state == Link::State::kBroken) return;
  link.state = Link::State::kBroken;
  link.why = std::move(why);
  link.broken = true;
  link.questions.clear();
  link.outbox.clear();
  FailCalls(link, link.why);
  for (Work* work : std::exchange(link.lost, {})) Finish(*work, link.why);
  for (Work* work : std::exchange(link.unposted, {})) {
    work->failed = true;
    if (work->in_flight == 0) Finish(*work, link.why);
  }
  if (link.in_flight > 0) Cut(link);
}

void Engine::Cut(Link& link) {
  if (!port_.over_tcp()) return;
  CutTcpConnections([&](const TcpConnection& c) {
    return SameSocket(c.peer, link.address) ||
           (SamePort(c.local, port_.address()) && SameHost(c.peer, link.address));
  });
}

}  // namespace msa::nam
