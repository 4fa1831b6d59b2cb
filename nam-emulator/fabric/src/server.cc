#include "server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "msa/base/nam_replies.h"

namespace msa::nam {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// 64 clients with four requests each; more wait in the transport.
constexpr std::size_t kReceives = 256;
// An answer to a client that polls comes within this; then sleeping costs nobody anything.
constexpr auto kSpin = microseconds(50);
// Transfers pass by without a completion here. So after kSpin it is looked at for this long whether anything
// still comes: longer than the 10 us between two small transfers of one client. (Looking at the descriptor
// all the time costs 1 us for each.)
constexpr auto kWatch = microseconds(20);
// With answers that cannot be sent yet, which no event may announce (a connection that is being made).
constexpr int kRetryMillis = 5;
// Between two looks for dead connections, if anything happens at all: 0.1 ms of work each.
constexpr auto kLook = std::chrono::milliseconds(200);
constexpr auto kPatience = seconds(5);
constexpr std::uint32_t kSendsPerClient = 32;
constexpr std::size_t kQueuedPerClient = 2 * kMaxMessageBytes;
constexpr std::size_t kQueued = 8 * kMaxMessageBytes;
// 300 bytes each; the longest silent one is forgotten beyond, which costs it nothing but a look-up.
constexpr std::size_t kClients = 16384;

// Faults are answered on the thread that makes them; everything else is for the process's other threads.
void BlockSignals() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&set, fault);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Open(FabricServerOptions options, Handler handler) {
  MSA_ASSIGN_OR_RETURN(Port port, Port::Open({options.provider, options.host, options.port}));
  std::unique_ptr<Server> server(new Server(std::move(port), std::move(options), std::move(handler)));
  MSA_RETURN_IF_ERROR(server->Begin());
  return server;
}

Server::Server(Port port, FabricServerOptions options, Handler handler)
    : options_(std::move(options)), handler_(std::move(handler)), port_(std::move(port)) {
  memory_ = std::make_unique<ExposedMemory>(
      port_, ExposedMemory::Options{.connections = [this](const TcpConnection& c) { return IsOurs(c); },
                                    .progress = [this] { DriveOrWait(); }});
}

Server::~Server() {
  stop_ = true;
  Wake();
  if (thread_.joinable()) thread_.join();
}

Status Server::Begin() {
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return ErrnoError(errno, "eventfd");
  for (std::size_t i = 0; i < kReceives; ++i) {
    receives_.push_back(std::make_unique<Receive>());
    receives_.back()->buffer = std::make_unique<char[]>(kFragmentBytes);
    Post(*receives_.back());
  }
  if (unposted_.size() == kReceives)
    return Error(Code::kUnavailable, "{} takes no receive buffers", port_.provider());
  thread_ = std::thread([this] { Run(); });
  return Status::Ok();
}

Result<FabricKey> Server::Register(void* base, Bytes bytes, Access access) {
  return memory_->Add(base, bytes, access);
}

void Server::Unregister(std::uint64_t key) { memory_->Remove(key); }

void Server::Wake() {
  const std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

void Server::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

// ------------------------------------------------------------------------------------------------- progress

void Server::Run() {
  BlockSignals();
  SteadyTime active = SteadyNow(), looked = active;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (Poll()) active = SteadyNow();
    HandleArrivals();
    SendQueued();
    if (SteadyNow() - active < kSpin) continue;
    Sleep();
    active = SteadyNow();
    if (active - looked < kLook) continue;
    DropEnded();
    looked = active;
  }
}

// libfabric 1.17 never closes a connection that ended before it said what it is (a port scan, a client killed
// as it connects), and its socket may be readable for ever, so that the thread would not sleep again. When
// reading fails it is closed. No other connection is in that state at two looks: this thread has polled in
// between.
void Server::DropEnded() {
  if (!port_.over_tcp()) return;
  const std::set<ino_t> before =
      std::exchange(ended_, TcpConnections([this](const TcpConnection& c) { return c.ended && IsOurs(c); }));
  ResetTcpConnections(
      [&](const TcpConnection& c) { return c.ended && before.count(c.inode) != 0 && IsOurs(c); });
}

// Whether anything came.
bool Server::Poll() {
  fi_cq_msg_entry entries[16];
  fi_addr_t sources[16];
  const ssize_t got = fi_cq_readfrom(port_.cq(), entries, std::size(entries), sources);
  for (ssize_t i = 0; i < got; ++i) OnCompletion(entries[i], sources[i]);
  if (got == -FI_EAVAIL) OnError();
  return got > 0 || got == -FI_EAVAIL;
}

