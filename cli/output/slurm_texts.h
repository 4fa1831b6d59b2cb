#pragma once
// What Slurm alone says of jobs, nodes and modules, as parts of the texts about them. Pure but for local
// time.

#include <string>
#include <utility>
#include <vector>

#include "client/types.h"
#include "output/document.h"

namespace msa::cli {

// "4711", of Slurm's arrays "4711_3".
std::string ShownJobId(const JobInfo& job);

Document SlurmDocument(const SlurmJobFacts& facts);
Document SlurmDocument(const SlurmNodeFacts& facts);
Document SlurmDocument(const SlurmModuleFacts& facts);

// What a list says in a job's column of reasons: Slurm's word, and the companions.
std::string SlurmNote(const JobInfo& job, const std::string& reason);

// Components, companions and the like, as lines of `job show`; before and behind the line of tasks.
using DetailLines = std::vector<std::pair<std::string, std::string>>;
void AddSlurmHead(const SlurmJobFacts& facts, DetailLines* lines);
void AddSlurmParts(const SlurmJobFacts& facts, DetailLines* lines);
// What `scontrol show` says, by Slurm's own names.
void AddSlurmShown(const DetailLines& shown, DetailLines* lines);

}  // namespace msa::cli
