#pragma once
// Errors as values. Nothing else in msa signals failure; exceptions of third-party libraries are caught in
// their adapter. Values of these types are not shared between threads without a lock.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <tl/expected.hpp>

namespace msa {

// Codes equal gRPC's (https://grpc.github.io/grpc/core/md_doc_statuscodes.html), so that an error keeps its
// meaning from a core function to msactl's exit code.
enum class Code : std::uint8_t {
  kOk = 0,
  kCancelled = 1,  // the caller withdrew the request
  kUnknown = 2,
  kInvalidArgument = 3,     // the request is wrong whatever the system's state            msactl exit 2
  kDeadlineExceeded = 4,    // a wait ran out                                               msactl exit 6
  kNotFound = 5,            // no such job, module, node, file                              msactl exit 3
  kAlreadyExists = 6,       // conflict with what is there                                  msactl exit 7
  kPermissionDenied = 7,    //                                                              msactl exit 4
  kResourceExhausted = 8,   // a limit, quota or disk is full                               msactl exit 1
  kFailedPrecondition = 9,  // not in this state                                            msactl exit 7
  kAborted = 10,            // lost a race or a member; try again                           msactl exit 7
  kOutOfRange = 11,         // can never be placed: asks more than exists                   msactl exit 5
  kUnimplemented = 12,      //                                                              msactl exit 1
  kInternal = 13,           // a defect of msa or a broken installation                     msactl exit 1
  kUnavailable = 14,        // daemon unreachable                                           msactl exit 8
  kDataLoss = 15,           //                                                              msactl exit 1
  kUnauthenticated = 16,    //                                                              msactl exit 4
};

// The name as gRPC spells it, "NOT_FOUND". Never empty.
std::string_view CodeName(Code code) noexcept;

// Outcome of an operation without a value. A message says what, which value, what was expected and what to
// do; lower-case, no full stop.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() noexcept { return {}; }

  bool ok() const noexcept { return code_ == Code::kOk; }
  Code code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

  // "context: message" with the same code; an ok status stays as it is.
  Status WithContext(std::string_view context) const;
  // "NOT_FOUND: message", for logs; "OK" if ok.
  std::string ToString() const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Error(Code::kNotFound, "module '{}': ...", name).
template <class... Args>
Status Error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

// Error with ": <strerror>" of `error_number` (an errno value) appended; the code is derived from it: ENOENT
// kNotFound, EACCES/EPERM kPermissionDenied, EEXIST kAlreadyExists, ENOSPC/EDQUOT/EMFILE/ENFILE/ENOMEM
// kResourceExhausted, ECONNREFUSED/ECONNRESET/EPIPE kUnavailable, ETIMEDOUT kDeadlineExceeded, else
// kInternal.
Status ErrnoError(int error_number, std::string_view what);

// A value or the Status that explains its absence.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : rep_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Status error)
      : rep_(tl::unexpected<Status>(std::move(error))) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return rep_.has_value(); }
  // The error; Status::Ok() if there is a value.
  Status status() const { return ok() ? Status::Ok() : rep_.error(); }

  // Undefined unless ok().
  T& operator*() & { return *rep_; }
  const T& operator*() const& { return *rep_; }
  T&& operator*() && { return std::move(*rep_); }
  T* operator->() { return &*rep_; }
  const T* operator->() const { return &*rep_; }

 private:
  tl::expected<T, Status> rep_;
};

}  // namespace msa

#define MSA_CONCAT_INNER_(a, b) a##b
#define MSA_CONCAT_(a, b) MSA_CONCAT_INNER_(a, b)

// Returns the Status from the enclosing function unless it is ok.
#define MSA_RETURN_IF_ERROR(expr)              \
  do {                                         \
    ::msa::Status msa_status_ = (expr);        \
    if (!msa_status_.ok()) return msa_status_; \
  } while (false)

// MSA_ASSIGN_OR_RETURN(auto plan, Place(request, view));
#define MSA_ASSIGN_OR_RETURN(decl, expr) MSA_ASSIGN_OR_RETURN_(MSA_CONCAT_(msa_result_, __LINE__), decl, expr)
#define MSA_ASSIGN_OR_RETURN_(tmp, decl, expr) \
  auto tmp = (expr);                           \
  if (!tmp.ok()) return tmp.status();          \
  decl = std::move(*tmp)
