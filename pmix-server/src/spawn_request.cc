#include "spawn_request.h"

#include <algorithm>

#include "msa/pmix/open_mpi_env.h"

#include "pmix_values.h"

namespace msa::pmix {
namespace {

// Added by libpmix or Open MPI to every spawn, or what the job daemon does anyway.
bool IsSilent(const pmix_info_t& info) {
  for (const char* key :
       {PMIX_USERID, PMIX_GRPID, PMIX_TIMEOUT, PMIX_SPAWN_TIMEOUT, PMIX_PERSONALITY, PMIX_REQUESTOR_IS_CLIENT,
        PMIX_REQUESTOR_IS_TOOL, PMIX_WDIR_USER_SPECIFIED, PMIX_NON_PMI})
    if (HasKey(info, key)) return true;
  return false;
}

// True if `info` is one that the job daemon follows.
bool Apply(const pmix_info_t& info, SpawnApp& app) {
  if (HasKey(info, PMIX_HOST) || HasKey(info, PMIX_ADD_HOST)) {
    const auto hosts = SplitList(TextOf(info.value).value_or(""));
    app.hosts.insert(app.hosts.end(), hosts.begin(), hosts.end());
    return true;
  }
  if (HasKey(info, PMIX_WDIR)) {
    app.cwd = TextOf(info.value).value_or("");
    return true;
  }
  if (HasKey(info, PMIX_SET_ENVAR) && info.value.type == PMIX_ENVAR &&
      info.value.data.envar.envar != nullptr) {
    const pmix_envar_t& variable = info.value.data.envar;
    SetVariable(app.env, variable.envar, variable.value == nullptr ? "" : variable.value);
    return true;
  }
  return false;
}

SpawnApp ParseApp(const pmix_app_t& source) {
  SpawnApp app;
  app.argv = StringsOf(source.argv);
  if (source.cmd != nullptr) {
    if (app.argv.empty()) app.argv.emplace_back();
    app.argv.front() = source.cmd;
  }
  app.env = StringsOf(source.env);
  if (source.cwd != nullptr) app.cwd = source.cwd;
  app.maxprocs = static_cast<std::uint32_t>(std::max(source.maxprocs, 0));
  for (std::size_t i = 0; i < source.ninfo; ++i)
    if (!Apply(source.info[i], app) && !IsSilent(source.info[i]))
      app.unknown.emplace_back(source.info[i].key);
  return app;
}

}  // namespace

Spawn ParseSpawn(const pmix_info_t* job_info, std::size_t ninfo, const pmix_app_t* apps, std::size_t napps) {
  Spawn spawn;
  for (std::size_t i = 0; i < napps; ++i) spawn.apps.push_back(ParseApp(apps[i]));
  spawn.timeout_s = TimeoutOf(job_info, ninfo);
  for (std::size_t i = 0; i < ninfo; ++i) {
    const pmix_info_t& info = job_info[i];
    if (HasKey(info, PMIX_SPAWN_TIMEOUT) && spawn.timeout_s == 0)
      spawn.timeout_s =
          static_cast<std::uint32_t>(std::clamp<std::int64_t>(NumberOf(info.value).value_or(0), 0, 1 << 30));
    bool applied = false;
    for (SpawnApp& app : spawn.apps) {
      // An app's own working directory wins over the job's.
      if (HasKey(info, PMIX_WDIR) && !app.cwd.empty())
        applied = true;
      else
        applied = Apply(info, app) || applied;
    }
    if (!applied && !IsSilent(info) && !spawn.apps.empty()) spawn.apps.front().unknown.emplace_back(info.key);
  }
  return spawn;
}

}  // namespace msa::pmix
