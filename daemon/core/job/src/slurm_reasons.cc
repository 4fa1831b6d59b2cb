#include "msa/job/slurm_reasons.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace msa {
namespace {

struct Known {
  std::string_view word;  // or its beginning, if it ends with '*'
  std::string_view job;
  std::string_view companion;
};
constexpr std::string_view kWait = "wait longer (msa_wait)";
constexpr std::string_view kOtherAccount =
    "run the asking job with an --account and a --qos that may use partition '{partition}'";
constexpr std::string_view kPartitionAway =
    "use another module, or ask the administrator; 'scontrol show partition {partition}' tells when it is up";
constexpr std::string_view kNodesAway =
    "name no nodes or others, ask for fewer, or wait longer (msa_wait) until they are back; 'sinfo -R' tells "
    "why they are away";
constexpr std::string_view kFailedStart = "ask the operators why, then 'scontrol release {job}'";
constexpr auto kKnown = std::to_array<Known>({
    {"", "ask again in some seconds", kWait},
    {"None", "ask again in some seconds", kWait},
    {"Resources", "", "wait longer (msa_wait) or ask for less"},
    {"Priority", "a shorter --time lets Slurm fit it into gaps before them",
     "wait longer (msa_wait), or ask for a shorter time (msa_time), which Slurm fits into gaps"},
    {"Dependency", "", "wait longer (msa_wait); 'scontrol show job {job}' names the jobs that it waits for"},
    {"DependencyNeverSatisfied", "cancel it, 'msactl job cancel {job}', and submit it again",
     "ask again without that dependency"},
    {"BeginTime", "", "wait longer (msa_wait), beyond that time"},
    {"JobHeldUser", "release it: 'scontrol release {job}'",
     "release it while it waits: 'scontrol release {job}'"},
    {"JobHeldAdmin", "ask the operators; only they can release it",
     "ask the administrator, who alone can release it"},
    {"JobHoldMaxRequeue", "look for the cause, then 'scontrol release {job}'", "ask again"},
    {"launch_failed_requeued_held", kFailedStart,
     "ask the administrator why its start failed, and ask again"},
    {"launch failed requeued held", kFailedStart,
     "ask the administrator why its start failed, and ask again"},
    {"ReqNodeNotAvail", "see 'msactl node list'; name no nodes (--nodelist), or wait until they are back",
     kNodesAway},
    {"Nodes_required_for_job*", "see 'msactl node list'", kNodesAway},
    {"Nodes required for job*", "see 'msactl node list'", kNodesAway},
    {"NodeDown", "see 'msactl node list'", kNodesAway},
    {"PartitionDown", "use another module, or wait for the operators", kPartitionAway},
    {"PartitionInactive", "use another module, or wait for the operators", kPartitionAway},
    {"PartitionNodeLimit", "ask for another number: 'scontrol update job={job} numnodes=N'",
     "ask for another number of nodes; 'scontrol show partition {partition}' tells the limit (MaxNodes)"},
    {"PartitionTimeLimit",
     "lower it: 'scontrol update job={job} timelimit=T'; 'sinfo -p {partition}' tells the limit",
     "ask for a shorter time (msa_time); 'sinfo -p {partition}' tells the limit"},
    {"PartitionConfig", "compare 'scontrol show partition {partition}' with 'scontrol show job {job}'",
     "ask for less, or use another module; 'scontrol show partition {partition}' tells what it has"},
    {"BadConstraints", "cancel it and ask for other features, nodes or cores",
     "ask for other nodes or fewer cores of each, or use another module"},
    {"Licenses", "'scontrol show licenses' tells how many are free; ask for less, or wait",
     "wait longer (msa_wait); 'scontrol show licenses' tells how many are free"},
    {"Reservation", "see 'scontrol show reservation'",
     "wait longer (msa_wait); 'scontrol show reservation' tells when it begins"},
    {"ReservationDeleted", "submit it again without --reservation", "ask again without that reservation"},
    {"InvalidQOS", "'scontrol update job={job} qos=NAME'", kOtherAccount},
    {"QOSNotAllowed", "'scontrol update job={job} qos=NAME'", kOtherAccount},
    {"InvalidAccount", "'scontrol update job={job} account=NAME'", kOtherAccount},
    {"AccountNotAllowed", "'scontrol update job={job} account=NAME'", kOtherAccount},
    {"AccountingPolicy", "'sacctmgr show assoc where account={account}' tells its limits",
     "ask for less, or again when other jobs have ended; 'sacctmgr show assoc where account={account}' and "
     "'sacctmgr show qos where name={qos}' tell the limits"},
    {"QOSUsageThreshold", "use another --qos, or wait until its usage has decayed",
     "run the asking job with another --qos; this one's usage decays in days"},
    {"MaxMemPerLimit", "ask for less memory", "ask for fewer cores of each node (msa_ppn)"},
    {"JobArrayTaskLimit", "'scontrol update job={job} arraytaskthrottle=N' allows more", kWait},
    {"BurstBufferResources", "see 'msactl region df'", kWait},
    {"BurstBufferStageIn", "", kWait},
    {"BurstBufferOperation", "mend it and submit again", "ask again"},
    {"Cleaning", "", kWait},
    {"Prolog", "", kWait},
    {"FrontEndDown", "ask the operators", "ask the administrator"},
    {"DeadLine", "cancel it and submit it anew", "ask for a shorter time (msa_time)"},
    {"SystemFailure", "ask the operators", "ask the administrator"},
});

// What a limit counts, by a part of its name.
constexpr auto kCounted = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"Submit", "jobs in the queue"},
    {"Jobs", "jobs that run"},
    {"Cpu", "cores"},
    {"CPU", "cores"},
    {"Node", "nodes"},
    {"Mem", "memory"},
    {"Gres", "generic resources"},
    {"GRES", "generic resources"},
    {"Lic", "licences"},
    {"BB", "burst buffers"},
    {"Billing", "billing units"},
    {"Wall", "time"},
    {"Energy", "energy"},
});

