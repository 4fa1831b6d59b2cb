#include "region/nam_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include "msa/adapters/process/child_process.h"

namespace msa::cli {
namespace {

constexpr const char* kName = "libmsanam.so";

template <class Function>
bool Find(void* library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(::dlsym(library, name));
  return *out != nullptr;
}

Code CodeOf(int error) {
  switch (error) {
    case MSA_NAM_ERR_ARG:
      return Code::kInvalidArgument;
    case MSA_NAM_ERR_NOT_FOUND:
      return Code::kNotFound;
    case MSA_NAM_ERR_DENIED:
      return Code::kPermissionDenied;
    case MSA_NAM_ERR_RANGE:
      return Code::kOutOfRange;
    case MSA_NAM_ERR_NO_SPACE:
      return Code::kResourceExhausted;
    case MSA_NAM_ERR_EXISTS:
      return Code::kAlreadyExists;
    case MSA_NAM_ERR_BUSY:
      return Code::kFailedPrecondition;
    case MSA_NAM_ERR_TIMEOUT:
      return Code::kDeadlineExceeded;
    case MSA_NAM_ERR_UNAVAILABLE:
      return Code::kUnavailable;
    case MSA_NAM_ERR_STALE:
      return Code::kAborted;
    case MSA_NAM_ERR_LOST:
      return Code::kDataLoss;
    default:
      return Code::kInternal;
  }
}

Result<void*> OpenLibrary() {
  MSA_ASSIGN_OR_RETURN(const std::string bin, ExecutableDirectory());
  for (const char* directory : {"/../lib/", "/../" MSA_INSTALL_LIBDIR "/"}) {
    const std::string path = bin + directory + kName;
    if (::access(path.c_str(), F_OK) != 0) continue;
    // Never closed: it may have threads of its own.
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    return Error(Code::kInternal, "load '{}': {}; reinstall msa", path, ::dlerror());
  }
  return Error(Code::kInternal, "'{}/../lib/{}' is not there, which moves data of regions; reinstall msa",
               bin, kName);
}

}  // namespace

Result<NamLibrary> LoadNamLibrary() {
  MSA_ASSIGN_OR_RETURN(void* const library, OpenLibrary());
  NamLibrary out;
  const bool whole =
      Find(library, "msa_nam_error_name", &out.error_name) &&
      Find(library, "msa_nam_error_text", &out.error_text) && Find(library, "msa_nam_attach", &out.attach) &&
      Find(library, "msa_nam_close", &out.close) && Find(library, "msa_nam_set_timeout", &out.set_timeout) &&
      Find(library, "msa_nam_put", &out.put) && Find(library, "msa_nam_get", &out.get) &&
      Find(library, "msa_nam_lock", &out.lock) && Find(library, "msa_nam_unlock", &out.unlock);
  if (whole) return out;
  return Error(Code::kInternal, "{} is of another version of msa: {}; reinstall msa", kName, ::dlerror());
}

Status NamError(const NamLibrary& library, int error, std::string_view what) {
  std::string text = library.error_text();
  if (text.empty()) text = library.error_name(error);
  return Error(CodeOf(error), "{}: {}", what, text);
}

}  // namespace msa::cli
