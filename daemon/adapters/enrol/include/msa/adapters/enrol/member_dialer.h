#pragma once
// Connections of a member of a system to other members, with certificates that it obtains and renews by
// munge.

#include <functional>
#include <memory>
#include <string>
#include <thread>

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
  // `enrol.address` is the controller's enrolment port. From the first call that enrols on, a thread renews
  // the certificate in time; `on_trouble` (optional) is told there when it cannot, as it then tries again.
  static Result<std::unique_ptr<MemberDialer>> Create(EnrolOptions enrol,
                                                      std::function<void(const Status&)> on_trouble = {});
  ~MemberDialer();
  MemberDialer(const MemberDialer&) = delete;
  MemberDialer& operator=(const MemberDialer&) = delete;

  // A plain descriptor to `address` (HOST:PORT), where `expected` must answer (its system and user are not
  // compared). Uses the certificate while more than a third of its life is left, else enrols. Errors as Enrol
  // and DialMember.
  Result<UniqueFd> Dial(const std::string& address, const PeerIdentity& expected) MSA_EXCLUDES(mu_);
  // The present certificate's member; enrols if there is none, or two thirds of its life are over, and then
  // connections to the controller hold on at both ends. Errors as Enrol.
  Result<std::shared_ptr<const MemberTls>> Member() MSA_EXCLUDES(mu_);
  // Serves connections of other members with the same certificate; at most once.
  void Serve(UniqueFd listener, std::function<void(UniqueFd, const PeerIdentity&)> on_member,
             std::function<void(const std::string&, const Status&)> on_refused);

 private:
  MemberDialer(EnrolOptions enrol, std::function<void(const Status&)> on_trouble,
               std::unique_ptr<TlsPump> pump);
  void Renew() MSA_EXCLUDES(mu_);

  const EnrolOptions enrol_;
  const std::function<void(const Status&)> on_trouble_;
  Mutex mu_;
  CondVar changed_;  // tls_, renew_at_ or stop_
  bool stop_ MSA_GUARDED_BY(mu_) = false;
  std::shared_ptr<const MemberTls> tls_ MSA_GUARDED_BY(mu_);
  Instant renew_at_ MSA_GUARDED_BY(mu_);  // two thirds of its life are over
  std::unique_ptr<TlsPump> pump_;         // ends before the above: its thread asks for tls_
  std::thread renewal_;
};

}  // namespace msa
