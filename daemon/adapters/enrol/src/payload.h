#pragma once
// What the two credentials say.

#include <string>

#include "msa/adapters/tls/certificates.h"
#include "msa/base/enrol_messages.h"

namespace msa::enrol {

inline std::string RequestText(const wire::EnrolRequest& request) {
  return fmt::format("msa-enrol-{}\n{}\n{}\n{}", request.version, request.role, request.node,
                     Sha256Hex(request.request));
}

// Bound to the request, so that an answer of before is none.
inline std::string AnswerText(const std::string& request, const wire::Enrolled& answer) {
  return fmt::format("msa-enrolled\n{}\n{}\n{}", Sha256Hex(request), Sha256Hex(answer.certificate),
                     Sha256Hex(answer.authority));
}

}  // namespace msa::enrol
