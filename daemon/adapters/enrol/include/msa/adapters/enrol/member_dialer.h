#pragma once
// Connections of a member of a system to other members, with certificates that it obtains and renews by
// munge.

#include <memory>
#include <string>

#include "msa/adapters/enrol/enrol.h"
#include "msa/adapters/tls/tls_pump.h"
#include "msa/base/mutex.h"

namespace msa {

// "tls:HOST:PORT" of a controller; enrolment listens at the port after it. kInvalidArgument: another form.
struct ControllerAddress {
  std::string tls;    // HOST:PORT
  std::string enrol;  // HOST:PORT+1
};
inline constexpr std::string_view kTlsPrefix = "tls:";
Result<ControllerAddress> ParseControllerAddress(std::string_view text);

// Any thread; the calls block.
class MemberDialer {
 public:
  // `enrol.address` is the controller's enrolment port.
  static Result<std::unique_ptr<MemberDialer>> Create(EnrolOptions enrol);

  // A plain descriptor to `address` (HOST:PORT), where `expected` must answer (its system and user are not
  // compared). Uses the certificate while more than a third of its life is left, else enrols. Errors as Enrol
  // and DialMember.
  Result<UniqueFd> Dial(const std::string& address, const PeerIdentity& expected) MSA_EXCLUDES(mu_);
  // The present certificate's member, for a listener of one's own; enrols if there is none. Errors as Enrol.
  Result<std::shared_ptr<const MemberTls>> Member() MSA_EXCLUDES(mu_);
  // When two thirds of the present certificate's life are over; the epoch: there is none.
  Instant RenewAt() const MSA_EXCLUDES(mu_);
  // Serves connections of other members with the same certificate; at most once.
  void Serve(UniqueFd listener, std::function<void(UniqueFd, const PeerIdentity&)> on_member,
             std::function<void(const std::string&, const Status&)> on_refused);

 private:
  MemberDialer(EnrolOptions enrol, std::unique_ptr<TlsPump> pump);

  const EnrolOptions enrol_;
  mutable Mutex mu_;
  std::shared_ptr<const MemberTls> tls_ MSA_GUARDED_BY(mu_);
  Instant renew_at_ MSA_GUARDED_BY(mu_);
  std::unique_ptr<TlsPump> pump_;  // ends first: its thread asks for tls_
};

}  // namespace msa
