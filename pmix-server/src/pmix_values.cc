#include "pmix_values.h"

#include <cstdlib>
#include <cstring>
#include <limits>

namespace msa::pmix {
namespace {

class PackBuffer {
 public:
  PackBuffer() { PMIX_DATA_BUFFER_CONSTRUCT(&buffer_); }
  ~PackBuffer() { PMIX_DATA_BUFFER_DESTRUCT(&buffer_); }
  PackBuffer(const PackBuffer&) = delete;
  PackBuffer& operator=(const PackBuffer&) = delete;
  pmix_data_buffer_t* get() noexcept { return &buffer_; }

 private:
  pmix_data_buffer_t buffer_;
};

}  // namespace

InfoList::~InfoList() {
  for (pmix_info_t& info : infos_) PMIX_INFO_DESTRUCT(&info);
}

pmix_info_t& InfoList::New(const char* key) {
  pmix_info_t& info = infos_.emplace_back();
  std::memset(&info, 0, sizeof info);
  std::strncpy(info.key, key, PMIX_MAX_KEYLEN);
  return info;
}

void InfoList::Load(const char* key, const void* value, pmix_data_type_t type) {
  pmix_info_t& info = New(key);
  PMIx_Value_load(&info.value, value, type);
}

void InfoList::AddOff(const char* key) {
  const bool off = false;
  Load(key, &off, PMIX_BOOL);
}

void InfoList::AddProc(const char* key, const Proc& value) {
  if (const auto proc = ToPmix(value); proc.ok()) Load(key, &*proc, PMIX_PROC);
}

void InfoList::AddProcs(const char* key, const std::vector<Proc>& values) {
  pmix_data_array_t* array = nullptr;
  PMIX_DATA_ARRAY_CREATE(array, values.size(), PMIX_PROC);
  auto* procs = static_cast<pmix_proc_t*>(array->array);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const auto proc = ToPmix(values[i]); proc.ok()) procs[i] = *proc;
  pmix_info_t& info = New(key);
  info.value.type = PMIX_DATA_ARRAY;
  info.value.data.darray = array;
}

void InfoList::AddArray(const char* key, InfoList&& list) {
  pmix_data_array_t* array = nullptr;
  PMIX_DATA_ARRAY_CREATE(array, list.size(), PMIX_INFO);
  // The array takes over what hangs on the infos.
  if (!list.infos_.empty()) std::memcpy(array->array, list.data(), list.size() * sizeof(pmix_info_t));
  list.infos_.clear();
  pmix_info_t& info = New(key);
  info.value.type = PMIX_DATA_ARRAY;
  info.value.data.darray = array;
}

Result<pmix_proc_t> ToPmix(const Proc& proc) {
  if (proc.nspace.empty() || proc.nspace.size() > PMIX_MAX_NSLEN)
    return Error(Code::kInvalidArgument, "namespace '{}' has {} bytes; 1 to {} are possible",
                 proc.nspace.substr(0, 64), proc.nspace.size(), PMIX_MAX_NSLEN);
  pmix_proc_t result;
  std::memset(&result, 0, sizeof result);
  std::memcpy(result.nspace, proc.nspace.data(), proc.nspace.size());
  result.rank = proc.rank;
  return result;
}

Proc FromPmix(const pmix_proc_t& proc) {
  return {std::string(proc.nspace, strnlen(proc.nspace, PMIX_MAX_NSLEN)), proc.rank};
}

std::vector<Proc> FromPmix(const pmix_proc_t* procs, std::size_t count) {
  std::vector<Proc> result;
  if (procs == nullptr) return result;
  result.reserve(count);
  for (std::size_t i = 0; i < count; ++i) result.push_back(FromPmix(procs[i]));
  return result;
}

std::string PackValue(const pmix_value_t& value) {
  PackBuffer buffer;
  if (PMIx_Data_pack(nullptr, buffer.get(), const_cast<pmix_value_t*>(&value), 1, PMIX_VALUE) != PMIX_SUCCESS)
    return {};
  return {buffer.get()->base_ptr, buffer.get()->bytes_used};
}

Result<pmix_value_t> UnpackValue(const std::string& packed) {
  PackBuffer buffer;
  // libpmix frees what it reads from.
  auto* copy = static_cast<char*>(std::malloc(packed.size() + 1));
  if (copy == nullptr)
    return Error(Code::kResourceExhausted, "no memory for a value of {} bytes", packed.size());
  std::memcpy(copy, packed.data(), packed.size());
  buffer.get()->base_ptr = copy;
  buffer.get()->unpack_ptr = copy;
  buffer.get()->pack_ptr = copy + packed.size();
  buffer.get()->bytes_allocated = packed.size() + 1;
  buffer.get()->bytes_used = packed.size();
  pmix_value_t value;
  std::memset(&value, 0, sizeof value);
  std::int32_t count = 1;
  const pmix_status_t status = PMIx_Data_unpack(nullptr, buffer.get(), &value, &count, PMIX_VALUE);
  if (status != PMIX_SUCCESS || count != 1)
    return Error(Code::kInvalidArgument, "{} bytes are no packed value: {}", packed.size(),
                 PMIx_Error_string(status));
  return value;
}

bool HasKey(const pmix_info_t& info, std::string_view key) {
  return std::string_view(info.key, strnlen(info.key, PMIX_MAX_KEYLEN)) == key;
}

std::optional<std::string> TextOf(const pmix_value_t& value) {
  if (value.type != PMIX_STRING || value.data.string == nullptr) return std::nullopt;
  return std::string(value.data.string);
}

std::optional<std::int64_t> NumberOf(const pmix_value_t& value) {
  switch (value.type) {
    case PMIX_BYTE:
      return value.data.byte;
    case PMIX_SIZE:
      return static_cast<std::int64_t>(value.data.size);
    case PMIX_INT:
      return value.data.integer;
    case PMIX_INT8:
      return value.data.int8;
    case PMIX_INT16:
      return value.data.int16;
    case PMIX_INT32:
      return value.data.int32;
    case PMIX_INT64:
      return value.data.int64;
    case PMIX_UINT:
      return value.data.uint;
    case PMIX_UINT8:
      return value.data.uint8;
    case PMIX_UINT16:
      return value.data.uint16;
    case PMIX_UINT32:
      return value.data.uint32;
    case PMIX_UINT64:
      return static_cast<std::int64_t>(value.data.uint64);
    case PMIX_TIMEVAL:
      return value.data.tv.tv_sec;
    case PMIX_TIME:
      return value.data.time;
    case PMIX_DATA_RANGE:
      return value.data.range;
    case PMIX_PERSIST:
      return value.data.persist;
    default:
      return std::nullopt;
  }
}

bool FlagOf(const pmix_value_t& value) {
  if (value.type == PMIX_BOOL) return value.data.flag;
  const auto number = NumberOf(value);
  return number && *number != 0;
}

std::uint32_t TimeoutOf(const pmix_info_t* infos, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!HasKey(infos[i], PMIX_TIMEOUT)) continue;
    const auto seconds = NumberOf(infos[i].value);
    if (seconds && *seconds > 0 && *seconds <= std::numeric_limits<std::uint32_t>::max())
      return static_cast<std::uint32_t>(*seconds);
  }
  return 0;
}

std::vector<std::string> StringsOf(char* const* array) {
  std::vector<std::string> result;
  for (; array != nullptr && *array != nullptr; ++array) result.emplace_back(*array);
  return result;
}

std::vector<std::string> SplitList(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (comma != 0) parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return parts;
}

}  // namespace msa::pmix
