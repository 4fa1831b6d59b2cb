#include <csignal>
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/standard_descriptors.h"
#include "msa/base/clock.h"
#include "msa/base/exit_code.h"

#include "offline.h"
#include "wiring.h"

namespace {

constexpr char kDescription[] =
    "msa-controllerd: modules, nodes, queue and schedule of one msa system.\n\n"
    "It keeps its state in DIR/state.db and answers msactl and the node daemons on DIR/controller.sock.\n"
    "'msactl cluster up' starts and supervises it; by hand it is started once for each system:\n\n"
    "  msa-controllerd --dir /run/msa --topology /etc/msa/topology.toml\n\n"
    "It may be killed at any moment: what it has answered is on disk, running jobs go on, and the next\n"
    "start takes them up. SIGTERM ends it in order.";

constexpr char kFooter[] =
    "Exit codes: 0 ended by SIGTERM or SIGINT, 1 failed (database damaged), 2 usage or topology file,\n"
    "3 no such file or directory, 4 no permission, 5 disk full or memory exhausted, 7 another controller has "
    "the directory.\n"
    "Logs go to standard error.";

void BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(2), as a full disk is
}

// What is given on the command line, as CLI11 fills it in.
struct CommandLine {
  msa::DaemonOptions daemon;
  std::uint64_t node_timeout_ms = 10000;
  std::uint64_t heartbeat_ms = 1000;
  std::uint64_t owner_grace_ms = 10000;
  std::string scheduler = "msa";
  std::string log_level = "info";
  std::string cancel_jobs;
  std::uint64_t certificate_life_s = 3600;
};

void AddPlaces(CLI::App& app, CommandLine& line) {
  app.add_option(
         "--dir", line.daemon.directory,
         "directory of the system's state; made with mode 0700, or one of this user that others cannot "
         "write in")
      ->type_name("DIR")
      ->required();
  app.add_option("--topology", line.daemon.topology, "TOML file with the modules and nodes")
      ->type_name("FILE")
      ->required();
  app.add_option("--listen", line.daemon.listen, "address to serve on (default: unix:DIR/controller.sock)")
      ->type_name("unix:PATH");
  app.add_option("--listen-tls", line.daemon.listen_tls,
                 "serve other hosts too, over TLS; enrolment by munge listens at the port after it")
      ->type_name("HOST:PORT");
  app.add_option("--munge-socket", line.daemon.munge_socket, "of munged (default: munge's own)")
      ->type_name("PATH");
  app.add_option("--certificate-life-s", line.certificate_life_s,
                 "how long the certificates of other hosts' daemons and users hold; they renew them")
      ->type_name("S")
      ->check(CLI::Range(2, 86'400))
      ->capture_default_str();
}

void AddOffline(CLI::App& app, CommandLine& line) {
  app.add_option("--cancel-jobs", line.cancel_jobs,
                 "instead of serving, when no controller runs: mark the jobs in DIR that have not ended as "
                 "cancelled with this reason, and print how many")
      ->type_name("REASON");
}

void AddBehaviour(CLI::App& app, CommandLine& line) {
  app.add_option("--node-timeout-ms", line.node_timeout_ms,
                 "a node that is silent this long is down and its jobs end")
      ->type_name("MS")
      ->check(CLI::Range(100, 86'400'000))
      ->capture_default_str();
  app.add_option("--heartbeat-ms", line.heartbeat_ms,
                 "how often node daemons report; at most half of the node timeout")
      ->type_name("MS")
      ->check(CLI::Range(20, 3'600'000))
      ->capture_default_str();
  app.add_option("--owner-grace-ms", line.owner_grace_ms,
                 "after a restart, how long a job waits for its 'msactl run' to come back")
      ->type_name("MS")
      ->check(CLI::Range(0, 86'400'000))
      ->capture_default_str();
  app.add_option(
         "--scheduler", line.scheduler,
         "who decides what starts where: 'msa' itself, with backfill that reserves for the first waiting "
         "job ('easy', the same) or for all ('conservative'); or 'slurm', whose plugin msa_spank.so tells of "
         "jobs")
      ->check(CLI::IsMember({"msa", "easy", "conservative", "slurm"}))
      ->capture_default_str();
  app.add_option(
         "--slurm-agent", line.daemon.slurm_agent,
         "with --scheduler=slurm: path of msa-slurm-agent, which looks at Slurm's jobs (default: beside "
         "this executable)")
      ->type_name("PATH");
  app.add_option("--log-level", line.log_level, "least important messages that are logged")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "critical", "off"}))
      ->capture_default_str();
}

msa::Result<msa::DaemonOptions> OptionsOf(const CommandLine& line) {
  if (2 * line.heartbeat_ms > line.node_timeout_ms) {
    return msa::Error(msa::Code::kInvalidArgument,
                      "--heartbeat-ms {} is more than half of --node-timeout-ms {}; one lost heartbeat would "
                      "take a node down",
                      line.heartbeat_ms, line.node_timeout_ms);
  }
  msa::DaemonOptions out = line.daemon;
  out.node_timeout = msa::Millis(line.node_timeout_ms);
  out.heartbeat = msa::Millis(line.heartbeat_ms);
  out.certificate_life = std::chrono::seconds(line.certificate_life_s);
  out.owner_grace = msa::Millis(line.owner_grace_ms);
  out.backfill = line.scheduler == "conservative" ? msa::Backfill::kConservative : msa::Backfill::kEasy;
  out.slurm = line.scheduler == "slurm";
  return out;
}

int Report(const msa::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "msa-controllerd: %s\n", status.message().c_str());
  return msa::ExitCode(status.code());
}

int CancelJobs(const CommandLine& line) {
  const msa::Result<std::size_t> cancelled = msa::CancelStoredJobs(line.daemon, line.cancel_jobs, msa::Now());
  if (!cancelled.ok()) return Report(cancelled.status());
  std::printf("%zu\n", *cancelled);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  msa::SecureStandardDescriptors();
  CommandLine line;
  CLI::App app(kDescription, "msa-controllerd");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("msa-controllerd " MSA_VERSION));
  AddPlaces(app, line);
  AddBehaviour(app, line);
  AddOffline(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const msa::Result<msa::DaemonOptions> options = OptionsOf(line);
  if (!options.ok()) return Report(options.status());
  if (!line.cancel_jobs.empty()) return CancelJobs(line);

  BlockSignals();
  spdlog::set_default_logger(spdlog::stderr_logger_mt("controller"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  spdlog::set_level(spdlog::level::from_str(line.log_level));
  return Report(msa::RunController(*options));
}
