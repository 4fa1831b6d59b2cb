// Plays srun for the children of a job of Slurm: every task of its arguments joins the job daemon of its node
// and becomes the command. Job daemons are found below MSA_TEST_DIRECTORY. With MSA_TEST_SRUN_FAILS it says
// that text and fails.
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "slurm_task.h"

namespace {

std::string SocketOf(const std::string& host) {
  glob_t found{};
  const std::string pattern = std::string(getenv("MSA_TEST_DIRECTORY")) + "/" + host + "-w*/job.sock";
  if (glob(pattern.c_str(), 0, nullptr, &found) != 0) return {};
  return found.gl_pathv[found.gl_pathc - 1];
}

std::string Env(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string text = Env("MSA_TEST_SRUN_FAILS"); !text.empty()) {
    fprintf(stderr, "srun: error: %s\n", text.c_str());
    return 1;
  }
  std::map<std::string, std::string> options;
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    options[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  msa::wire::SlurmTaskJoin join;
  join.argv.assign(argv + i, argv + argc);
  join.job = msa::JobId(strtoull(options["--jobid"].c_str(), nullptr, 10));
  join.component_job = join.job;
  join.step = msa::StepId(1000);
  join.ticket = Env("MSA_SPAWN_TICKET");
  join.part = static_cast<std::uint32_t>(atoi(Env("MSA_SPAWN_PART").c_str()));
  join.cwd = "/";
  std::vector<std::string> hosts;
  for (std::string list = options["--nodelist"]; !list.empty();) {
    const std::size_t comma = std::min(list.find(','), list.size());
    hosts.push_back(list.substr(0, comma));
    list.erase(0, comma + 1);
  }
  join.ntasks = static_cast<std::uint32_t>(hosts.size());
  if (std::to_string(hosts.size()) != options["--ntasks"] || !options.contains("--overlap") ||
      options["--distribution"] != "arbitrary" || options["--mpi"] != "none" ||
      Env("MSA_SLURM_USE") != "yes") {
    fprintf(stderr, "srun: error: unexpected arguments or environment\n");
    return 2;
  }
  for (std::size_t task = 0; task < hosts.size(); ++task) {
    if (fork() != 0) continue;
    join.rank = static_cast<std::uint32_t>(task);
    msa::jobd::BeSlurmTask(join, {SocketOf(hosts[task]), {}, {}});
  }
  int code = 0;
  for (int status = 0; wait(&status) > 0;)
    code = std::max(code, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  return code;
}
