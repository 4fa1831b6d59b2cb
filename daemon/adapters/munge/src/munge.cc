#include "msa/adapters/munge/munge.h"

#include <munge.h>

#include <cstdlib>
#include <memory>

namespace msa {
namespace {

struct ContextDelete {
  void operator()(munge_ctx_t context) const noexcept { munge_ctx_destroy(context); }
};
using Context = std::unique_ptr<std::remove_pointer_t<munge_ctx_t>, ContextDelete>;

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

Code CodeOf(munge_err_t error) {
  switch (error) {
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
      return Code::kUnavailable;
    case EMUNGE_CRED_UNAUTHORIZED:
      return Code::kPermissionDenied;
    case EMUNGE_BAD_CRED:
    case EMUNGE_BAD_VERSION:
    case EMUNGE_BAD_CIPHER:
    case EMUNGE_BAD_MAC:
    case EMUNGE_BAD_ZIP:
    case EMUNGE_BAD_REALM:
    case EMUNGE_CRED_INVALID:
    case EMUNGE_CRED_EXPIRED:
    case EMUNGE_CRED_REWOUND:
    case EMUNGE_CRED_REPLAYED:
      return Code::kUnauthenticated;
    case EMUNGE_BAD_ARG:
    case EMUNGE_BAD_LENGTH:
      return Code::kInvalidArgument;
    default:
      return Code::kInternal;
  }
}

Status Failure(munge_err_t error, munge_ctx_t context, std::string_view what) {
  const char* const detail = munge_ctx_strerror(context);
  const char* const text = detail != nullptr && *detail != '\0' ? detail : munge_strerror(error);
  if (CodeOf(error) == Code::kUnavailable)
    return Error(Code::kUnavailable, "{}: {}; is munged running on this host?", what, text);
  return Error(CodeOf(error), "{}: {}", what, text);
}

Result<Context> MakeContext(const MungeOptions& options) {
  Context context(munge_ctx_create());
  if (context == nullptr) return Error(Code::kResourceExhausted, "no memory for a munge context");
  const auto set = [&](munge_opt_t option, auto value) {
    return munge_ctx_set(context.get(), option, value) == EMUNGE_SUCCESS;
  };
  bool good = set(MUNGE_OPT_TTL, static_cast<int>(options.ttl.count()));
  if (!options.socket.empty()) good = good && set(MUNGE_OPT_SOCKET, options.socket.c_str());
  if (options.only_uid) good = good && set(MUNGE_OPT_UID_RESTRICTION, static_cast<uid_t>(*options.only_uid));
  if (!good)
    return Error(Code::kInvalidArgument, "munge refuses a time to live of {} s or the socket '{}'",
                 options.ttl.count(), options.socket);
  return context;
}

}  // namespace

Result<std::string> MungeEncode(const std::string& payload, const MungeOptions& options) {
  MSA_ASSIGN_OR_RETURN(const Context context, MakeContext(options));
  char* text = nullptr;
  const munge_err_t error =
      munge_encode(&text, context.get(), payload.data(), static_cast<int>(payload.size()));
  const std::unique_ptr<char, Free> owner(text);
  if (error != EMUNGE_SUCCESS) return Failure(error, context.get(), "make a munge credential");
  return std::string(text);
}

Result<MungeCredential> MungeDecode(const std::string& credential, const MungeOptions& options) {
  MSA_ASSIGN_OR_RETURN(const Context context, MakeContext(options));
  void* data = nullptr;
  int size = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  const munge_err_t error = munge_decode(credential.c_str(), context.get(), &data, &size, &uid, &gid);
  // libmunge hands out the payload of expired and replayed ones, too.
  const std::unique_ptr<void, Free> owner(data);
  if (error != EMUNGE_SUCCESS) return Failure(error, context.get(), "munge credential refused");
  return MungeCredential{.user = {uid, gid}, .payload = std::string(static_cast<const char*>(data), size)};
}

}  // namespace msa
