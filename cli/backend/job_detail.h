#pragma once
// What `scontrol -d -o show job` says of a job beyond squeue: its cores and files. Pure; any thread.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/slurm_jobs.h"

namespace msa::cli {

struct JobDetail {
  std::map<std::string, std::vector<std::uint32_t>> cores;  // by node
  std::string out;
  std::string err;
  std::string in;
};

// Of job `row`, in a text that may tell of several. What is missing stays empty: a job's name is a free text,
// and no name leads to another job's facts.
JobDetail ReadJobDetail(std::string_view text, const SlurmRow& row);

// A batch script's file, in whose name Slurm tells %N, %n, %s, %t and %J as they were written: with their
// values.
std::string BatchFile(std::string_view file, const JobInfo& job);

// "0-3,6": numbers from 0 to 65535; others are left out.
std::vector<std::uint32_t> ReadCoreList(std::string_view text);

}  // namespace msa::cli
