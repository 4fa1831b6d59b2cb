#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <vector>

#include "process_table.h"

namespace msa::launch {

// Which of the processes below the launcher belong to one namespace.
struct Ownership {
  std::set<pid_t> ours;    // leaders of the namespace's tasks, those that have ended included
  std::set<pid_t> others;  // leaders of the tasks of other namespaces
  std::function<bool(pid_t)> carries_name;  // exec'ed with the namespace's name in its environment
};

// In the order of `below`, in which parents come before their children. A process belongs by its ancestry,
// its group or its session; one that left all three (daemonised twice over) by its environment.
std::vector<pid_t> SelectLeftovers(const std::vector<ProcessEntry>& below, const Ownership& ownership);

}  // namespace msa::launch
