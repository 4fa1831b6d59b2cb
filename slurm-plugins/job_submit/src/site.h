#pragma once
// What job_submit knows of the system: a small file that 'msactl admin job-submit' writes of the topology
// file. Slurm's own lists of partitions and nodes cannot be read from a plugin by public headers, and a call
// of libslurm inside slurmctld would wait for slurmctld itself. Pure; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa::job_submit {

// Where Slurm's own configuration lies; MSA_JOB_SUBMIT_CONF in slurmctld's environment names another.
inline constexpr char kSiteFile[] = "/etc/slurm/msa_job_submit.conf";
inline constexpr std::size_t kMaxSiteBytes = std::size_t{1} << 20;

// What a module is in Slurm: a partition that holds its nodes and no others, or a feature of them.
struct SiteModule {
  std::string name;
  std::string id;  // as text: users may write it
  std::string kind;
  std::uint32_t nodes = 0;
  std::string partition;  // empty: it is a feature
  std::string feature;
};

struct Site {
  std::vector<SiteModule> modules;
  std::optional<Bytes> nam;  // nullopt: the system has none
  Bytes granule{std::uint64_t{1} << 30};
  std::string nam_licence = "nam";  // empty: Slurm does not count it
  std::optional<std::uint32_t> gateways;
  std::string gateway_licence = "gateway";
};

// Lines of "module NAME id=N kind=WORD nodes=N [partition=NAME|feature=NAME]", "nam bytes=SIZE [granule=SIZE]
// [licence=NAME|none]" and "gateways nodes=N [licence=NAME|none]"; '#' begins a comment. kInvalidArgument:
// "FILE:LINE: ...".
Result<Site> ParseSite(std::string_view text, const std::string& file);

// Words of a line, separated by blanks.
std::vector<std::string_view> SplitBlanks(std::string_view text);
// All of it decimal digits, at most 9 of them.
std::optional<std::uint32_t> ParseCount(std::string_view text);

}  // namespace msa::job_submit
