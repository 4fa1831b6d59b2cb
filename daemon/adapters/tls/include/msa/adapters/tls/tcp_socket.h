#pragma once
// TCP sockets by "HOST:PORT" or "[HOST]:PORT", non-blocking and close-on-exec. Names are resolved: both may
// block.

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

// The addresses of a name, as numbers; IPv4 ones never mapped to IPv6. At least one. kUnavailable: unknown.
Result<std::vector<std::string>> AddressesOf(const std::string& host);
// The number in an address of the kernel's, likewise; "?" if it has none.
std::string NumberOf(const sockaddr* address, socklen_t size);
// kInvalidArgument: no such form; kUnavailable: the name is unknown; kAlreadyExists: the port is taken.
Result<UniqueFd> ListenTcp(const std::string& address);
Result<std::uint16_t> PortOf(int listener);
// Tries each address of the name. kUnavailable: nobody listens, or no answer until `deadline`.
Result<UniqueFd> ConnectTcp(const std::string& address, SteadyTime deadline);

}  // namespace msa
