// Any bytes from a peer that lacks the job's secret: the handshake never ends, so no byte gets through, in
// either direction. The first byte of the input tells which side is attacked, the second the size of the
// pieces.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tls_stream.h"

namespace {

msa::jobd::TlsContext& Context() {
  static msa::jobd::TlsContext context;
  static const bool ready = context.SetSecret("1.1", std::string(64, 'a')).ok();
  if (!ready) std::abort();
  return context;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  const msa::UniqueFd peer(ends[1]);
  auto stream =
      data[0] % 2 == 0 ? Context().Server(msa::UniqueFd(ends[0])) : Context().Client(msa::UniqueFd(ends[0]));
  if (!stream.ok()) std::abort();
  const std::size_t step = data[1] + std::size_t{1};
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::array<char, 256> buffer{};
  for (;;) {
    if ((*stream)->Write("x", 1).outcome == msa::IoOutcome::kDone) std::abort();
    const msa::IoResult got = (*stream)->Read(buffer.data(), buffer.size());
    if (got.outcome == msa::IoOutcome::kDone) std::abort();
    if (got.outcome == msa::IoOutcome::kError || got.outcome == msa::IoOutcome::kClosed || rest.empty())
      break;
    // What the stream said is thrown away: a full socket would block it.
    while (::recv(peer.get(), buffer.data(), buffer.size(), MSG_DONTWAIT) > 0) continue;
    const std::size_t piece = std::min(step, rest.size());
    if (::send(peer.get(), rest.data(), piece, MSG_NOSIGNAL) != static_cast<ssize_t>(piece)) break;
    rest.remove_prefix(piece);
  }
  return 0;
}
