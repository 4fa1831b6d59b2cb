#include "engine.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "tcp_connections.h"

namespace msa::nam {
namespace {

// Answers of a server: as many as requests wait, and what a broken server sends.
constexpr std::size_t kReceives = 32;
constexpr std::size_t kMaxPieces = 4;  // in one operation; tcp;ofi_rxm takes no more
// An operation's most: several of a large transfer are on their way, and an end in between costs little.
constexpr std::uint64_t kChunk = std::uint64_t{16} << 20;

std::atomic<unsigned> g_forks{0};
void OnFork() noexcept { g_forks.fetch_add(1); }

unsigned ForkGeneration() {
  static const int registered = pthread_atfork(nullptr, nullptr, &OnFork);
  (void)registered;
  return g_forks.load(std::memory_order_relaxed);
}

}  // namespace

bool Engine::forked() const noexcept { return g_forks.load(std::memory_order_relaxed) != generation_; }

Engine::Engine(Port port)
    : generation_(ForkGeneration()),
      instance_(RandomBits()),
      next_id_(RandomBits()),
      port_(std::move(port)) {}

Result<std::shared_ptr<Engine>> Engine::Open(const PortOptions& options) {
  MSA_ASSIGN_OR_RETURN(Port port, Port::Open(options));
  std::shared_ptr<Engine> engine(new Engine(std::move(port)));
  const GateLock lock(engine->gate_);
  MSA_RETURN_IF_ERROR(engine->Begin());
  return engine;
}

Status Engine::Begin() {
  kick_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!kick_) return ErrnoError(errno, "eventfd");
  for (std::size_t i = 0; i < kReceives; ++i) {
    operations_.push_back(std::make_unique<Operation>());
    operations_.back()->bytes.resize(kFragmentBytes);
    PostReceive(*operations_.back());
  }
  if (unposted_receives_.size() == kReceives)
    return Error(Code::kUnavailable, "{} takes no receive buffers", port_.provider());
  return Status::Ok();
}

Engine::~Engine() {
  {
    const GateLock lock(gate_);
    stop_ = true;
    thread_wanted_.notify_all();
    Kick();
  }
  if (thread_.joinable()) thread_.join();
}

Result<std::shared_ptr<Link>> Engine::Connect(const std::string& address) {
  const bool socket =
      port_.info().addr_format == FI_SOCKADDR_IN || port_.info().addr_format == FI_SOCKADDR_IN6;
  if (address.size() != port_.address().size() ||
      (socket && (address.compare(0, 2, port_.address(), 0, 2) != 0 || PortOf(address) == 0)))
    return Error(Code::kInvalidArgument, "fabric address of {} bytes; one of {} with {} bytes was expected",
                 address.size(), port_.provider(), port_.address().size());
  Known& known = known_[address];
  if (known.links == 0 && fi_av_insert(port_.av(), address.data(), 1, &known.at, 0, nullptr) != 1) {
    known_.erase(address);
    return Error(Code::kInvalidArgument, "fabric address that {} cannot use", port_.provider());
  }
  ++known.links;
  auto link = std::make_shared<Link>();
  link->address = address;
  link->at = known.at;
  link->since = SteadyNow();
  links_.push_back(link);
  Ask(*link, {}, nullptr);
  return link;
}

void Engine::Leave(Link& link) {
  link.abandoned = true;
  link.questions.clear();
  link.outbox.clear();
  Tick(SteadyNow());
}

// ---------------------------------------------------------------------------------------------- operations

Operation& Engine::Take(Operation::Kind kind, Link& link) {
  if (spare_ == nullptr) {
    operations_.push_back(std::make_unique<Operation>());
    spare_ = operations_.back().get();
  }
  Operation& operation = *spare_;
  spare_ = operation.next_spare;
  operation.kind = kind;
  operation.link = &link;
  operation.question = 0;
  ++link.in_flight;
  return operation;
}

void Engine::Give(Operation& operation) {
  --operation.link->in_flight;
  operation.link = nullptr;
  operation.work = nullptr;
  operation.bytes.clear();
  operation.next_spare = spare_;
  spare_ = &operation;
}

void Engine::PostReceive(Operation& operation) {
  if (fi_recv(port_.ep(), operation.bytes.data(), operation.bytes.size(), nullptr, FI_ADDR_UNSPEC,
              &operation.context) != 0)
    unposted_receives_.push_back(&operation);
}

bool Engine::Poll() {
  fi_cq_msg_entry entries[16];
  const ssize_t got = fi_cq_read(port_.cq(), entries, std::size(entries));
  for (ssize_t i = 0; i < got; ++i)
    if (entries[i].op_context != nullptr)
      OnCompletion(*static_cast<Operation*>(entries[i].op_context), entries[i].len);
  if (got == -FI_EAVAIL) OnError();
  return got > 0 || got == -FI_EAVAIL;
}

