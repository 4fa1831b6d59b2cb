#pragma once
// Names of MPI ports as Open MPI makes them: "<number of the opener's namespace>.<rank>:<random number>". The
// keys by which two sides of a connection meet begin with the port. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace msa {

// The number that Open MPI 4.1 gives to a namespace (OPAL_HASH_JOBID).
std::uint32_t PortOwnerOf(std::string_view nspace);

struct PortKey {
  std::uint32_t owner = 0;  // PortOwnerOf the namespace that opened the port
  std::string port;
  std::string_view use;  // what follows the port and a colon: "connect", "accept", "nextcid:send:0"; a view
                         // of the key
};
// nullopt: the key does not begin with a port.
std::optional<PortKey> ParsePortKey(std::string_view key);

}  // namespace msa
