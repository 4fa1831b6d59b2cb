#pragma once
// The words of PMIx that travel between the parts of a job daemon: processes, values, statuses. Plain data,
// no libpmix. PMIx Standard 4.1 (https://pmix.github.io/uploads/2021/10/pmix-standard-v4.1.pdf).

#include <compare>
#include <cstdint>
#include <string>

namespace msa::pmix {

// A value of pmix_status_t: 0 success, negative errors. The few that the job daemon decides about itself;
// pmix_host.cc checks them against pmix_common.h at compile time.
using PmixStatus = std::int32_t;
inline constexpr PmixStatus kPmixSuccess = 0;
inline constexpr PmixStatus kPmixErr = -1;  // PMIX_ERROR
inline constexpr PmixStatus kPmixErrExists = -11;
inline constexpr PmixStatus kPmixErrTimeout = -24;
inline constexpr PmixStatus kPmixErrUnreachable = -25;  // a member of the operation was lost
inline constexpr PmixStatus kPmixErrBadParam = -27;
inline constexpr PmixStatus kPmixErrOutOfResource = -29;
inline constexpr PmixStatus kPmixErrNotFound = -46;
inline constexpr PmixStatus kPmixErrNotSupported = -47;
inline constexpr PmixStatus kPmixErrPartialSuccess = -52;  // a lookup found some of its keys
inline constexpr PmixStatus kPmixErrDuplicateKey = -53;
inline constexpr PmixStatus kPmixErrJobFailedToStart = -181;  // PMIX_ERR_JOB_FAILED_TO_LAUNCH
inline constexpr PmixStatus kPmixErrJobAborted = -182;        // as an event: a linked namespace was ended
inline constexpr PmixStatus kPmixErrProcTermWithoutSync =
    -200;  // as an event: a task ended before it finalised

inline constexpr std::uint32_t kRankWildcard = 0xfffffffe;  // PMIX_RANK_WILDCARD: every rank of the namespace

struct Proc {
  std::string nspace;
  std::uint32_t rank = 0;
  friend auto operator<=>(const Proc&, const Proc&) = default;
  template <class A>
  void Fields(A& a) {
    a(nspace, rank);
  }
};

// A key with a value; values travel as packed pmix_value_t (PMIx_Data_pack), opaque outside this library.
struct KeyValue {
  std::string key;
  std::string packed_value;
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
  template <class A>
  void Fields(A& a) {
    a(key, packed_value);
  }
};

// Ranges and persistence of published data, with the numbers of pmix_data_range_t and pmix_persistence_t
// (PMIx Standard 4.1, 7.2-7.3).
enum class Range : std::uint8_t {
  kUndef = 0,
  kRm = 1,
  kLocal = 2,
  kNamespace = 3,
  kSession = 4,
  kGlobal = 5,
  kCustom = 6,
  kProcLocal = 7,
  kInvalid = 255
};
enum class Persistence : std::uint8_t {
  kIndefinite = 0,
  kFirstRead = 1,
  kProc = 2,
  kApp = 3,
  kSession = 4,
  kInvalid = 255
};

}  // namespace msa::pmix