void Server::Sleep() {
  if (!port_.MaySleep()) return;
  pollfd fds[] = {{port_.wait_fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  bool ready = false;
  for (const SteadyTime until = SteadyNow() + kWatch; !ready && SteadyNow() < until;)
    ready = poll(fds, std::size(fds), 0) > 0;
  const bool retry = !waiting_.empty() || !unposted_.empty();
  if (!ready) poll(fds, std::size(fds), retry ? kRetryMillis : -1);
  std::uint64_t count = 0;
  (void)!read(wake_.get(), &count, sizeof count);
}

void Server::OnCompletion(const fi_cq_msg_entry& entry, fi_addr_t source) {
  auto* operation = static_cast<Operation*>(entry.op_context);
  if (operation == nullptr) return;
  if (operation->kind == Operation::Kind::kSend)
    OnSent(static_cast<Send&>(*operation), Status::Ok());
  else
    arrivals_.push_back({static_cast<Receive*>(operation), entry.len, source});
}

void Server::OnError() {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(port_.cq(), &error, 0) <= 0) return;
  auto* operation = static_cast<Operation*>(error.op_context);
  if (operation == nullptr) return;
  if (operation->kind == Operation::Kind::kSend)
    OnSent(static_cast<Send&>(*operation), FabricError(error.err, "send an answer"));
  else
    unposted_.push_back(static_cast<Receive*>(operation));  // a message that was too long for it
}

void Server::Post(Receive& receive) {
  if (fi_recv(port_.ep(), receive.buffer.get(), kFragmentBytes, nullptr, FI_ADDR_UNSPEC, &receive.context) !=
      0)
    unposted_.push_back(&receive);
}

void Server::DriveOrWait() {
  if (std::this_thread::get_id() == thread_.get_id()) {
    Poll();
  } else {
    Wake();
    std::this_thread::sleep_for(microseconds(200));
  }
}

// ------------------------------------------------------------------------------------------------- requests

void Server::HandleArrivals() {
  for (Receive* receive : std::exchange(unposted_, {})) Post(*receive);
  while (!arrivals_.empty()) {
    const Arrival arrival = arrivals_.front();
    arrivals_.pop_front();
    if (const Status status = HandleArrival(arrival); !status.ok()) Log("dropped: " + status.message());
    Post(*arrival.receive);
  }
}

Status Server::HandleArrival(const Arrival& arrival) {
  MSA_ASSIGN_OR_RETURN(
      const ParsedFragment fragment,
      ParseFragment({arrival.receive->buffer.get(), std::min(arrival.bytes, kFragmentBytes)}));
  if (fragment.head.kind != FragmentKind::kRequest && fragment.head.kind != FragmentKind::kCheck)
    return Error(Code::kInvalidArgument, "fabric message of kind {}, which only a server sends",
                 static_cast<int>(fragment.head.kind));
  MSA_ASSIGN_OR_RETURN(Client * client, Admit(std::string(fragment.head.address), arrival.source));
  MSA_ASSIGN_OR_RETURN(std::optional<Message> message, reassembler_.Add(fragment));
  if (message) HandleMessage(*client, std::move(*message));
  return Status::Ok();
}

void Server::HandleMessage(Client& client, Message message) {
  FragmentHead head;
  head.id = message.id;
  head.instance = instance_;
  if (message.kind == FragmentKind::kCheck) {
    const Result<CheckQuestion> question = wire::Decode<CheckQuestion>(message.payload);
    if (!question.ok()) return Log("dropped: " + question.status().message());
    head.kind = FragmentKind::kChecked;
    head.type = CheckAnswer::kType;
    return Answer(client, head, wire::Encode(memory_->Check(*question)));
  }
  const std::string from = client.address;
  wire::Frame answer = handler_(from, {message.type, 0, message.id, std::move(message.payload)});
  head.kind = FragmentKind::kReply;
  head.type = answer.type;
  if (answer.payload.size() > kMaxMessageBytes) {
    const std::string text = fmt::format("an answer of {} bytes, at most {} go over the fabric",
                                         answer.payload.size(), kMaxMessageBytes);
    head.type = wire::NamFailed::kType;
    answer.payload = wire::Encode(wire::NamFailed{static_cast<std::uint8_t>(Code::kResourceExhausted), text});
  }
  // To take memory back, a handler may make progress, in which a client is given up.
  if (const auto it = clients_.find(from); it != clients_.end()) Answer(*it->second, head, answer.payload);
}

// ------------------------------------------------------------------------------------------------- clients

// The client at `address`, if it can be the one that the transport names as the message's source. Before an
// address is in libfabric's table the transport cannot name it.
Result<Server::Client*> Server::Admit(const std::string& address, fi_addr_t source) {
  const auto named = by_source_.find(source);
  const auto it = clients_.find(address);
  if (named != by_source_.end() ? named->second->address != address
                                : it != clients_.end() && it->second->confirmed)
    return Error(Code::kPermissionDenied, "message in the name of another endpoint");
  if (it == clients_.end()) return Add(address);
  Client& client = *it->second;
  client.confirmed = named != by_source_.end();
  order_.splice(order_.end(), order_, client.in_order);
  return &client;
}

Result<Server::Client*> Server::Add(const std::string& address) {
  const std::string& own = port_.address();
  const bool socket =
      port_.info().addr_format == FI_SOCKADDR_IN || port_.info().addr_format == FI_SOCKADDR_IN6;
  if (address.size() != own.size() ||
      (socket && (address.compare(0, 2, own, 0, 2) != 0 || PortOf(address) == 0)))
    return Error(Code::kInvalidArgument, "message without an address that could be answered to");
  if (clients_.size() >= kClients) {
    for (Client* oldest : order_) {
      if (oldest->in_flight > 0 || !oldest->queue.empty()) continue;
      Remove(*oldest);
      break;
    }
  }
  auto client = std::make_unique<Client>();
  client->address = address;
  if (fi_av_insert(port_.av(), address.data(), 1, &client->at, 0, nullptr) != 1)
    return Error(Code::kInvalidArgument, "message from an address that {} cannot use", port_.provider());
  client->in_order = order_.insert(order_.end(), client.get());
  {
    MutexLock lock(dialed_mu_);
    dialed_.insert(address);
  }
  Client* out = client.get();
  by_source_[client->at] = out;
  clients_.emplace(address, std::move(client));
  return out;
}

void Server::Remove(Client& client) {
  fi_av_remove(port_.av(), &client.at, 1, 0);
  by_source_.erase(client.at);
  order_.erase(client.in_order);
  waiting_.erase(&client);
  {
    MutexLock lock(dialed_mu_);
    dialed_.erase(client.address);
  }
  clients_.erase(std::string(client.address));
}

// A connection that a client has made comes to our port; when it is lost, an answer makes libfabric connect
// to the client's.
bool Server::IsOurs(const TcpConnection& connection) {
  if (SamePort(connection.local, port_.address())) return true;
  MutexLock lock(dialed_mu_);
  for (const std::string& address : dialed_)
    if (SameSocket(connection.peer, address)) return true;
  return false;
}

// ------------------------------------------------------------------------------------------------- answers

void Server::Answer(Client& client, const FragmentHead& head, const std::string& payload) {
  Result<std::vector<std::string>> fragments = Fragment(head, payload);
  if (!fragments.ok()) return Log("dropped: " + fragments.status().message());
  if (client.queued_bytes + payload.size() > kQueuedPerClient || queued_bytes_ + payload.size() > kQueued)
    return GiveUp(client, fmt::format("{} bytes of answers wait already", client.queued_bytes));
  if (client.queue.empty()) client.moved = SteadyNow();
  for (std::string& fragment : *fragments) {
    client.queued_bytes += fragment.size();
    queued_bytes_ += fragment.size();
    client.queue.push_back(std::move(fragment));
  }
  SendFrom(client);
}

void Server::SendFrom(Client& client) {
  while (!client.queue.empty() && client.in_flight < kSendsPerClient) {
    if (spare_sends_.empty()) {
      sends_.push_back(std::make_unique<Send>());
      sends_.back()->kind = Operation::Kind::kSend;
      spare_sends_.push_back(sends_.back().get());
    }
    Send& send = *spare_sends_.back();
    send.client = &client;
    send.bytes.swap(client.queue.front());
    const ssize_t code =
        fi_send(port_.ep(), send.bytes.data(), send.bytes.size(), nullptr, client.at, &send.context);
    if (code == -FI_EAGAIN) {
      send.bytes.swap(client.queue.front());
      break;
    }
    if (code != 0) return GiveUp(client, FabricError(code, "fi_send").message());
    spare_sends_.pop_back();
    client.queue.pop_front();
    client.queued_bytes -= send.bytes.size();
    queued_bytes_ -= send.bytes.size();
    client.moved = SteadyNow();
    ++client.in_flight;
  }
  if (client.queue.empty())
    waiting_.erase(&client);
  else
    waiting_.insert(&client);
}

void Server::SendQueued() {
  if (waiting_.empty()) return;
  const SteadyTime now = SteadyNow();
  for (Client* client : std::vector<Client*>(waiting_.begin(), waiting_.end())) {
    if (now - client->moved > kPatience)
      GiveUp(*client, fmt::format("it has taken none for {} s", kPatience.count()));
    else
      SendFrom(*client);
  }
}

void Server::OnSent(Send& send, const Status& status) {
  Client& client = *send.client;
  send.bytes.clear();
  spare_sends_.push_back(&send);
  --client.in_flight;
  client.moved = SteadyNow();
  if (!status.ok()) GiveUp(client, status.message());
}

void Server::GiveUp(Client& client, const std::string& why) {
  Log(fmt::format("answers to a client dropped: {}", why));
  queued_bytes_ -= client.queued_bytes;
  client.queued_bytes = 0;
  client.queue.clear();
  waiting_.erase(&client);
  if (client.in_flight == 0) Remove(client);
}

}  // namespace msa::nam
