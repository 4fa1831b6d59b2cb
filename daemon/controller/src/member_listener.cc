#include "member_listener.h"

#include <unistd.h>

#include <algorithm>

#include <spdlog/spdlog.h>

#include "msa/adapters/enrol/member_dialer.h"
#include "msa/adapters/process/files.h"
#include "msa/adapters/tls/tcp_socket.h"
#include "msa/base/clock.h"

namespace msa {
namespace {

// A key and a certificate have 1 KiB.
constexpr std::size_t kLargest = 64U << 10;

Result<CertificateAuthority> LoadOrMakeAuthority(const std::string& path, std::uint64_t system) {
  auto text = ReadFile(path, kLargest);
  if (text.ok()) {
    auto authority = CertificateAuthority::Parse(*text);
    if (authority.ok()) return authority;
    return Error(Code::kInvalidArgument, "'{}': {}; remove it, and a new one is made", path,
                 authority.status().message());
  }
  if (text.status().code() != Code::kNotFound) return text.status();
  MSA_ASSIGN_OR_RETURN(auto authority, CertificateAuthority::Make(system, Now()));
  MSA_RETURN_IF_ERROR(WriteFileAtomically(path, authority.Serialize()));
  return authority;
}

}  // namespace

MemberListener::MemberListener(Options options, CertificateAuthority authority)
    : options_(std::move(options)), authority_(std::move(authority)) {}
MemberListener::~MemberListener() = default;

Result<std::unique_ptr<MemberListener>> MemberListener::Start(Options options, OnMember on_member) {
  MSA_ASSIGN_OR_RETURN(auto authority, LoadOrMakeAuthority(options.authority, options.system));
  std::unique_ptr<MemberListener> listener(new MemberListener(std::move(options), std::move(authority)));
  MSA_RETURN_IF_ERROR(listener->Open(std::move(on_member)));
  return listener;
}

Status MemberListener::Open(OnMember on_member) {
  MSA_ASSIGN_OR_RETURN(const ControllerAddress address, ParseControllerAddress(options_.address));
  if (Tls() == nullptr) return Error(Code::kInternal, "the controller cannot make its own certificate");
  MSA_ASSIGN_OR_RETURN(UniqueFd members, ListenTcp(address.tls));
  EnrolServer::Options enrol;
  MSA_ASSIGN_OR_RETURN(enrol.listener, ListenTcp(address.enrol));
  enrol.system = options_.system;
  enrol.munge_socket = options_.munge_socket;
  enrol.life = options_.life;
  const auto refused = [](const std::string& from, const Status& why) {
    spdlog::warn("from={} refused: {}", from, why.message());
  };
  MSA_ASSIGN_OR_RETURN(pump_, TlsPump::Start({}));
  pump_->Serve({.listener = std::move(members),
                .tls = [this] { return Tls(); },
                .on_member = std::move(on_member),
                .on_refused = refused});
  MSA_ASSIGN_OR_RETURN(
      enrolment_, EnrolServer::Start(std::move(enrol), authority_,
                                     {.allow = [this](const std::string& from,
                                                      const PeerIdentity& who) { return Allow(from, who); },
                                      .on_enrolled =
                                          [this](const std::string& from, const PeerIdentity& who) {
                                            spdlog::debug("from={} enrolled {}", from, ToUri(who));
                                            // Sessions outlive the certificates that opened them.
                                            pump_->Extend(who, Now() + options_.life);
                                          },
                                      .on_refused = refused}));
  return Status::Ok();
}

Status MemberListener::Allow(const std::string& from, const PeerIdentity& who) const {
  if (who.role != PeerRole::kNode) return Status::Ok();
  if (who.user.uid != 0 && who.user.uid != ::geteuid())
    return Error(Code::kPermissionDenied,
                 "uid {} may not speak for node '{}'; node daemons run as root or as uid {}", who.user.uid,
                 who.node, ::geteuid());
  MSA_RETURN_IF_ERROR(options_.check_node(who.node));
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> addresses, AddressesOf(who.node));
  if (std::find(addresses.begin(), addresses.end(), from) != addresses.end()) return Status::Ok();
  return Error(
      Code::kPermissionDenied,
      "{} is not the address of node '{}', which is {} for the controller; a node daemon runs on the "
      "host of its node's name",
      from, who.node, fmt::join(addresses, " or "));
}

// Its own certificate is as short-lived as the others'; each connection takes the present one.
std::shared_ptr<const MemberTls> MemberListener::Tls() {
  const MutexLock lock(mu_);
  const Instant now = Now();
  if (tls_ != nullptr && now < renew_at_) return tls_;
  const PeerIdentity self{
      .system = options_.system, .role = PeerRole::kController, .user = {::geteuid(), ::getegid()}};
  const auto request = MakeCertificateRequest();
  if (!request.ok()) return tls_;
  const auto certificate = authority_.Issue(request->request, self, now, options_.life);
  if (!certificate.ok()) return tls_;
  auto fresh = MemberTls::Make({request->key, *certificate, authority_.certificate()});
  if (!fresh.ok()) return tls_;
  tls_ = *std::move(fresh);
  renew_at_ = now + std::chrono::duration_cast<Millis>(options_.life) / 3;
  return tls_;
}

}  // namespace msa
