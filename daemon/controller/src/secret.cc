#include "secret.h"

#include <sys/random.h>

#include <array>
#include <cerrno>

namespace msa {

Result<std::string> MakeSecret() {
  std::array<unsigned char, 32> bytes{};
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return ErrnoError(errno, "read random bytes");
    have += static_cast<std::size_t>(got);
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace msa
