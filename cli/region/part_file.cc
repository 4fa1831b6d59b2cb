#include "region/part_file.h"

#include "region/text_lines.h"

namespace msa::cli {
namespace {

constexpr std::string_view kHead = "msa-part 1";

std::string SideLine(std::string_view key, const PartSide& side) {
  if (side.kind == PartSide::Kind::kFile)
    return fmt::format("{} file {} {} -\n", key, side.bytes, side.mtime_ns);
  return fmt::format("{} region {} {} {}\n", key, ToText(side.uuid), side.generation.value, side.begin);
}

Result<PartSide> TakeSide(SealedLines& lines, std::string_view key) {
  MSA_ASSIGN_OR_RETURN(const auto words, lines.Next(key, 4));
  PartSide out;
  if (words[0] == "file" && words[3] == "-") {
    MSA_RETURN_IF_ERROR(TakeNumber(words[1], "size of the file", &out.bytes));
    MSA_RETURN_IF_ERROR(TakeNumber(words[2], "time of the file", &out.mtime_ns));
    return out;
  }
  const auto uuid = ParseRegionUuid(words[1]);
  if (words[0] != "region" || !uuid)
    return Error(Code::kDataLoss, "the {} is neither a file nor a region", key);
  out.kind = PartSide::Kind::kRegion;
  out.uuid = *uuid;
  MSA_RETURN_IF_ERROR(TakeNumber(words[2], "generation of the region", &out.generation.value));
  MSA_RETURN_IF_ERROR(TakeNumber(words[3], "offset in the region", &out.begin));
  return out;
}

}  // namespace

std::string ToText(const PartState& state) {
  return Seal(fmt::format("{}\n", kHead) + SideLine("source", state.source) +
              SideLine("target", state.target) +
              fmt::format("length {}\nposition {}\nchecksum {}\n", state.length, state.position,
                          ToText(state.checksum)));
}

Result<PartState> ParsePartState(std::string_view text) {
  MSA_ASSIGN_OR_RETURN(SealedLines lines, SealedLines::Open(text, kHead));
  PartState out;
  MSA_ASSIGN_OR_RETURN(out.source, TakeSide(lines, "source"));
  MSA_ASSIGN_OR_RETURN(out.target, TakeSide(lines, "target"));
  MSA_ASSIGN_OR_RETURN(const auto length, lines.Next("length", 1));
  MSA_RETURN_IF_ERROR(TakeNumber(length[0], "length", &out.length));
  MSA_ASSIGN_OR_RETURN(const auto position, lines.Next("position", 1));
  MSA_RETURN_IF_ERROR(TakeNumber(position[0], "position", &out.position));
  if (out.position > out.length)
    return Error(Code::kDataLoss, "position {} is beyond the length {}", out.position, out.length);
  MSA_ASSIGN_OR_RETURN(const auto checksum, lines.Next("checksum", 1));
  const auto value = ParseChecksum(checksum[0]);
  if (!value) return Error(Code::kDataLoss, "'{}' is not a checksum", checksum[0]);
  out.checksum = *value;
  MSA_RETURN_IF_ERROR(lines.End());
  return out;
}

}  // namespace msa::cli
