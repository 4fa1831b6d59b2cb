#include "msa/adapters/enrol/member_dialer.h"

#include <charconv>

#include "msa/base/clock.h"

namespace msa {

Result<ControllerAddress> ParseControllerAddress(std::string_view text) {
  const Status bad =
      Error(Code::kInvalidArgument, "controller '{}'; expected tls:HOST:PORT, as tls:ctl:7701", text);
  if (!text.starts_with(kTlsPrefix)) return bad;
  const std::string_view address = text.substr(kTlsPrefix.size());
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return bad;
  const std::string_view digits = address.substr(colon + 1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0 || port >= 65535) return bad;
  return ControllerAddress{.tls = std::string(address),
                           .enrol = fmt::format("{}:{}", address.substr(0, colon), port + 1)};
}

Result<std::unique_ptr<MemberDialer>> MemberDialer::Create(EnrolOptions enrol) {
  MSA_ASSIGN_OR_RETURN(auto pump, TlsPump::Start({}));
  return std::unique_ptr<MemberDialer>(new MemberDialer(std::move(enrol), std::move(pump)));
}

MemberDialer::MemberDialer(EnrolOptions enrol, std::unique_ptr<TlsPump> pump)
    : enrol_(std::move(enrol)), pump_(std::move(pump)) {}

Result<std::shared_ptr<const MemberTls>> MemberDialer::Member() {
  {
    const MutexLock lock(mu_);
    if (tls_ != nullptr && Now() < renew_at_) return tls_;
  }
  const Instant begin = Now();
  MSA_ASSIGN_OR_RETURN(const Credentials credentials, Enrol(enrol_));
  MSA_ASSIGN_OR_RETURN(auto fresh, MemberTls::Make(credentials));
  const MutexLock lock(mu_);
  tls_ = std::move(fresh);
  renew_at_ = begin + (tls_->until() - begin) * 2 / 3;
  return tls_;
}

Instant MemberDialer::RenewAt() const {
  const MutexLock lock(mu_);
  return renew_at_;
}

Result<UniqueFd> MemberDialer::Dial(const std::string& address, const PeerIdentity& expected) {
  MSA_ASSIGN_OR_RETURN(const auto tls, Member());
  auto stream = DialMember(address, *tls, expected, SteadyNow() + enrol_.patience);
  if (stream.status().code() == Code::kUnauthenticated) {
    // A controller with a new authority knows nothing of the old one's certificates.
    {
      const MutexLock lock(mu_);
      if (tls_ == tls) renew_at_ = {};
    }
    MSA_ASSIGN_OR_RETURN(const auto fresh, Member());
    stream = DialMember(address, *fresh, expected, SteadyNow() + enrol_.patience);
  }
  if (!stream.ok()) return stream.status();
  return pump_->Join(*std::move(stream));
}

void MemberDialer::Serve(UniqueFd listener, std::function<void(UniqueFd, const PeerIdentity&)> on_member,
                         std::function<void(const std::string&, const Status&)> on_refused) {
  pump_->Serve({.listener = std::move(listener),
                .tls =
                    [this] {
                      const MutexLock lock(mu_);
                      return tls_;
                    },
                .on_member = std::move(on_member),
                .on_refused = std::move(on_refused)});
}

}  // namespace msa