void Engine::OnCompletion(Operation& operation, std::size_t bytes) {
  if (operation.kind == Operation::Kind::kTransfer) return OnTransferred(operation, Status::Ok());
  if (operation.kind == Operation::Kind::kSend) return OnSent(operation, Status::Ok());
  OnArrival({operation.bytes.data(), std::min(bytes, operation.bytes.size())});
  PostReceive(operation);
}

void Engine::OnError() {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(port_.cq(), &error, 0) <= 0 || error.op_context == nullptr) return;
  auto& operation = *static_cast<Operation*>(error.op_context);
  if (operation.kind == Operation::Kind::kReceive) return PostReceive(operation);
  const Status status = FabricError(error.err, port_.provider());
  if (operation.kind == Operation::Kind::kSend) return OnSent(operation, status);
  OnTransferred(operation, status);
}

void Engine::OnTransferred(Operation& operation, const Status& status) {
  Link& link = *operation.link;
  Work* work = operation.work;
  Give(operation);
  if (!status.ok()) Suspect(link);
  if (work == nullptr) return;
  --work->in_flight;
  if (!status.ok() && !work->failed) {
    work->failed = true;
    std::erase(link.unposted, work);
  }
  if (work->in_flight == 0) {
    if (!work->failed) {
      if (work->piece == work->pieces.size()) Finish(*work, Status::Ok());
    } else if (link.broken) {
      Finish(*work, link.why);
    } else {
      link.lost.push_back(work);
    }
  }
  if (!link.unposted.empty()) Post(link);
}

void Engine::OnSent(Operation& operation, const Status& status) {
  Link& link = *operation.link;
  const std::uint64_t question = operation.question;
  Give(operation);
  for (Question& q : link.questions) {
    if (q.id != question) continue;
    q.in_flight = false;
    if (!status.ok()) q.sent = {};
  }
  if (!status.ok()) Suspect(link);
  if (!link.outbox.empty()) Post(link);
}

void Engine::OnArrival(std::string_view bytes) {
  const Result<ParsedFragment> fragment = ParseFragment(bytes);
  if (!fragment.ok()) return;
  const FragmentHead& head = fragment->head;
  const auto call = calls_.find(head.id);
  const bool reply = head.kind == FragmentKind::kReply && call != calls_.end();
  if (!reply && head.kind != FragmentKind::kChecked) return;
  if (!reply && fragment->parts != 1) return;
  if (!reply) return OnAnswer(head.id, head.instance, std::string(fragment->payload));
  if (!Confirm(*call->second->link, head.instance)) return;
  Result<std::optional<Message>> message = reassembler_.Add(*fragment);
  if (!message.ok() || !*message) return;
  PendingCall& pending = *call->second;
  pending.reply = {(*message)->type, 0, pending.id, std::move((*message)->payload)};
  Finish(pending, Status::Ok());
}

// ------------------------------------------------------------------------------------------------- posting

void Engine::Post(Link& link) {
  while (link.state == Link::State::kUp && !link.outbox.empty()) {
    if (!PostMessage(link, link.outbox.front().bytes, 0)) return;
    link.outbox.pop_front();
  }
  while (link.state == Link::State::kUp && !link.unposted.empty()) {
    Work& work = *link.unposted.front();
    if (!PostWork(link, work)) return;
    if (!link.unposted.empty() && link.unposted.front() == &work) link.unposted.pop_front();
  }
}

// Whether it was posted, taking `bytes`.
bool Engine::PostMessage(Link& link, std::string& bytes, std::uint64_t question) {
  Operation& operation = Take(Operation::Kind::kSend, link);
  operation.question = question;
  operation.bytes.swap(bytes);
  const ssize_t code = fi_send(port_.ep(), operation.bytes.data(), operation.bytes.size(), nullptr, link.at,
                               &operation.context);
  if (code == 0) {
    link.blocked = {};
    return true;
  }
  operation.bytes.swap(bytes);
  Give(operation);
  if (code == -FI_EAGAIN)
    NoteBlocked(link);
  else
    Suspect(link);
  return false;
}

