#pragma once
// Real MPI programs with libmsampi preloaded under plain mpirun; the test is their job daemon.

#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/eventually.h"
#include "msa/support/mini_cluster.h"
#include "msa/support/process.h"

#include "job_socket_double.h"

namespace msa::support {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class MpiLibrary : public testing::Test {
 protected:
  // Takes the place of the one before.
  JobSocketDouble& Serve(JobSocketDouble::Judge judge) {
    job_daemon_.reset();
    job_daemon_ = std::make_unique<JobSocketDouble>(scratch_.path() + "/job.sock", std::move(judge));
    return *job_daemon_;
  }
  JobSocketDouble& ServeAll() {
    return Serve([](const wire::SpawnAsk& ask) { return JobSocketDouble::Grant(ask); });
  }

  static Command Plain(int ranks, std::vector<std::string> program, std::map<std::string, std::string> env) {
    Command command;
    command.argv = {MSA_TEST_MPIRUN, "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
    command.argv.insert(command.argv.end(), program.begin(), program.end());
    command.env = std::move(env);
    command.env["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
    command.env["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
    command.env["OMPI_MCA_mpi_yield_when_idle"] = "1";
    command.timeout = 90s;
    return command;
  }
  // mpirun of that many ranks as tasks of a job of msa.
  Command Tasks(int ranks, std::vector<std::string> program,
                std::map<std::string, std::string> env = {}) const {
    env["LD_PRELOAD"] = MSA_TEST_PRELOAD;
    env["MSA_JOB_SOCKET"] = scratch_.path() + "/job.sock";
    return Plain(ranks, std::move(program), std::move(env));
  }
  // mpirun 4.1 itself now and then leaves a child for ever without the answer to its PMIx_Init: such a run is
  // repeated, from the records on. One that hangs each time is ours.
  Outcome Run(int ranks, const std::vector<std::string>& program,
              const std::map<std::string, std::string>& env = {}) const {
    for (int attempt = 1;; ++attempt) {
      Command command = Tasks(ranks, program, env);
      command.timeout = 30s;
      Outcome outcome = RunCommand(std::move(command));
      if (!outcome.timed_out || attempt == 3) return outcome;
      std::cerr << "mpirun hung: attempt " << attempt << " of 3\n" << outcome.Text();
      if (job_daemon_) job_daemon_->ForgetRecord();
    }
  }

  // mpi_spawn_plan with these arguments.
  static std::vector<std::string> Plan(std::vector<std::string> arguments,
                                       const std::string& program = "mpi_spawn_plan") {
    arguments.insert(arguments.begin(), ProgramPath(program));
    return arguments;
  }
  static int Count(const std::string& text, const std::string& what) {
    int count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  }

  ScratchDirectory scratch_;
  std::unique_ptr<JobSocketDouble> job_daemon_;
};

}  // namespace msa::support
