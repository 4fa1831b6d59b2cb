#include "reason_text.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "msa/job/slurm_reasons.h"

namespace msa::companion {
namespace {

struct Known {
  std::string_view reason;
  Prospect prospect;
  std::string_view text;
};

constexpr std::array kKnown = {
    Known{"None", Prospect::kUnknown, "Slurm has not looked at it yet"},
    Known{"", Prospect::kUnknown, "Slurm has not looked at it yet"},
    Known{"Priority", Prospect::kQueued, "jobs of higher priority wait for the same nodes"},
    Known{"Resources", Prospect::kBusy, "what is free does not suffice"},
    Known{"Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
          Prospect::kBusy, "nodes that it needs are down, drained or reserved"},
    Known{"ReqNodeNotAvail", Prospect::kBusy, "nodes that it needs are down, drained or reserved"},
    Known{"NodeDown", Prospect::kBusy, "a node that it needs is down"},
    Known{"Reservation", Prospect::kBusy, "its reservation has not begun"},
    Known{"Licenses", Prospect::kBusy, "its licences are in use"},
    Known{"Cleaning", Prospect::kBusy, "its nodes are being cleaned"},
    Known{"Prolog", Prospect::kBusy, "its nodes are being prepared"},
    Known{"BeginTime", Prospect::kQueued, "its begin time has not come"},
    Known{"Dependency", Prospect::kQueued, "a job that it depends on has not ended"},
    Known{"JobHeldUser", Prospect::kQueued, "its user holds it"},
    Known{"JobHeldAdmin", Prospect::kQueued, "an administrator holds it"},
    Known{"PartitionDown", Prospect::kBusy, "the partition is down"},
    Known{"PartitionInactive", Prospect::kBusy, "the partition is inactive"},
    Known{"PartitionNodeLimit", Prospect::kNever,
          "it asks for more nodes than the partition gives to one job"},
    Known{"PartitionTimeLimit", Prospect::kNever, "its time limit is above the partition's"},
    // Written before the job is looked at, too, so it says nothing by itself.
    Known{"PartitionConfig", Prospect::kUnknown, "the partition has not so much, or does not allow it"},
    Known{"BadConstraints", Prospect::kNever, "no node fits what is asked for"},
    Known{"AccountNotAllowed", Prospect::kDenied, "the partition or QOS is not open to the job's account"},
    Known{"QOSNotAllowed", Prospect::kDenied, "the partition is not open to the job's QOS"},
    Known{"InvalidAccount", Prospect::kDenied, "the account is not valid"},
    Known{"InvalidQOS", Prospect::kDenied, "the QOS is not valid"},
    Known{"ReservationDeleted", Prospect::kNever, "its reservation was deleted"},
    Known{"DeadLine", Prospect::kNever, "it cannot end by its deadline"},
    Known{"MaxMemPerLimit", Prospect::kNever, "it asks for more memory than is allowed"},
    Known{"JobArrayTaskLimit", Prospect::kQueued, "the array's limit of running tasks is reached"},
    Known{"AccountingPolicy", Prospect::kLimited, "a limit of accounting is reached"},
    Known{"QOSUsageThreshold", Prospect::kLimited, "the QOS's usage threshold is breached"},
};

const Known* Find(std::string_view reason) {
  for (const Known& known : kKnown)
    if (known.reason == reason) return &known;
  // "ReqNodeNotAvail, UnavailableNodes:bn1"
  if (reason.starts_with("ReqNodeNotAvail,")) return Find("ReqNodeNotAvail");
  return nullptr;
}

}  // namespace

Prospect ProspectOf(std::string_view reason) {
  if (const Known* known = Find(reason)) return known->prospect;
  const auto limit = ParseSlurmLimit(reason);
  if (!limit) return Prospect::kUnknown;
  return limit->of == SlurmLimit::Of::kJob ? Prospect::kNever : Prospect::kLimited;
}

std::string ReasonText(std::string_view reason) {
  if (const Known* known = Find(reason)) return std::string(known->text);
  const auto limit = ParseSlurmLimit(reason);
  if (!limit) return std::string(reason);
  const std::string_view whose = limit->qos ? "the QOS" : "the user's association";
  if (limit->least) return fmt::format("it asks for less than {} demands of a job", whose);
  if (limit->of == SlurmLimit::Of::kJob) return fmt::format("it asks for more than {} allows one job", whose);
  if (limit->used_up) return fmt::format("what {} may use is used up", whose);
  return fmt::format("a limit of {} is reached by jobs that are there, the asking one among them", whose);
}

bool IsHeld(std::string_view reason) { return reason.starts_with("JobHeld"); }

}  // namespace msa::companion
