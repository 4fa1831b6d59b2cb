#pragma once
// Enrolment (msa/base/enrol_messages.h): a munge credential becomes a short-lived certificate.

#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/tls/certificates.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"

namespace msa {

class EnrolServer {
 public:
  struct Options {
    UniqueFd listener;
    std::uint64_t system = 0;
    std::string munge_socket;          // empty: libmunge's own
    std::chrono::seconds life{3600};   // of a certificate
    std::size_t max_connections = 64;  // at a time; further ones wait
    Millis patience{5000};             // for the request
  };
  struct Handlers {
    // Whether this user at that address may be that (a node's daemon, say): its status is the refusal.
    // Server's thread.
    std::function<Status(const std::string& from, const PeerIdentity&)> allow;
    // For the log: who got a certificate, and whom was refused why. Server's thread. Optional.
    std::function<void(const std::string& from, const PeerIdentity&)> on_enrolled;
    std::function<void(const std::string& from, const Status&)> on_refused;
  };

  // Serves on a thread of its own, since munged may let one wait. `authority` outlives it.
  static Result<std::unique_ptr<EnrolServer>> Start(Options options, const CertificateAuthority& authority,
                                                    Handlers handlers);
  virtual ~EnrolServer() = default;
};

struct EnrolOptions {
  std::string address;  // of the controller's enrolment port, HOST:PORT
  PeerRole role = PeerRole::kUser;
  std::string node;                  // of PeerRole::kNode
  std::uint32_t controller_uid = 0;  // who the controller must be
  std::string munge_socket;          // empty: libmunge's own
  Millis patience{10'000};
};
// Blocks. kUnavailable: nobody answers, or munged does not; kUnauthenticated: the answer is not the
// controller's, or it closed the connection without one, as it does to a credential that it does not trust;
// else its refusal.
Result<Credentials> Enrol(const EnrolOptions& options);

}  // namespace msa
