#include <netdb.h>
#include <netinet/in.h>

#include <memory>

#include "msa/adapters/tls/tcp_socket.h"

namespace msa {

std::string NumberOf(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view number = text;
  const bool mapped = number.starts_with(kMapped) && number.find('.') != std::string_view::npos;
  return std::string(mapped ? number.substr(kMapped.size()) : number);
}

Result<std::vector<std::string>> AddressesOf(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int rc = ::getaddrinfo(host.c_str(), nullptr, &hints, &raw);
  if (rc != 0)
    return Error(Code::kUnavailable, "the address of '{}' is not known: {}; see /etc/hosts and hosts(5)",
                 host, ::gai_strerror(rc));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(raw, &::freeaddrinfo);
  std::vector<std::string> out;
  for (const addrinfo* it = list.get(); it != nullptr; it = it->ai_next)
    out.push_back(NumberOf(it->ai_addr, it->ai_addrlen));
  return out;
}

}  // namespace msa
