#include "msa/adapters/enrol/member_dialer.h"

#include <algorithm>
#include <charconv>

#include "msa/base/clock.h"

namespace msa {
namespace {

// A third of a certificate's life is left for it, 20 minutes as a rule.
constexpr Millis kRenewAgain{1000};

}  // namespace

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

Result<std::unique_ptr<MemberDialer>> MemberDialer::Create(EnrolOptions enrol,
                                                           std::function<void(const Status&)> on_trouble) {
  MSA_ASSIGN_OR_RETURN(auto pump, TlsPump::Start({}));
  return std::unique_ptr<MemberDialer>(
      new MemberDialer(std::move(enrol), std::move(on_trouble), std::move(pump)));
}

MemberDialer::MemberDialer(EnrolOptions enrol, std::function<void(const Status&)> on_trouble,
                           std::unique_ptr<TlsPump> pump)
    : enrol_(std::move(enrol)),
      on_trouble_(std::move(on_trouble)),
      pump_(std::move(pump)),
      renewal_([this] { Renew(); }) {}

MemberDialer::~MemberDialer() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
    changed_.NotifyAll();
  }
  renewal_.join();
}

// Connections go on over a renewal: both ends extend them.
void MemberDialer::Renew() {
  SteadyTime not_before{};
  for (;;) {
    {
      const MutexLock lock(mu_);
      while (!stop_ && tls_ == nullptr) changed_.Wait(mu_);
      for (;;) {
        if (stop_) return;
        const auto due = std::max(SteadyNow() + (renew_at_ - Now()), not_before);
        if (due <= SteadyNow()) break;
        changed_.WaitUntil(mu_, due);
      }
    }
    const Status renewed = Member().status();
    if (renewed.ok()) continue;
    if (on_trouble_) on_trouble_(renewed);
    not_before = SteadyNow() + kRenewAgain;
  }
}

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
  // It has answered as the controller's user just now.
  pump_->Extend({.role = PeerRole::kController}, tls_->until());
  changed_.NotifyAll();
  return tls_;
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
