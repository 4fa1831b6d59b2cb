#pragma once
// Descriptors beside the bytes of a Unix stream socket (SCM_RIGHTS). The calls wait for nothing, raise no
// SIGPIPE, and start again after a signal. Any thread.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "msa/base/unique_fd.h"

namespace msa {

// The kernel's limit for one message.
inline constexpr std::size_t kMostDescriptorsSent = 253;
// More than anybody here sends with one message (2); further ones the kernel closes.
inline constexpr std::size_t kMostDescriptorsReceived = 8;

struct SentBytes {
  std::size_t bytes = 0;  // from the first on
  int error = 0;  // errno if none went: EAGAIN: the socket is full; EPIPE, ECONNRESET: the peer is gone;
                  // ETOOMANYREFS: as many descriptors of this user are on their way as it may have open
};
// Sends some of `bytes`, which are not empty, and with the first of them the descriptors, which stay open
// here. EINVAL: more than kMostDescriptorsSent.
SentBytes SendWithDescriptors(int socket, std::string_view bytes, std::span<const int> descriptors);

struct ReceivedBytes {
  std::size_t bytes = 0;              // 0 without an error: the peer has closed its side
  int error = 0;                      // errno: EAGAIN: nothing is there; ECONNRESET
  std::vector<UniqueFd> descriptors;  // that came with them, in order, close-on-exec
};
ReceivedBytes ReceiveWithDescriptors(int socket, std::span<char> buffer);

}  // namespace msa
