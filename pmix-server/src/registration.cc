#include "registration.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/ranges.h>
#include <pmix.h>
#include <pmix_server.h>

namespace msa::pmix {
namespace {

// A string that libpmix allocated.
struct CString {
  ~CString() { std::free(text); }
  char* text = nullptr;
};

std::vector<std::vector<std::uint32_t>> RanksByNode(const NamespaceInfo& info) {
  std::vector<std::vector<std::uint32_t>> ranks(info.nodes.size());
  for (std::uint32_t rank = 0; rank < info.rank_node.size(); ++rank)
    ranks[info.rank_node[rank]].push_back(rank);
  return ranks;
}

// The two maps from which libpmix derives most of the rest.
Status AddMaps(const NamespaceInfo& info, InfoList& infos) {
  std::vector<std::string> per_node;
  for (const auto& ranks : RanksByNode(info)) per_node.push_back(fmt::format("{}", fmt::join(ranks, ",")));
  CString nodes;
  CString procs;
  pmix_status_t status =
      PMIx_generate_regex(fmt::format("{}", fmt::join(info.nodes, ",")).c_str(), &nodes.text);
  if (status == PMIX_SUCCESS)
    status = PMIx_generate_ppn(fmt::format("{}", fmt::join(per_node, ";")).c_str(), &procs.text);
  if (status != PMIX_SUCCESS)
    return Error(Code::kInternal, "libpmix cannot encode the maps of namespace {} with {} nodes: {}",
                 info.nspace, info.nodes.size(), PMIx_Error_string(status));
  infos.AddRegex(PMIX_NODE_MAP, nodes.text);
  infos.AddRegex(PMIX_PROC_MAP, procs.text);
  return Status::Ok();
}

void AddJob(const NamespaceInfo& info, const std::string& directory, InfoList& infos) {
  const auto size = static_cast<std::uint32_t>(info.rank_node.size());
  infos.AddString(PMIX_JOBID, info.job_id);
  infos.AddU32(PMIX_UNIV_SIZE, std::max(info.universe_size, size));
  infos.AddU32(PMIX_MAX_PROCS, size);
  infos.AddU32(PMIX_JOB_SIZE, StaysOnOneNode(info) ? size + 1 : size);
  infos.AddU32(PMIX_JOB_NUM_APPS, static_cast<std::uint32_t>(info.apps.size()));
  infos.AddU32(PMIX_NUM_NODES, static_cast<std::uint32_t>(info.nodes.size()));
  infos.AddString(PMIX_TMPDIR, info.tmpdir);
  infos.AddString(PMIX_NSDIR, directory);
  infos.AddFlag(PMIX_TDIR_RMCLEAN);
  if (info.parent_nspace.empty()) return;
  infos.AddFlag(PMIX_SPAWNED);
  infos.AddProc(PMIX_PARENT_ID, {info.parent_nspace, info.parent_rank});
}

void AddLocal(const NamespaceInfo& info, const std::string& node, std::uint32_t others_here,
              InfoList& infos) {
  const auto local = LocalRanks(info, node);
  if (local.empty()) return;
  const auto size = static_cast<std::uint32_t>(local.size());
  const auto id = std::find(info.nodes.begin(), info.nodes.end(), node) - info.nodes.begin();
  infos.AddU32(PMIX_LOCAL_SIZE, size);
  infos.AddU32(PMIX_NODE_SIZE, size + others_here);
  infos.AddString(PMIX_LOCAL_PEERS, fmt::format("{}", fmt::join(local, ",")));
  infos.AddRank(PMIX_LOCALLDR, local.front());
  infos.AddU32(PMIX_NODEID, static_cast<std::uint32_t>(id));
}

void AddApps(const NamespaceInfo& info, InfoList& infos) {
  for (std::uint32_t i = 0; i < info.apps.size(); ++i) {
    InfoList app;
    app.AddU32(PMIX_APPNUM, i);
    app.AddU32(PMIX_APP_SIZE, info.apps[i].size);
    app.AddRank(PMIX_APPLDR, info.apps[i].first_rank);
    app.AddString(PMIX_WDIR, info.apps[i].wdir);
    app.AddString(PMIX_APP_ARGV, info.apps[i].command);
    infos.AddArray(PMIX_APP_INFO_ARRAY, std::move(app));
  }
}

void AddProcs(const NamespaceInfo& info, const RanksPerNode& others, InfoList& infos) {
  std::vector<std::uint16_t> next_local(info.nodes.size(), 0);
  std::uint32_t app = 0;
  for (std::uint32_t rank = 0; rank < info.rank_node.size(); ++rank) {
    while (rank >= info.apps[app].first_rank + info.apps[app].size) ++app;
    const std::uint32_t node = info.rank_node[rank];
    const auto before = others.find(info.nodes[node]);
    const std::uint16_t local = next_local[node]++;
    InfoList proc;
    proc.AddRank(PMIX_RANK, rank);  // must come first
    proc.AddRank(PMIX_GLOBAL_RANK, rank);
    proc.AddRank(PMIX_APP_RANK, rank - info.apps[app].first_rank);
    proc.AddU32(PMIX_APPNUM, app);
    proc.AddU16(PMIX_LOCAL_RANK, local);
    proc.AddU16(PMIX_NODE_RANK,
                static_cast<std::uint16_t>(local + (before == others.end() ? 0 : before->second)));
    proc.AddString(PMIX_HOSTNAME, info.nodes[node]);
    proc.AddU32(PMIX_NODEID, node);
    proc.AddU32(PMIX_REINCARNATION, 0);
    infos.AddArray(PMIX_PROC_DATA, std::move(proc));
  }
}

}  // namespace

Status CheckNamespace(const NamespaceInfo& info) {
  const auto fault = [&](const std::string& what) {
    return Error(Code::kInvalidArgument, "namespace '{}': {}", info.nspace.substr(0, 64), what);
  };
  MSA_RETURN_IF_ERROR(ToPmix({info.nspace, 0}).status());
  if (info.nspace.find('/') != std::string::npos) return fault("its name contains '/'");
  if (info.rank_node.empty()) return fault("it has no ranks");
  for (const std::string& node : info.nodes)
    if (node.empty() || node.find_first_of(",;") != std::string::npos)
      return fault(fmt::format("node name '{}' is empty or contains ',' or ';'", node));
  std::vector<bool> used(info.nodes.size(), false);
  for (const std::uint32_t node : info.rank_node) {
    if (node >= info.nodes.size())
      return fault(fmt::format("a rank lies on node {} of {}", node, info.nodes.size()));
    used[node] = true;
  }
  if (std::find(used.begin(), used.end(), false) != used.end()) return fault("a node of it runs no rank");
  std::uint64_t next = 0;
  for (const NamespaceApp& app : info.apps) {
    if (app.first_rank != next)
      return fault(fmt::format("an app begins at rank {}, expected {}", app.first_rank, next));
    next += app.size;
  }
  if (next != info.rank_node.size())
    return fault(fmt::format("its apps have {} ranks together, its map has {}", next, info.rank_node.size()));
  return Status::Ok();
}

bool StaysOnOneNode(const NamespaceInfo& info) { return info.nodes.size() == 1; }

Status CorrectJobSize(const NamespaceInfo& info) {
  if (!StaysOnOneNode(info)) return Status::Ok();
  const auto size = static_cast<std::uint32_t>(info.rank_node.size());
  const auto store = [&](std::uint32_t rank, const char* key) -> Status {
    MSA_ASSIGN_OR_RETURN(const pmix_proc_t proc, ToPmix({info.nspace, rank}));
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_UINT32;
    value.data.uint32 = size;
    const pmix_status_t status = PMIx_Store_internal(&proc, key, &value);
    if (status == PMIX_SUCCESS) return Status::Ok();
    return Error(Code::kInternal, "{} of {} ranks: {}", key, size, PMIx_Error_string(status));
  };
  MSA_RETURN_IF_ERROR(store(kRankWildcard, PMIX_JOB_SIZE));
  // Where it finds nothing of the last rank that it counts, it refuses the clients.
  return store(size, "msa.no_rank");
}

std::vector<std::uint32_t> LocalRanks(const NamespaceInfo& info, const std::string& node) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < info.rank_node.size(); ++rank)
    if (info.nodes[info.rank_node[rank]] == node) ranks.push_back(rank);
  return ranks;
}

Result<InfoList> NamespaceInfos(const NamespaceInfo& info, const std::string& this_node,
                                const std::string& directory, const RanksPerNode& others) {
  InfoList infos;
  MSA_RETURN_IF_ERROR(AddMaps(info, infos));
  AddJob(info, directory, infos);
  const auto here = others.find(this_node);
  AddLocal(info, this_node, here == others.end() ? 0 : here->second, infos);
  AddApps(info, infos);
  AddProcs(info, others, infos);
  return infos;
}

}  // namespace msa::pmix