// Whether nothing of it is left to be posted.
bool Engine::PostWork(Link& link, Work& work) {
  const fi_tx_attr& limits = *port_.info().tx_attr;
  const std::size_t most = std::min({kMaxPieces, limits.iov_limit, limits.rma_iov_limit});
  const std::uint64_t chunk = std::min<std::uint64_t>(kChunk, port_.info().ep_attr->max_msg_size);
  while (work.piece < work.pieces.size()) {
    iovec local[kMaxPieces];
    fi_rma_iov remote[kMaxPieces];
    std::size_t count = 0, piece = work.piece;
    std::uint64_t posted = work.posted, bytes = 0;
    while (count < std::max<std::size_t>(most, 1) && bytes < chunk && piece < work.pieces.size()) {
      const FabricPiece& from = work.pieces[piece];
      const std::uint64_t part = std::min(from.bytes - posted, chunk - bytes);
      if (part > 0) {
        local[count] = {static_cast<char*>(from.local) + posted, part};
        remote[count++] = {work.key.base + from.offset + posted, part, work.key.key};
      }
      bytes += part;
      posted += part;
      if (posted == from.bytes) {
        ++piece;
        posted = 0;
      }
    }
    if (count > 0) {
      Operation& operation = Take(Operation::Kind::kTransfer, link);
      operation.work = &work;
      fi_msg_rma message{local, nullptr, count, link.at, remote, count, &operation.context, 0};
      const ssize_t code = work.write
                               ? fi_writemsg(port_.ep(), &message, FI_DELIVERY_COMPLETE | FI_COMPLETION)
                               : fi_readmsg(port_.ep(), &message, FI_COMPLETION);
      if (code != 0) {
        Give(operation);
        if (code == -FI_EAGAIN)
          NoteBlocked(link);
        else
          Suspect(link);
        return false;
      }
      ++work.in_flight;
    }
    work.piece = piece;
    work.posted = posted;
  }
  link.blocked = {};
  if (work.in_flight == 0) Finish(work, Status::Ok());  // nothing but empty pieces
  return true;
}

// libfabric takes nothing: its queue is full, and goes on when operations end; or it is connecting.
void Engine::NoteBlocked(Link& link) {
  if (link.in_flight > 0 || link.blocked != SteadyTime{}) return;
  link.blocked = SteadyNow();
  link.probe.Reset();
}

// ---------------------------------------------------------------------------------------- works and calls

void Engine::Start(const std::shared_ptr<Link>& link, Work& work) {
  if (work.asynchronous) ++asynchronous_;
  work.begin = UINT64_MAX;
  for (const FabricPiece& piece : work.pieces) {
    const std::uint64_t most = UINT64_MAX - work.key.base;
    if (piece.offset > most || piece.bytes > most - piece.offset)
      return Finish(
          work, Error(Code::kOutOfRange, "{} bytes at offset {}: beyond 64 bits", piece.bytes, piece.offset));
    work.begin = std::min(work.begin, piece.offset);
    work.end = std::max(work.end, piece.offset + piece.bytes);
  }
  if (link->state == Link::State::kBroken) return Finish(work, link->why);
  const bool at_once = link->state == Link::State::kUp && link->unposted.empty();
  if (at_once && PostWork(*link, work)) return;
  if (!work.finished) link->unposted.push_back(&work);
}

void Engine::Abandon(Link& link, Work& work) {
  std::erase(link.unposted, &work);
  std::erase(link.lost, &work);
  std::erase_if(link.questions, [&](const Question& q) { return q.work == &work; });
  const Status status =
      Error(Code::kDeadlineExceeded, "a transfer of the fabric was given up at its deadline");
  if (work.in_flight > 0) {
    work.failed = true;
    Break(link, Error(Code::kUnavailable, "a transfer ran past its deadline, so the connection was ended"));
    // The operations come back as soon as the connection is closed; over a network card, when it gives them
    // up. Until then the program's memory is theirs, whatever its deadline.
    while (!work.finished) {
      Drive(work.finished, SteadyNow() + std::chrono::milliseconds(500));
      if (!work.finished) Cut(link);
    }
  }
  if (!work.finished) Finish(work, status);
}

void Engine::Start(PendingCall& call, std::uint16_t type, const std::string& payload) {
  Link& link = *call.link;
  if (link.state == Link::State::kBroken) {
    call.status = link.why;
    call.finished = true;
    return;
  }
  // Odd, and so prime to 2^64: no id comes twice, and none tells the next.
  call.id = next_id_ += 0x9e3779b97f4a7c15u;
  Result<std::vector<std::string>> fragments =
      Fragment({FragmentKind::kRequest, type, call.id, instance_, port_.address()}, payload);
  if (!fragments.ok()) {
    call.status = fragments.status();
    call.finished = true;
    return;
  }
  for (std::string& fragment : *fragments) link.outbox.push_back({call.id, std::move(fragment)});
  calls_.emplace(call.id, &call);
  if (link.calls++ == 0) link.heard = SteadyNow();
  Post(link);
}

void Engine::Abandon(PendingCall& call) {
  std::erase_if(call.link->outbox, [&](const Link::Outgoing& out) { return out.id == call.id; });
  Finish(call, Error(Code::kDeadlineExceeded,
                     "no answer over the fabric in time; it may have been carried out or not"));
}

void Engine::Finish(Work& work, Status status) {
  if (work.finished) return;
  work.status = std::move(status);
  work.finished = true;
  if (work.asynchronous) --asynchronous_;
  TellFollowers();
}

void Engine::Finish(PendingCall& call, Status status) {
  if (call.finished) return;
  call.status = std::move(status);
  call.finished = true;
  calls_.erase(call.id);
  --call.link->calls;
  TellFollowers();
}

}  // namespace msa::nam
