#include "reason_text.h"

#include <array>
#include <utility>

#include <fmt/format.h>

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
    Known{"JobHeldUser", Prospect::kQueued, "it is held; its owner can release it (scontrol release)"},
    Known{"JobHeldAdmin", Prospect::kQueued, "it is held by an administrator"},
    Known{"PartitionDown", Prospect::kBusy, "the partition is down"},
    Known{"PartitionInactive", Prospect::kBusy, "the partition is inactive"},
    Known{"PartitionNodeLimit", Prospect::kNever,
          "it asks for more nodes than the partition gives to one job; ask for fewer"},
    Known{"PartitionTimeLimit", Prospect::kNever,
          "its time limit is above the partition's; ask for a shorter time (msa_time)"},
    // Written before the job is looked at, too, so it says nothing by itself.
    Known{"PartitionConfig", Prospect::kUnknown, "the partition has not so much, or does not allow it"},
    Known{"BadConstraints", Prospect::kNever, "no node fits what is asked for"},
    Known{"AccountNotAllowed", Prospect::kDenied, "the partition or QOS is not open to the job's account"},
    Known{"QOSNotAllowed", Prospect::kDenied, "the partition is not open to the job's QOS"},
    Known{"InvalidAccount", Prospect::kDenied, "the account is not valid"},
    Known{"InvalidQOS", Prospect::kDenied, "the QOS is not valid"},
    Known{"ReservationDeleted", Prospect::kNever, "its reservation was deleted"},
    Known{"DeadLine", Prospect::kNever, "it cannot end by its deadline"},
    Known{"MaxMemPerLimit", Prospect::kNever, "it asks for more memory than is allowed; ask for less"},
    Known{"JobArrayTaskLimit", Prospect::kQueued, "the array's limit of running tasks is reached"},
    Known{"AccountingPolicy", Prospect::kLimited, "a limit of accounting is reached"},
    Known{"AssociationJobLimit", Prospect::kLimited, "the association's limit of jobs is reached"},
    Known{"AssociationResourceLimit", Prospect::kLimited, "a limit of the association is reached"},
    Known{"AssociationTimeLimit", Prospect::kLimited, "the association's limit of time is reached"},
    Known{"QOSJobLimit", Prospect::kLimited, "the QOS's limit of jobs is reached"},
    Known{"QOSResourceLimit", Prospect::kLimited, "a limit of the QOS is reached"},
    Known{"QOSTimeLimit", Prospect::kLimited, "the QOS's limit of time is reached"},
    Known{"QOSUsageThreshold", Prospect::kLimited, "the QOS's usage threshold is breached"},
};

const Known* Find(std::string_view reason) {
  for (const Known& known : kKnown)
    if (known.reason == reason) return &known;
  // "ReqNodeNotAvail, UnavailableNodes:bn1"
  if (reason.starts_with("ReqNodeNotAvail,")) return Find("ReqNodeNotAvail");
  return nullptr;
}

// The many of one pattern: [QOS|Assoc][Max|Min|Grp]WHAT[PerJob|PerUser|PerAccount|PerNode][Limit], and
// MaxWHATPerAccount.
struct Limit {
  bool qos = false;
  std::string_view kind;  // "Max", "Min", "Grp"
  std::string_view rest;  // "CpuPerUser"
};

bool ParseLimit(std::string_view reason, Limit& limit) {
  if (!reason.ends_with("Limit") && !reason.ends_with("Minutes") && !reason.starts_with("QOSMin"))
    return false;
  limit.qos = reason.starts_with("QOS");
  if (limit.qos) reason.remove_prefix(3);
  if (reason.starts_with("Assoc")) reason.remove_prefix(5);
  for (const std::string_view kind : {"Max", "Min", "Grp"})
    if (reason.starts_with(kind)) limit.kind = kind;
  if (limit.kind.empty()) return false;
  limit.rest = reason.substr(limit.kind.size());
  if (limit.rest.ends_with("Limit")) limit.rest.remove_suffix(5);
  return true;
}

bool OfOneJob(const Limit& limit) {
  return limit.kind == "Min" || limit.rest.find("PerJob") != limit.rest.npos ||
         limit.rest.find("PerNode") != limit.rest.npos || limit.rest.starts_with("Wall");
}

}  // namespace

Prospect ProspectOf(std::string_view reason) {
  if (const Known* known = Find(reason)) return known->prospect;
  Limit limit;
  if (!ParseLimit(reason, limit)) return Prospect::kUnknown;
  if (limit.kind != "Grp" && OfOneJob(limit)) return Prospect::kNever;
  return Prospect::kLimited;
}

std::string ReasonText(std::string_view reason) {
  if (const Known* known = Find(reason)) return std::string(known->text);
  Limit limit;
  if (!ParseLimit(reason, limit)) return std::string(reason);
  const std::string_view whose = limit.qos ? "the QOS" : "the user's association";
  if (limit.kind == "Min") return fmt::format("it asks for less than {} demands of a job", whose);
  if (limit.kind != "Grp" && OfOneJob(limit))
    return fmt::format("it asks for more than {} allows one job; ask for less", whose);
  return fmt::format("a limit of {} is reached by jobs that are there, the asking one among them", whose);
}

}  // namespace msa::companion
