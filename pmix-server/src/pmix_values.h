#pragma once
// Between libpmix's C structures and ours. Owners of libpmix's memory; no threads of its own. Packing and
// unpacking need an initialised server and are safe from any thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pmix.h>
#include <pmix_common.h>

#include "msa/base/status.h"
#include "msa/pmix/types.h"

namespace msa::pmix {

// A list of pmix_info_t with all that hangs on it.
class InfoList {
 public:
  InfoList() = default;
  ~InfoList();
  InfoList(InfoList&& other) noexcept : infos_(std::move(other.infos_)) { other.infos_.clear(); }
  InfoList(const InfoList&) = delete;
  InfoList& operator=(const InfoList&) = delete;
  InfoList& operator=(InfoList&&) = delete;

  void AddString(const char* key, const std::string& value) { Load(key, value.c_str(), PMIX_STRING); }
  void AddRegex(const char* key, const char* value) { Load(key, value, PMIX_REGEX); }
  void AddU32(const char* key, std::uint32_t value) { Load(key, &value, PMIX_UINT32); }
  void AddU16(const char* key, std::uint16_t value) { Load(key, &value, PMIX_UINT16); }
  void AddRank(const char* key, pmix_rank_t value) { Load(key, &value, PMIX_PROC_RANK); }
  void AddStatus(const char* key, pmix_status_t value) { Load(key, &value, PMIX_STATUS); }
  void AddFlag(const char* key) { Load(key, nullptr, PMIX_BOOL); }  // true
  void AddOff(const char* key);                                     // false
  void AddProc(const char* key, const Proc& value);
  void AddProcs(const char* key, const std::vector<Proc>& values);
  // The list becomes the array of one info.
  void AddArray(const char* key, InfoList&& list);

  // Valid until the next change.
  pmix_info_t* data() noexcept { return infos_.data(); }
  std::size_t size() const noexcept { return infos_.size(); }

 private:
  pmix_info_t& New(const char* key);
  void Load(const char* key, const void* value, pmix_data_type_t type);
  std::vector<pmix_info_t> infos_;
};

// kInvalidArgument: the name is longer than PMIX_MAX_NSLEN.
Result<pmix_proc_t> ToPmix(const Proc& proc);
Proc FromPmix(const pmix_proc_t& proc);
std::vector<Proc> FromPmix(const pmix_proc_t* procs, std::size_t count);

// Empty on failure, which libpmix reports for unknown types only.
std::string PackValue(const pmix_value_t& value);
// The caller destructs the value (PMIX_VALUE_DESTRUCT). kInvalidArgument: not a packed value.
Result<pmix_value_t> UnpackValue(const std::string& packed);

bool HasKey(const pmix_info_t& info, std::string_view key);
// nullopt: another type.
std::optional<std::string> TextOf(const pmix_value_t& value);
std::optional<std::int64_t> NumberOf(const pmix_value_t& value);
// True for a flag that is set, and for a number but 0.
bool FlagOf(const pmix_value_t& value);
// PMIX_TIMEOUT among the infos, in seconds; 0: none.
std::uint32_t TimeoutOf(const pmix_info_t* infos, std::size_t count);

// The strings of a NULL-terminated array; empty for NULL.
std::vector<std::string> StringsOf(char* const* array);
// Parts of a list separated by commas, without empty ones.
std::vector<std::string> SplitList(std::string_view list);

}  // namespace msa::pmix
