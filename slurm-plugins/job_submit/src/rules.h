#pragma once
// What becomes of a job's --module, --nam and --gateways when it is submitted, and which jobs are refused
// because they can never start. Pure; any thread. job_submit.lua holds the same rules; test/cases.txt is the
// table that both are held to.

#include <cstdint>
#include <optional>
#include <string>

#include "msa/base/status.h"

#include "site.h"

namespace msa::job_submit {

// A job, or one component of a heterogeneous one, as slurmctld gets it. Empty: not given.
struct Submission {
  std::string module;                      // --module, one text for all components
  std::string nam;                         // --nam
  std::string gateways;                    // --gateways
  std::optional<std::uint32_t> component;  // nullopt: not of a heterogeneous job
  std::optional<std::uint32_t> nodes;      // the least number of them
  std::string partition;
  std::string features;
  std::string licenses;
  bool array = false;
  std::string script;  // of the first component alone

  // Else nothing of ours is asked: the job is none of our business.
  bool concerns_us() const {
    return component.has_value() || !module.empty() || !nam.empty() || !gateways.empty();
  }
};

// What to set; nullopt: it stays as it is.
struct Decision {
  std::optional<std::string> partition;
  std::optional<std::string> features;
  std::optional<std::string> licenses;
};

// Why a job is refused: the text for the user, and the number by which Slurm sums it up.
struct Refusal {
  int code = 0;
  std::string text;
};
// slurm_errno.h, where numbers are never reused.
inline constexpr int kInvalidPartition = 2000, kInvalidNodeCount = 2006, kInvalidFeature = 2029,
                     kNotSupported = 2036, kInvalidLicences = 2048, kInvalidArray = 2081;

// `site` null: nothing is known of the system; a module is the partition of its name, and Slurm judges.
tl::expected<Decision, Refusal> Judge(const Submission& submission, const Site* site);

}  // namespace msa::job_submit
