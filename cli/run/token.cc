#include "run/token.h"

#include <sys/random.h>

#include <array>
#include <cerrno>

namespace msa::cli {

Result<std::string> MakeToken() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return ErrnoError(errno, "read random bytes");
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace msa::cli
