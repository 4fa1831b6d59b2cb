#pragma once
// Values of the options of `msactl region` as text. kInvalidArgument names the value and what was expected;
// the caller adds the option. Pure unless said.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/nam_region.h"
#include "msa/base/status.h"

namespace msa::cli {

// As ParseMemory (MiB, or with K, M, G, T), and "100B" for bytes.
Result<Bytes> ParseRegionSize(std::string_view text);
// Bytes, or with K, M, G, T: of offsets and lengths.
Result<std::uint64_t> ParseByteCount(std::string_view text);

// A name, a port name or a uuid.
Result<std::string> ParseRegionName(std::string_view text);
// Of something new: letters, digits, '.', '_' and '-', the first one a letter or a digit, at most
// kMaxNamName.
Result<std::string> ParseNewRegionName(std::string_view text);

// "SIZE[:DISP_UNIT]".
Result<wire::NamSegmentSpec> ParseSegment(std::string_view text);
// `total` in `count` segments: equal ones, the last takes the remainder too.
std::vector<wire::NamSegmentSpec> EqualSegments(Bytes total, std::uint32_t count);

struct SegmentSize {
  std::uint32_t segment = 0;
  Bytes bytes;
};
// "I=SIZE".
Result<SegmentSize> ParseSegmentSize(std::string_view text);

// Octal, rw bits only: "0640", "660".
Result<std::uint32_t> ParseRegionMode(std::string_view text);
Result<wire::NamPlacement> ParsePlacement(std::string_view text);

// "rwm", any of them, each once.
Result<NamRights> ParseRights(std::string_view text);
// "rw", "rwm", "r"; "none" without any.
std::string ShowRights(NamRights rights);

// Names to ids; read from the system's databases. kNotFound.
Result<std::uint32_t> UserId(std::string_view name_or_id);
Result<std::uint32_t> GroupId(std::string_view name_or_id);
// "user:NAME:rwm" or "group:NAME:r". Reads the system's databases.
Result<wire::NamAclEntry> ParseAclEntry(std::string_view text);
// "user:NAME" or "group:NAME": an entry that removes. Reads the system's databases.
Result<wire::NamAclEntry> ParseAclRemoval(std::string_view text);
// "user:alice", "group:1004" if there is no such name. Reads the system's databases.
std::string ShowAclSubject(const wire::NamAclEntry& entry);

}  // namespace msa::cli
