#pragma once
// What helps against Slurm's reasons for leaving a job in its queue ("QOSMaxJobsPerUserLimit"). Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace msa {

// A limit of accounting: [QOS|Assoc][Max|Min|Grp]WHAT[PerJob|PerUser|PerAccount|PerNode][Limit].
struct SlurmLimit {
  enum class Of : std::uint8_t {
    kJob,      // that a job is above (or below: `least`) whatever else there is
    kUser,     // on what the jobs of one user have together
    kAccount,  // of one account
    kAll,      // of all that the association or QOS holds
  };
  bool qos = false;  // else of the association
  bool least = false;
  bool used_up = false;  // counts what has been used, which comes not back with a job's end
  Of of = Of::kUser;
  std::string_view counted;  // "cores"
};
// None: the word is of no limit.
std::optional<SlurmLimit> ParseSlurmLimit(std::string_view reason);

// What a text names of the job; empty: not known.
struct SlurmJobNames {
  std::string job, partition, qos, account, licenses;
};
// "{job}", "{partition}", ... in the text replaced.
std::string WithNames(std::string_view text, const SlurmJobNames& names);

enum class RemedyFor : std::uint8_t {
  kJob,        // one that its user submitted and may change
  kCompanion,  // for children of another job; the program that asked may ask again, otherwise
};
// What can be done, in the imperative, without a full stop. "wait longer (msa_wait)" only where a wait may
// help. Of a job that but has to wait: empty.
std::string RemedyText(std::string_view reason, RemedyFor whom, const SlurmJobNames& names);

}  // namespace msa
