#include "pmi_world.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace msa::jobd {
namespace {

// Replies that a task does not read: it asks one thing at a time, so this many bytes are a broken one's.
constexpr std::size_t kMaxUnsent = 64 * 1024;
// One round reads this many pieces of a socket before others get their turn.
constexpr int kReadsPerRound = 8;

}  // namespace

PmiWorld::PmiWorld(EventLoop& loop, pmi1::ServerOptions options, OnEffect on_effect)
    : loop_(loop), server_(std::move(options)), on_effect_(std::move(on_effect)) {}

PmiWorld::~PmiWorld() {
  for (const auto& [rank, channel] : channels_) loop_.Unwatch(channel.fd.get());
}

Result<UniqueFd> PmiWorld::Connect(Rank rank) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return ErrnoError(errno, fmt::format("make the PMI socket of task {}; raise 'ulimit -n'", rank));
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  MSA_RETURN_IF_ERROR(
      loop_.Watch(ours.get(), EPOLLIN, [this, rank](std::uint32_t events) { OnEvents(rank.value, events); }));
  channels_[rank.value] = {std::move(ours), {}};
  return theirs;
}

// MSG_DONTWAIT at each call: with SOCK_NONBLOCK the task's end, which MPICH reads blocking, would have it
// too.
PmiWorld::Read PmiWorld::ReadOnce(std::uint32_t rank) {
  const auto it = channels_.find(rank);
  if (it == channels_.end()) return Read::kEnd;
  std::array<char, 4096> bytes;
  const ssize_t n = ::recv(it->second.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (n > 0) {
    Run(server_.OnData(rank, {bytes.data(), static_cast<std::size_t>(n)}));
    return Read::kMore;
  }
  if (n < 0 && errno == EINTR) return Read::kMore;
  if (n < 0 && errno == EAGAIN) return Read::kNothing;
  Shut(rank);
  return Read::kEnd;
}

void PmiWorld::OnEvents(std::uint32_t rank, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) Flush(rank);
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
  for (int i = 0; i < kReadsPerRound; ++i)
    if (ReadOnce(rank) != Read::kMore) return;
}

void PmiWorld::Ended(Rank rank) {
  // An abort has no answer: its task may be gone before it is read. What a child of the task goes on to say
  // is nobody's business.
  for (int i = 0; i < kReadsPerRound; ++i)
    if (ReadOnce(rank.value) != Read::kMore) break;
  Shut(rank.value);
}

void PmiWorld::Send(std::uint32_t rank, const std::string& text) {
  const auto it = channels_.find(rank);
  if (it == channels_.end()) return;
  it->second.unsent += text;
  Flush(rank);
}

void PmiWorld::Flush(std::uint32_t rank) {
  const auto it = channels_.find(rank);
  if (it == channels_.end()) return;
  auto& [fd, unsent] = it->second;
  while (!unsent.empty()) {
    const ssize_t n = ::send(fd.get(), unsent.data(), unsent.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && unsent.size() <= kMaxUnsent) break;
    if (n < 0) return Shut(rank);
    unsent.erase(0, static_cast<std::size_t>(n));
  }
  loop_.Modify(fd.get(), unsent.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void PmiWorld::Shut(std::uint32_t rank) {
  const auto it = channels_.find(rank);
  if (it == channels_.end()) return;
  loop_.Unwatch(it->second.fd.get());
  channels_.erase(it);
  server_.OnGone(rank);
}

void PmiWorld::Run(pmi1::Effects effects) {
  for (pmi1::Effect& effect : effects) {
    if (const auto* reply = std::get_if<pmi1::Reply>(&effect)) {
      Send(reply->rank, reply->text);
      continue;
    }
    if (const auto* close = std::get_if<pmi1::Close>(&effect)) Shut(close->rank);
    on_effect_(std::move(effect));
  }
}

}  // namespace msa::jobd
