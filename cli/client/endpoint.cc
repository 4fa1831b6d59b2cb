#include "client/endpoint.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <climits>

#include "msa/adapters/enrol/member_dialer.h"
#include "msa/adapters/process/lock_file.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/base/clock.h"

#include "client/client_file.h"
#include "client/far_link.h"
#include "local/local_paths.h"

namespace msa::cli {
namespace {

constexpr const char* kSystemSocket = "/run/msa/controller.sock";
// A supervisor restarts a controller within 50 ms to 5 s.
constexpr Millis kRestartPatience{10'000};
constexpr int kRetryMillis = 50;

std::string Environment(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "" : value;
}

bool Exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

bool HasNodesAlone(const std::string& dir) {
  return Exists(dir + "/n") && !Exists(dir + "/controller.lock") &&
         !Exists(LocalPaths(dir).controller_socket());
}

// The default directory lies where others may create things: it must be ours alone.
Status CheckOwner(const std::string& dir) {
  struct stat info {};
  if (::lstat(dir.c_str(), &info) != 0) return Status::Ok();
  if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid()) return Status::Ok();
  return Error(Code::kPermissionDenied,
               "directory '{}' is not a directory of user {}: somebody else made it; name another one with "
               "--dir or MSA_DIR",
               dir, ::geteuid());
}

}  // namespace

std::string DefaultDirectory() {
  const std::string runtime = Environment("XDG_RUNTIME_DIR");
  if (runtime.starts_with('/')) return CanonicalDirectory(runtime + "/msa");
  return CanonicalDirectory(fmt::format("/tmp/msa-{}", ::geteuid()));
}

std::string CanonicalDirectory(const std::string& dir) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(dir, error);
  if (error) return dir;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  std::string out = (error ? path.lexically_normal() : canonical).string();
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

Result<Endpoint> FindEndpoint(const std::string& dir) {
  Endpoint out;
  const std::string from_environment = Environment("MSA_DIR");
  const std::string& given = dir.empty() ? from_environment : dir;
  if (given.starts_with(kTlsPrefix)) {
    MSA_RETURN_IF_ERROR(ParseControllerAddress(given).status());
    out.socket = given;
    if (!dir.empty()) out.flag = " --server " + dir;
    return out;
  }
  MSA_ASSIGN_OR_RETURN(const ClientFile file, LoadClientFile());
  if (!given.empty()) {
    out.dir = CanonicalDirectory(given);
    if (!file.server.empty() && HasNodesAlone(out.dir)) return Endpoint{file.server, "", ""};
    if (!dir.empty()) out.flag = " --dir " + dir;
  } else {
    out.dir = DefaultDirectory();
    MSA_RETURN_IF_ERROR(CheckOwner(out.dir));
    if (!Exists(LocalPaths(out.dir).controller_socket())) {
      // The machine's socket may be its operator's alone.
      const bool usable = ::access(kSystemSocket, R_OK | W_OK) == 0;
      if (!file.server.empty() && !usable) return Endpoint{file.server, "", ""};
      if (Exists(kSystemSocket)) return Endpoint{kSystemSocket, "", ""};
    }
  }
  out.socket = LocalPaths(out.dir).controller_socket();
  MSA_RETURN_IF_ERROR(CheckSocketPath(out.socket));
  return out;
}

bool IsSupervised(const Endpoint& endpoint) {
  if (endpoint.socket.starts_with(kTlsPrefix)) return true;
  return endpoint.dir.empty() ? Exists(kSystemSocket)
                              : LockHolder(LocalPaths(endpoint.dir).supervisor_lock()) != 0;
}

Result<UniqueFd> TryConnectController(const Endpoint& endpoint) {
  if (endpoint.socket.starts_with(kTlsPrefix)) return DialController(endpoint.socket);
  Result<UniqueFd> fd = ConnectUnix(endpoint.socket);
  if (fd.ok()) return fd;
  if (fd.status().code() == Code::kPermissionDenied)
    return Error(
        Code::kPermissionDenied,
        "{}; that system serves its own user alone: start one of your own with 'msactl cluster up', or "
        "ask root for one for all users",
        fd.status().message());
  if (endpoint.dir.empty())
    return Error(Code::kUnavailable, "the controller does not answer: {}; ask the operator of this machine",
                 fd.status().message());
  return Error(Code::kUnavailable, "no msa system runs in '{}': {}; start one with 'msactl cluster up{}'",
               endpoint.dir, fd.status().message(), endpoint.flag);
}

Result<UniqueFd> ConnectController(const Endpoint& endpoint) {
  const SteadyTime give_up = SteadyNow() + kRestartPatience;
  for (;;) {
    Result<UniqueFd> fd = TryConnectController(endpoint);
    if (fd.ok() || fd.status().code() != Code::kUnavailable || SteadyNow() >= give_up ||
        !IsSupervised(endpoint))
      return fd;
    ::poll(nullptr, 0, kRetryMillis);
  }
}

}  // namespace msa::cli
