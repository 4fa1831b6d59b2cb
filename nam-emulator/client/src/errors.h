#pragma once
// How the library's Status becomes the C interface's error, with a text of the calling thread.

#include <msa_nam.h>

#include "msa/base/status.h"

namespace msa::nam {

// What a failed precondition means depends on who was asked.
enum class Precondition : std::uint8_t { kStale, kBusy };

// 0, or the error's number, whose text is noted for msa_nam_error_text. `what`: "msa_nam_put".
int Finish(const char* what, const Status& status, Precondition precondition = Precondition::kStale) noexcept;

// An atomic that may have been carried out has a code of its own.
Status UnknownOutcome(const Status& cause);

}  // namespace msa::nam
