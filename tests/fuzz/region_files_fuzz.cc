// Any bytes as the manifest of a snapshot and as the state of a transfer: refused with a reason, or read to
// what is written and read again to the same. The bytes are also sealed first, so that a checksum does not
// keep the fuzzer out; and each is taken for a path of a region.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "region/part_file.h"
#include "region/region_path.h"
#include "region/snapshot_manifest.h"
#include "region/text_lines.h"

namespace {

void CheckRefusal(const msa::Status& status) {
  const bool expected =
      status.code() == msa::Code::kDataLoss || status.code() == msa::Code::kFailedPrecondition;
  if (!expected || status.message().empty()) std::abort();
}

void CheckManifest(std::string_view text) {
  const auto manifest = msa::cli::ParseManifest(text);
  if (!manifest.ok()) return CheckRefusal(manifest.status());
  if (!msa::cli::IsTag(manifest->tag) || manifest->segments.empty()) std::abort();
  for (const auto& segment : manifest->segments)
    if (segment.blocks.size() != msa::cli::BlocksOf(segment.bytes)) std::abort();
  const std::string once = msa::cli::ToText(*manifest);
  const auto again = msa::cli::ParseManifest(once);
  if (!again.ok() || msa::cli::ToText(*again) != once) std::abort();
}

void CheckPart(std::string_view text) {
  const auto state = msa::cli::ParsePartState(text);
  if (!state.ok()) return CheckRefusal(state.status());
  if (state->position > state->length) std::abort();
  const auto again = msa::cli::ParsePartState(msa::cli::ToText(*state));
  if (!again.ok() || *again != *state) std::abort();
}

void CheckPath(std::string_view text) {
  const auto path = msa::cli::ParseRegionPath(text);
  if (!path.ok()) {
    if (path.status().code() != msa::Code::kInvalidArgument) std::abort();
    return;
  }
  msa::wire::NamRegionInfo region;
  region.segments = {{msa::Bytes(100), 1, "nam0"}, {msa::Bytes(~std::uint64_t{0} >> 2), 1, "nam1"}};
  const auto range = msa::cli::RangeOf(*path, std::nullopt, region);
  if (range.ok() && range->begin + range->length > 100 + (~std::uint64_t{0} >> 2)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckManifest(text);
  CheckPart(text);
  CheckPath(text);
  const std::string sealed = msa::cli::Seal(std::string(text));
  CheckManifest(sealed);
  CheckPart(sealed);
  return 0;
}
