#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <sstream>

#include "msa/adapters/process/files.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/base/unique_fd.h"
#include "msa/topology/suggest.h"

#include "doctor/checks.h"
#include "local/local_paths.h"
#include "output/text.h"

namespace msa::cli {
namespace {

using Level = Finding::Level;

// A rank of Open MPI listens on two ports, a job daemon on one; then connections between ranks.
constexpr std::uint32_t kFewPorts = 1000;
constexpr int kConnectMillis = 1000;
constexpr std::size_t kProcFile = 4096;

bool IsSocket(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

std::vector<std::string> SocketsOf(const LocalPaths& paths) {
  std::vector<std::string> out = {paths.controller_socket()};
  const auto nodes = ListDirectory(paths.nodes());
  if (nodes.ok())
    for (const std::string& node : *nodes)
      for (const char* name : {"/noded.sock", "/jobd.sock"}) out.push_back(paths.node(node) + name);
  std::erase_if(out, [](const std::string& path) { return !IsSocket(path); });
  return out;
}

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

Result<UniqueFd> ListenOn(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoError(errno, "make a TCP socket");
  const sockaddr_in address = Loopback(port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return ErrnoError(errno, fmt::format("bind 127.0.0.1 port {}", port));
  if (::listen(fd.get(), 1) != 0) return ErrnoError(errno, "listen on 127.0.0.1");
  return fd;
}

// As a task reaches its PMIx server, and one rank another.
Status ConnectTo(const UniqueFd& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return ErrnoError(errno, "look at a TCP socket");
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoError(errno, "make a TCP socket");
  const std::string what = fmt::format("connect to 127.0.0.1 port {}", ntohs(address.sin_port));
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return Status::Ok();
  if (errno != EINPROGRESS) return ErrnoError(errno, what);
  pollfd entry{fd.get(), POLLOUT, 0};
  if (::poll(&entry, 1, kConnectMillis) != 1) return Error(Code::kUnavailable, "{}: no answer in 1 s", what);
  int error = 0;
  size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? Status::Ok() : ErrnoError(error, what);
}

struct PortRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t size() const { return last >= first ? last - first + 1 : 0; }
};

// nullopt: the kernel does not say.
std::optional<PortRange> EphemeralPorts(const std::string& proc) {
  const auto text = ReadFile(proc + "/sys/net/ipv4/ip_local_port_range", kProcFile);
  if (!text.ok()) return std::nullopt;
  PortRange range;
  std::istringstream in(*text);
  if (!(in >> range.first >> range.last) || range.last > 65535) return std::nullopt;
  return range;
}

std::uint32_t Number(const std::string& text, std::uint32_t otherwise) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? value : otherwise;
}

// What Open MPI's TCP transport takes its ports from: btl_tcp_port_min_v4 and btl_tcp_port_range_v4.
Finding CheckTransport(const std::function<std::string(const char*)>& environment, std::string found) {
  const std::uint32_t first = Number(environment("OMPI_MCA_btl_tcp_port_min_v4"), 1024);
  const std::uint32_t count = Number(environment("OMPI_MCA_btl_tcp_port_range_v4"), 65535 - first);
  const std::uint32_t last = std::min<std::uint64_t>(std::uint64_t{first} + count, 65535);
  const std::string range = fmt::format("{}-{}", first, last);
  for (std::uint32_t port = first; port <= last; ++port)
    if (ListenOn(static_cast<std::uint16_t>(port)).ok())
      return {Level::kOk, "ports", fmt::format("{}; Open MPI finds one in {}", found, range), ""};
  return {Level::kFail, "ports",
          fmt::format("no free TCP port on 127.0.0.1 in {}, where Open MPI looks", range),
          "free some, or widen OMPI_MCA_btl_tcp_port_min_v4 and OMPI_MCA_btl_tcp_port_range_v4"};
}

}  // namespace

Finding CheckListeners(const DoctorScope& scope) {
  const std::vector<std::string> all = SocketsOf(LocalPaths(scope.dir));
  std::vector<std::string> stale;
  for (const std::string& path : all)
    if (!ConnectUnix(path).ok()) stale.push_back(path.substr(scope.dir.size() + 1));
  if (all.empty())
    return {Level::kOk, "listeners", fmt::format("no sockets of a system in '{}'", scope.dir), ""};
  if (stale.empty())
    return {Level::kOk, "listeners",
            fmt::format("{} of the system in '{}' answer{}", Count(all.size(), "socket"), scope.dir,
                        all.size() == 1 ? "s" : ""),
            ""};
  return {Level::kWarn, "listeners",
          fmt::format("nobody listens on {} of {} in '{}': {}", stale.size(), Count(all.size(), "socket"),
                      scope.dir, ListNames(stale)),
          fmt::format("a supervisor starts their daemons again ('msactl cluster status{}'); without one run "
                      "'msactl cluster up{}' or 'msactl cluster down{}'",
                      scope.flag, scope.flag, scope.flag)};
}

Finding CheckPorts(const std::string& proc, const std::function<std::string(const char*)>& environment) {
  const Result<UniqueFd> listener = ListenOn(0);
  const Status works = listener.ok() ? ConnectTo(*listener) : listener.status();
  if (!works.ok())
    return {
        Level::kFail, "ports", works.message(),
        "PMIx servers and MPI tasks of one machine connect over 127.0.0.1; as root: ip link set lo up, and "
        "let the firewall pass lo ('iptables -L', 'nft list ruleset')"};
  std::string found = "TCP over 127.0.0.1 works";
  if (const auto range = EphemeralPorts(proc)) {
    found += fmt::format(", ports {}-{} are given out", range->first, range->last);
    if (range->size() < kFewPorts)
      return {Level::kWarn, "ports", fmt::format("{}: {} are few", found, range->size()),
              "an MPI task takes two and one for each connection; as root: sysctl -w "
              "net.ipv4.ip_local_port_range='32768 60999'"};
  }
  return CheckTransport(environment, found);
}

}  // namespace msa::cli
