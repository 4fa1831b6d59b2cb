// Any bytes as a record of the job store: decoded or refused, never read beyond the end; what is decoded
// encodes again the same way. The first byte of the input chooses the record: of this schema, or of
// version 1.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "msa/job/records.h"

#include "record_archive.h"
#include "schema1_records.h"

namespace {

using namespace msa;

template <class Record>
void CheckRoundTrip(const Record& record) {
  const std::string once = sqlite::EncodeRecord(record);
  Record again;
  if (!sqlite::DecodeRecord(once, again) || sqlite::EncodeRecord(again) != once) std::abort();
}

template <class Record>
void Decode(std::string_view blob) {
  Record record;
  if (sqlite::DecodeRecord(blob, record)) CheckRoundTrip(record);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view blob(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      Decode<JobRecord>(blob);
      break;
    case 1:
      Decode<GrantRecord>(blob);
      break;
    case 2:
      if (const auto job = sqlite::JobFromSchema1(blob); job.ok()) CheckRoundTrip(*job);
      break;
    case 3:
      Decode<RegionRecord>(blob);
      break;
    case 4:
      Decode<LeaseRecord>(blob);
      break;
    default:
      if (const auto grant = sqlite::GrantFromSchema1(blob); grant.ok()) CheckRoundTrip(*grant);
  }
  return 0;
}
