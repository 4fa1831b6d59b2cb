#include "client/far_link.h"

#include <signal.h>

#include <map>
#include <memory>

#include "msa/adapters/enrol/member_dialer.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/base/mutex.h"

#include "client/client_file.h"

namespace msa::cli {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr Millis kPatience{5000};

// Threads that begin meanwhile leave all signals to the others.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

struct Dialers {
  Mutex mu;
  std::map<std::string, std::unique_ptr<MemberDialer>> by_server MSA_GUARDED_BY(mu);
};

// One for each server, with one certificate for all connections; for the life of the process, as the
// connections in gRPC's hands are.
Result<MemberDialer*> DialerOf(const std::string& server) {
  static auto* const dialers = new Dialers;
  const MutexLock lock(dialers->mu);
  std::unique_ptr<MemberDialer>& dialer = dialers->by_server[server];
  if (dialer == nullptr) {
    MSA_ASSIGN_OR_RETURN(const ControllerAddress address, ParseControllerAddress(server));
    MSA_ASSIGN_OR_RETURN(const ClientFile file, LoadClientFile());
    EnrolOptions enrol;
    enrol.address = address.enrol;
    enrol.role = PeerRole::kUser;
    enrol.controller_uid = file.controller_uid;
    enrol.munge_socket = file.munge_socket;
    enrol.patience = kPatience;
    const AllSignalsBlocked blocked;
    MSA_ASSIGN_OR_RETURN(dialer, MemberDialer::Create(std::move(enrol)));
  }
  return dialer.get();
}

}  // namespace

Result<UniqueFd> DialController(const std::string& server) {
  MSA_ASSIGN_OR_RETURN(const ControllerAddress address, ParseControllerAddress(server));
  MSA_ASSIGN_OR_RETURN(MemberDialer* const dialer, DialerOf(server));
  return dialer->Dial(address.tls, {.role = PeerRole::kController});
}

Result<UniqueFd> DialNode(const std::string& controller, const std::string& address) {
  if (address.starts_with(kUnixPrefix)) return ConnectUnix(address.substr(kUnixPrefix.size()));
  if (!address.starts_with(kTlsPrefix)) return ConnectUnix(address);
  const std::string rest = address.substr(kTlsPrefix.size());
  const auto at = rest.find('@');
  if (at == std::string::npos)
    return Error(Code::kInvalidArgument, "node daemon's address '{}'; expected tls:NODE@HOST:PORT", address);
  std::string server = controller;
  if (!server.starts_with(kTlsPrefix)) {
    MSA_ASSIGN_OR_RETURN(ClientFile file, LoadClientFile());
    server = std::move(file.server);
  }
  if (server.empty())
    return Error(
        Code::kFailedPrecondition,
        "the job's node is on another host, '{}', and this one knows no server that could vouch for "
        "you there; have the operator write 'server = tls:HOST:PORT' to /etc/msa/client.conf, or give "
        "--server",
        rest);
  MSA_ASSIGN_OR_RETURN(MemberDialer* const dialer, DialerOf(server));
  return dialer->Dial(rest.substr(at + 1), {.role = PeerRole::kNode, .node = rest.substr(0, at)});
}

}  // namespace msa::cli
