#include "job_socket_double.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace msa::support {
namespace {

void Send(int fd, const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;  // the task is gone
    at += static_cast<std::size_t>(sent);
  }
}

}  // namespace

JobSocketDouble::JobSocketDouble(std::string path, Judge judge)
    : path_(std::move(path)),
      judge_(std::move(judge)),
      listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 64) != 0)
    std::abort();
  thread_ = std::thread([this] { Run(); });
}

JobSocketDouble::~JobSocketDouble() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
  ::unlink(path_.c_str());
}

wire::SpawnVerdict JobSocketDouble::Grant(const wire::SpawnAsk& ask, std::vector<std::uint32_t> counts) {
  wire::SpawnVerdict verdict;
  for (const wire::SpawnCommand& command : ask.commands) {
    verdict.counts.push_back(command.maxprocs);
    verdict.programs.push_back(command.program);
    verdict.wdirs.push_back(command.wdir);
  }
  if (!counts.empty()) verdict.counts = std::move(counts);
  const bool some =
      std::any_of(verdict.counts.begin(), verdict.counts.end(), [](std::uint32_t n) { return n > 0; });
  if (some) verdict.ticket = "ticket-of-the-test";
  if (some) verdict.nspace = "children";
  return verdict;
}

wire::SpawnVerdict JobSocketDouble::Refuse(wire::SpawnRefusal kind, std::string reason) {
  wire::SpawnVerdict verdict;
  verdict.refusal = kind;
  verdict.reason = std::move(reason);
  return verdict;
}

JobSocketDouble::Record JobSocketDouble::record() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

void JobSocketDouble::ForgetRecord() {
  const std::lock_guard lock(mutex_);
  const std::size_t connections = record_.connections;
  record_ = Record{};
  record_.connections = connections;
}

void JobSocketDouble::Answer(const wire::SpawnVerdict& verdict) {
  const std::lock_guard lock(mutex_);
  if (pending_.empty()) return;
  Send(pending_.front().fd, wire::Pack(verdict, pending_.front().id));
  pending_.erase(pending_.begin());
}

void JobSocketDouble::Run() {
  for (;;) {
    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& [fd, client] : clients_) fds.push_back({fd, POLLIN, 0});
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) return;
    if (fds[1].revents != 0) {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const int number = fd.get();
      if (number >= 0) clients_.emplace(number, Client{std::move(fd), wire::FrameReader()});
    }
    for (std::size_t i = 2; i < fds.size(); ++i)
      if (fds[i].revents != 0 && !Read(clients_.at(fds[i].fd))) {
        const std::lock_guard lock(mutex_);
        std::erase_if(pending_, [&](const Pending& p) { return p.fd == fds[i].fd; });
        clients_.erase(fds[i].fd);
      }
    const std::lock_guard lock(mutex_);
    record_.connections = clients_.size();
  }
}

bool JobSocketDouble::Read(Client& client) {
  char bytes[65536];
  const ssize_t got = ::recv(client.fd.get(), bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  client.reader.Append({bytes, static_cast<std::size_t>(got)});
  for (;;) {
    auto frame = client.reader.Next();
    if (!frame.ok()) return false;
    if (!frame->has_value()) return true;
    if (!Handle(client, **frame)) return false;
  }
}

bool JobSocketDouble::Handle(Client& client, const wire::Frame& frame) {
  const std::lock_guard lock(mutex_);
  if (frame.type == wire::TaskHello::kType) {
    const auto hello = wire::Decode<wire::TaskHello>(frame.payload);
    if (!hello.ok() || deaf_) return false;
    record_.hellos.push_back(*hello);
    wire::TaskWelcome welcome;
    welcome.world_size = world_size_;
    Send(client.fd.get(), wire::Pack(welcome, frame.id));
  } else if (frame.type == wire::SpawnAsk::kType) {
    const auto ask = wire::Decode<wire::SpawnAsk>(frame.payload);
    if (!ask.ok()) return false;
    record_.asks.push_back(*ask);
    if (const auto verdict = judge_(*ask))
      Send(client.fd.get(), wire::Pack(*verdict, frame.id));
    else
      pending_.push_back({client.fd.get(), frame.id});
  } else if (frame.type == wire::SpawnWithdraw::kType) {
    const auto withdraw = wire::Decode<wire::SpawnWithdraw>(frame.payload);
    if (withdraw.ok()) record_.withdrawn.push_back(withdraw->ticket);
  } else if (frame.type == wire::Disconnected::kType) {
    const auto disconnected = wire::Decode<wire::Disconnected>(frame.payload);
    if (disconnected.ok()) record_.disconnected.push_back(disconnected->nspace);
  } else {
    return false;
  }
  return true;
}

}  // namespace msa::support