bool Holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

const Known* Find(std::string_view word) {
  for (const Known& known : kKnown) {
    const bool prefix = known.word.ends_with('*');
    if (prefix ? word.starts_with(known.word.substr(0, known.word.size() - 1)) : word == known.word)
      return &known;
  }
  return nullptr;
}

std::string LimitRemedy(const SlurmLimit& limit, RemedyFor whom) {
  const bool job = whom == RemedyFor::kJob;
  const std::string_view see = limit.qos ? "'sacctmgr show qos where name={qos}' tells the limit"
                                         : "'sacctmgr show assoc where account={account}' tells the limit";
  const std::string_view other =
      job ? "use another --qos or --account" : "run the asking job with another --qos or --account";
  if (limit.of == SlurmLimit::Of::kJob) {
    const std::string ask = limit.least               ? fmt::format("ask for more ({})", limit.counted)
                            : limit.counted == "time" ? std::string("ask for a shorter time")
                                                      : fmt::format("ask for less ({})", limit.counted);
    const bool msa_time = !job && !limit.least && limit.counted == "time";
    return fmt::format("{}{}, or {}; {}{}", ask, msa_time ? " (msa_time)" : "", other, see,
                       job ? "; as it is it can never start" : "");
  }
  if (limit.used_up) return fmt::format("ask the administrator for more, or {}; {}", other, see);
  if (job)
    return fmt::format("it starts when one of them ends; another --qos or --account may have room; {}", see);
  return fmt::format(
      "wait longer (msa_wait) for the end of other jobs, or {}, with room for the asking job and this one; "
      "{}",
      other, see);
}

}  // namespace

std::optional<SlurmLimit> ParseSlurmLimit(std::string_view reason) {
  SlurmLimit out;
  out.counted = "what it asks for";
  std::string_view rest = reason;
  // Of a Slurm that had one word for all limits of a kind.
  if (TakePrefix(rest, "Association") && rest.ends_with("Limit")) return out;
  out.qos = TakePrefix(rest, "QOS");
  const bool association = !out.qos && TakePrefix(rest, "Assoc");
  if (out.qos && (rest == "JobLimit" || rest == "ResourceLimit" || rest == "TimeLimit")) return out;
  // "MaxCpuPerAccount" is of a QOS.
  if (!out.qos && !association) out.qos = rest.starts_with("Max") && rest.ends_with("PerAccount");
  if (!out.qos && !association) return std::nullopt;
  const bool group = TakePrefix(rest, "Grp");
  out.least = !group && TakePrefix(rest, "Min");
  if (!group && !out.least && !TakePrefix(rest, "Max")) return std::nullopt;
  const bool wall = Holds(rest, "Wall");
  const bool one_job = Holds(rest, "PerJob") || Holds(rest, "PerNode") || wall || out.least;
  out.of = group                       ? SlurmLimit::Of::kAll
           : one_job                   ? SlurmLimit::Of::kJob
           : Holds(rest, "PerAccount") ? SlurmLimit::Of::kAccount
                                       : SlurmLimit::Of::kUser;
  out.used_up = group && (wall || (Holds(rest, "Minutes") && !Holds(rest, "RunMinutes")));
  const auto counted = std::find_if(kCounted.begin(), kCounted.end(), [&](const auto& one) {
    return Holds(rest.substr(0, rest.find("Per")), one.first);
  });
  if (counted != kCounted.end()) out.counted = counted->second;
  return out;
}

std::string WithNames(std::string_view text, const SlurmJobNames& names) {
  const std::array<std::pair<std::string_view, std::string_view>, 5> values = {
      {{"{job}", names.job},
       {"{partition}", names.partition},
       {"{qos}", names.qos},
       {"{account}", names.account},
       {"{licenses}", names.licenses}}};
  std::string out(text);
  for (const auto& [key, value] : values)
    for (std::size_t at = 0; (at = out.find(key, at)) != std::string::npos; at += value.size())
      out.replace(at, key.size(), value);
  return out;
}

std::string RemedyText(std::string_view reason, RemedyFor whom, const SlurmJobNames& names) {
  // "ReqNodeNotAvail, UnavailableNodes:cn0"
  if (!reason.starts_with("Nodes")) reason = reason.substr(0, reason.find_first_of(",("));
  if (const Known* known = Find(reason))
    return WithNames(whom == RemedyFor::kJob ? known->job : known->companion, names);
  if (const auto limit = ParseSlurmLimit(reason)) return WithNames(LimitRemedy(*limit, whom), names);
  if (whom == RemedyFor::kJob)
    return WithNames("squeue(1) explains its reasons; 'scontrol show job {job}' tells all of it", names);
  return "squeue(1) explains Slurm's reasons; wait longer (msa_wait) or ask for less";
}

}  // namespace msa
