#pragma once
// Records in what squeue, sinfo and sacct print. Fields are free texts of users (a job's name may hold blanks
// and newlines), so they are separated by marks that hold a token of this one call: nobody can foresee them.
// Pure; any thread.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/status.h"

namespace msa::cli {

class RecordFormat {
 public:
  // `token`: hexadecimal digits, other ones at each call.
  explicit RecordFormat(std::string_view token);

  // For -O of squeue and sinfo: "JobID:<mark>,Name:<mark>".
  std::string Ask(std::span<const std::string_view> fields) const;

  // Each record has `fields` values, as Slurm writes them. kDataLoss: the text ends within a record, or holds
  // anything between two; the number of the record is named.
  Result<std::vector<std::vector<std::string>>> Read(std::string_view text, std::size_t fields) const;

  // For sacct, whose --parsable puts one mark behind each value (--delimiter) and a newline behind each
  // record.
  const std::string& delimiter() const noexcept { return between_; }
  // Likewise; kDataLoss as of Read.
  Result<std::vector<std::vector<std::string>>> ReadParsable(std::string_view text, std::size_t fields) const;

 private:
  std::string between_;
  std::string end_;
};

// Slurm's "(null)", "N/A", "n/a", "Unknown", "NONE", "none" and "None": no value. Else the text.
std::string_view Given(std::string_view text);
// "12", "4K" (4096), "2-4" (2); 0: no number.
std::uint64_t SlurmNumber(std::string_view text);
// Seconds since 1970, as SLURM_TIME_FORMAT=%s writes times; milliseconds, 0: no time.
std::int64_t SlurmTime(std::string_view text);
// Slurm's list of nodes, one by one; one that msa cannot expand stays whole.
std::vector<std::string> NodesOfList(std::string_view list);

}  // namespace msa::cli
