#pragma once
// How a process on another host becomes a member of a system: over TCP to the controller's enrolment port,
// one request and one answer in the local wire format. Nothing here is secret: what counts is proved by the
// two munge(7) credentials, each bound to what it travels with.

#include <cstdint>
#include <string>

#include "msa/base/wire.h"

namespace msa::wire {

inline constexpr std::uint32_t kEnrolVersion = 1;
inline constexpr std::size_t kMaxEnrolPayload = std::size_t{16} << 10;

struct EnrolRequest {
  static constexpr std::uint16_t kType = 0x0A01;
  std::uint32_t version = kEnrolVersion;
  std::uint8_t role = 0;   // 1: node daemon, 2: user
  std::string node;        // of role 1
  std::string request;     // PKCS #10, PEM
  std::string credential;  // of munge; its payload is EnrolRequestText of the above
  template <class A>
  void Fields(A& a) {
    a(version, role, node, request, credential);
  }
};

struct Enrolled {
  static constexpr std::uint16_t kType = 0x0A02;
  std::string certificate;  // PEM, as the next
  std::string authority;
  std::string credential;  // of the controller's user, for the requester's alone; its payload is EnrolledText
  template <class A>
  void Fields(A& a) {
    a(certificate, authority, credential);
  }
};

// To a requester whose credential was good: its code (msa::Code) and text. Others get no answer at all.
struct EnrolRefused {
  static constexpr std::uint16_t kType = 0x0A03;
  std::uint8_t code = 0;
  std::string message;
  template <class A>
  void Fields(A& a) {
    a(code, message);
  }
};

}  // namespace msa::wire
