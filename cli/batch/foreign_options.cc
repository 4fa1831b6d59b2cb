#include "batch/foreign_options.h"

namespace msa::cli {
namespace {

constexpr Takes kNone = Takes::kNothing;
constexpr Takes kValue = Takes::kValue;
constexpr Takes kMaybe = Takes::kOptionalValue;

constexpr std::string_view kAccounting = "msa keeps no accounts";
constexpr std::string_view kMail = "msa sends no mail; see 'msactl job wait'";
constexpr std::string_view kPlacement = "msa places tasks by cores, in blocks";
constexpr std::string_view kHardware = "msa does not set it";
constexpr std::string_view kNetwork = "msa does not know the network's switches";
constexpr std::string_view kPriority = "the queue is first come, first served";
constexpr std::string_view kRequeue = "msa starts no job twice";
constexpr std::string_view kOne = "there is one system";
constexpr std::string_view kAlways = "it is always so";

constexpr ForeignOption kOptions[] = {
    {'A', "account", kValue, kAccounting, {}},
    {0, "acctg-freq", kValue, kAccounting, {}},
    {0, "wckey", kValue, kAccounting, {}},
    {0, "mcs-label", kValue, kAccounting, {}},
    {0, "profile", kValue, kAccounting, {}},
    {'q', "qos", kValue, "msa knows no qualities of service", {}},
    {0, "comment", kValue, "msa keeps no comments", {}},
    {0, "admin-comment", kValue, "msa keeps no comments", {}},
    {0, "mail-type", kValue, kMail, {}},
    {0, "mail-user", kValue, kMail, {}},
    {'B', "extra-node-info", kValue, kPlacement, {}},
    {0, "cores-per-socket", kValue, kPlacement, {}},
    {0, "sockets-per-node", kValue, kPlacement, {}},
    {0, "threads-per-core", kValue, kPlacement, {}},
    {0, "ntasks-per-core", kValue, kPlacement, {}},
    {0, "ntasks-per-socket", kValue, kPlacement, {}},
    {0, "mincpus", kValue, kPlacement, {}},
    {0, "hint", kValue, kPlacement, {}},
    {0, "mem-bind", kValue, kPlacement, {}},
    {0, "distribution", kValue, kPlacement, {}},
    {'S', "core-spec", kValue, kPlacement, {}},
    {0, "thread-spec", kValue, kPlacement, {}},
    {0, "gpu-bind", kValue, kHardware, {}},
    {0, "gpu-freq", kValue, kHardware, {}},
    {0, "gres-flags", kValue, kHardware, {}},
    {0, "cpu-freq", kValue, kHardware, {}},
    {0, "power", kValue, kHardware, {}},
    {0, "tmp", kValue, kHardware, {}},
    {0, "reboot", kNone, kHardware, {}},
    {0, "contiguous", kNone, kNetwork, {}},
    {0, "switches", kValue, kNetwork, {}},
    {0, "network", kValue, kNetwork, {}},
    {0, "spread-job", kNone, kPlacement, {}},
    {0, "use-min-nodes", kNone, kPlacement, {}},
    {0, "wait-all-nodes", kValue, kAlways, {}},
    {0, "get-user-env", kMaybe, "the environment is that of the submission, see --export", {}},
    {0, "ignore-pbs", kNone, kAlways, {}},
    {0, "nice", kMaybe, kPriority, {}},
    {0, "priority", kValue, kPriority, {}},
    {0, "deadline", kValue, kPriority, {}},
    {0, "delay-boot", kValue, kHardware, {}},
    {0, "time-min", kValue, "the limit is that of --time", {}},
    {0, "requeue", kNone, kRequeue, {}},
    {0, "no-requeue", kNone, kAlways, {}},
    {'k', "no-kill", kMaybe, "the loss of a node ends the job", {}},
    {0, "reservation", kValue, "msa has no reservations", {}},
    {'L', "licenses", kValue, "msa counts no licences", {}},
    {'M', "clusters", kValue, kOne, {}},
    {0, "cluster-constraint", kValue, kOne, {}},
    {0, "uid", kValue, "a job runs as its submitter", {}},
    {0, "gid", kValue, "a job runs with its submitter's group", {}},
    {'a', "array", kValue, {}, "job arrays are not in this version; submit a job for each index"},
    {'C',
     "constraint",
     kValue,
     {},
     "nodes have no features here; choose by --module, --nodelist or --exclude"},
    {0, "prefer", kValue, {}, "nodes have no features here; choose by --module, --nodelist or --exclude"},
    {'F', "nodefile", kValue, {}, "give the names with --nodelist"},
    {'G', "gpus", kValue, {}, "say how many of each node, --gpus-per-node"},
    {0, "gpus-per-task", kValue, {}, "say how many of each node, --gpus-per-node"},
    {0, "gpus-per-socket", kValue, {}, "say how many of each node, --gpus-per-node"},
    {0, "cpus-per-gpu", kValue, {}, "say how many of each task, --cpus-per-task"},
    {0, "ntasks-per-gpu", kValue, {}, "say how many on each node, --ntasks-per-node"},
    {0, "mem-per-cpu", kValue, {}, "say how much of each node, --mem"},
    {0, "mem-per-gpu", kValue, {}, "say how much of each node, --mem"},
    {0, "signal", kValue, {}, "msa warns nobody before the time limit; leave it out and mind the time"},
    {'H', "hold", kNone, {}, "nothing is held until it is released; use --begin or --dependency"},
    {0, "bb", kValue, {}, "msa has no burst buffers; stage files in the script"},
    {0, "bbf", kValue, {}, "msa has no burst buffers; stage files in the script"},
    {0, "container", kValue, {}, "start the container in the script"},
    {0, "export-file", kValue, {}, "name the variables with --export"},
    {0, "test-only", kNone, {}, "this version cannot tell; 'msactl job show' tells it of a job that waits"},
    {0,
     "query",
     kValue,
     {},
     "this version selects nodes by --module, --nodelist and --exclude only; use these"},
};

}  // namespace

std::span<const ForeignOption> ForeignOptions() { return kOptions; }

}  // namespace msa::cli
