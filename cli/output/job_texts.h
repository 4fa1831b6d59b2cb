#pragma once
// Jobs, nodes and modules as text and documents. Pure but for local time.

#include <string>
#include <string_view>
#include <vector>

#include "client/types.h"
#include "output/listing.h"

namespace msa::cli {

// "UP", "DOWN", "UNKNOWN", with "+DRAINED" ("+DRAINING" while jobs run there) and "+CLOCK" (it is off).
std::string StateWord(const NodeInfo& node);
// "0-3,6": cores as ranges.
std::string Ranges(std::vector<std::uint32_t> numbers);

Listing JobListing(const std::vector<JobInfo>& jobs, std::int64_t now_ms);
// Of jobs that have ended.
Listing HistoryListing(const std::vector<JobInfo>& jobs);
// An attached msactl shows output of this step, or batch script.
bool CarriesOutput(const wire::StdioSpec& stdio);
// It could not get all of it: `why` (ok: it got no answer), and where the rest is found, if anywhere.
std::string MissingOutputText(const JobInfo& job, const Status& why);
Details JobDetails(const JobInfo& job, std::int64_t now_ms);
Listing NodeListing(const std::vector<NodeInfo>& nodes);
Details NodeDetails(const NodeInfo& node, std::int64_t now_ms);
Listing ModuleListing(const std::vector<ModuleInfo>& modules);
Details ModuleDetails(const ModuleInfo& module, const std::vector<NodeInfo>& nodes);
Document AllocationDocument(const AllocationInfo& allocation);
Document NamespaceDocument(const NamespaceInfo& space);
Document NodeDocument(const NodeInfo& node);
Document ModuleDocument(const ModuleInfo& module);

}  // namespace msa::cli
