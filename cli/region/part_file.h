#pragma once
// The state of a transfer that is under way, FILE.msa-part: what `--resume` goes on from.

#include <cstdint>
#include <string>
#include <string_view>

#include "msa/base/nam_ids.h"
#include "msa/base/status.h"

#include "region/checksum.h"

namespace msa::cli {

// Tells whether a source or target is the one that it was.
struct PartSide {
  enum class Kind { kFile, kRegion };
  Kind kind = Kind::kFile;
  std::uint64_t bytes = 0;    // of a file that is read
  std::int64_t mtime_ns = 0;  // of a file that is read
  RegionUuid uuid;
  Generation generation;
  std::uint64_t begin = 0;  // of the stretch of a region
  friend bool operator==(const PartSide&, const PartSide&) = default;
};

struct PartState {
  PartSide source;
  PartSide target;
  std::uint64_t length = 0;    // of all that is to be moved
  std::uint64_t position = 0;  // so much has been
  Checksum checksum;           // of what has been
  friend bool operator==(const PartState&, const PartState&) = default;
};

inline constexpr std::size_t kMaxPartFile = 4096;

// Lines of words, the last one a checksum of the others.
std::string ToText(const PartState& state);
// kDataLoss: torn or damaged, with what is wrong; kFailedPrecondition: of another version.
Result<PartState> ParsePartState(std::string_view text);

// Where the state of a transfer of `file` is kept: beside it, as FILE.msa-part, or where nothing can be made
// there, under the user's state directory ($XDG_STATE_HOME/msa, else ~/.local/state/msa), by its whole name.
// The same file gives the same path. Empty: nowhere.
std::string PartPath(const std::string& file);

}  // namespace msa::cli
