#pragma once
// The controller's doors to other hosts: TLS for members of the system, and enrolment, where munge makes one.

#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/enrol/enrol.h"
#include "msa/adapters/tls/tls_pump.h"
#include "msa/base/mutex.h"

namespace msa {

class MemberListener {
 public:
  struct Options {
    std::string address;    // tls:HOST:PORT; enrolment at the next port
    std::string authority;  // path of the system's key and certificate; made, mode 0600, if it is not there
    std::uint64_t system = 0;  // of its certificates
    std::string munge_socket;  // empty: libmunge's own
    std::chrono::seconds life{3600};
    std::function<Status(const std::string& node)> check_node;  // whether the system has it; any thread
  };
  using OnMember = std::function<void(UniqueFd, const PeerIdentity&)>;

  // Listens at once. `on_member` runs on a thread of its own until the destructor has returned.
  // kInvalidArgument: the address, or a damaged authority file; errors of ListenTcp and files.
  static Result<std::unique_ptr<MemberListener>> Start(Options options, OnMember on_member);
  ~MemberListener();
  MemberListener(const MemberListener&) = delete;
  MemberListener& operator=(const MemberListener&) = delete;

 private:
  MemberListener(Options options, CertificateAuthority authority);
  Status Open(OnMember on_member);
  Status Allow(const std::string& from, const PeerIdentity& who) const;
  std::shared_ptr<const MemberTls> Tls() MSA_EXCLUDES(mu_);

  const Options options_;
  const CertificateAuthority authority_;
  Mutex mu_;
  std::shared_ptr<const MemberTls> tls_ MSA_GUARDED_BY(mu_);
  Instant renew_at_ MSA_GUARDED_BY(mu_);
  std::unique_ptr<EnrolServer> enrolment_;
  std::unique_ptr<TlsPump> pump_;
};

}  // namespace msa
