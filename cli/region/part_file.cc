#include "region/part_file.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

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

std::string PartPath(const std::string& file) {
  const std::filesystem::path beside(file + ".msa-part");
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(beside, failed);
  if (failed) return {};
  if (::access(whole.parent_path().c_str(), W_OK | X_OK) == 0) return beside.string();
  std::vector<std::filesystem::path> homes;
  if (const char* const state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    homes.emplace_back(state);
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home == '/')
    homes.push_back(std::filesystem::path(home) / ".local/state");
  const std::string name = ToText(ChecksumOf(std::string_view(whole.native()))) + ".msa-part";
  for (const auto& home : homes) {
    const std::filesystem::path directory = home / "msa";
    std::filesystem::create_directories(directory, failed);
    if (::access(directory.c_str(), W_OK | X_OK) == 0) return (directory / name).string();
  }
  return {};
}

}  // namespace msa::cli
