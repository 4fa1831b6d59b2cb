#pragma once

#include <msa_nam.h>

#include "msa/base/status.h"

namespace msa::cli {

// What msactl uses of libmsanam. It is loaded when a command moves data, so that all others start fast.
struct NamLibrary {
  decltype(&::msa_nam_error_name) error_name = nullptr;
  decltype(&::msa_nam_error_text) error_text = nullptr;
  decltype(&::msa_nam_attach) attach = nullptr;
  decltype(&::msa_nam_close) close = nullptr;
  decltype(&::msa_nam_set_timeout) set_timeout = nullptr;
  decltype(&::msa_nam_put) put = nullptr;
  decltype(&::msa_nam_get) get = nullptr;
  decltype(&::msa_nam_lock) lock = nullptr;
  decltype(&::msa_nam_unlock) unlock = nullptr;
};

// ../lib/libmsanam.so (and Debian's ../lib/TRIPLET) of msactl's own directory. Once a process; stays loaded.
// kInternal: it is not there, or lacks a function.
Result<NamLibrary> LoadNamLibrary();

// The library's last error in this thread, after a call that returned `error`.
Status NamError(const NamLibrary& library, int error, std::string_view what);

}  // namespace msa::cli
