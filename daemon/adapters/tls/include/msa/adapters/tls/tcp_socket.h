#pragma once
// TCP sockets by "HOST:PORT" or "[HOST]:PORT", non-blocking and close-on-exec. Names are resolved: both may
// block.

#include <cstdint>
#include <string>

#include "msa/base/clock.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

// kInvalidArgument: no such form; kUnavailable: the name is unknown; kAlreadyExists: the port is taken.
Result<UniqueFd> ListenTcp(const std::string& address);
Result<std::uint16_t> PortOf(int listener);
// Tries each address of the name. kUnavailable: nobody listens, or no answer until `deadline`.
Result<UniqueFd> ConnectTcp(const std::string& address, SteadyTime deadline);

}  // namespace msa
