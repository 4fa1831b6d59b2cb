#pragma once
// The certificates by which daemons and users of one system know each other between hosts. The controller is
// the authority; a certificate is short-lived and names its holder in one URI, msa://SYSTEM/ROLE/NODE/UID/GID
// (subjectAltName, RFC 5280 section 4.2.1.6). Keys are of the curve P-256. Texts are PEM. Any thread.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa {

enum class PeerRole : std::uint8_t { kController, kNode, kUser };
std::string_view ToText(PeerRole role);  // "controller", "node", "user"

struct PeerIdentity {
  std::uint64_t system = 0;
  PeerRole role = PeerRole::kUser;
  std::string node;  // of kNode; else empty
  UserIdentity user;
  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};
std::string ToUri(const PeerIdentity& identity);
// kInvalidArgument: not such a URI.
Result<PeerIdentity> ParseIdentityUri(std::string_view uri);

struct CertificateRequest {
  std::string key;      // the private one: never leaves the process
  std::string request;  // PKCS #10, which proves that its sender has the key
};
Result<CertificateRequest> MakeCertificateRequest();

// What a process needs to be known, and to know the others.
struct Credentials {
  std::string key;
  std::string certificate;
  std::string authority;  // its certificate
};

// SHA-256 of a text, in hex.
std::string Sha256Hex(std::string_view text);

// When a certificate ends; kInvalidArgument: no certificate.
Result<Instant> EndOfCertificate(const std::string& certificate);

class CertificateAuthority {
 public:
  static constexpr std::chrono::hours kAuthorityLife{24 * 3650};
  // Certificates begin this much in the past: the clocks of two hosts differ.
  static constexpr std::chrono::seconds kClockSkew{60};

  // A new key and a certificate signed by itself.
  static Result<CertificateAuthority> Make(std::uint64_t system, Instant now);
  // As Serialize gave it. kInvalidArgument: damaged.
  static Result<CertificateAuthority> Parse(const std::string& text);
  CertificateAuthority(CertificateAuthority&&) noexcept;
  CertificateAuthority& operator=(CertificateAuthority&&) noexcept;
  ~CertificateAuthority();

  // Key and certificate: a secret.
  std::string Serialize() const;
  const std::string& certificate() const;
  // A certificate for the key of `request`, whatever name that asks for. kInvalidArgument: the request is
  // malformed, not signed by its key, or of another sort of key.
  Result<std::string> Issue(const std::string& request, const PeerIdentity& identity, Instant now,
                            std::chrono::seconds life) const;

 private:
  struct Impl;
  explicit CertificateAuthority(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msa
