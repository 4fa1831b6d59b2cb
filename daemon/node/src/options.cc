#include "options.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "msa/adapters/enrol/member_dialer.h"
#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/adapters/tls/tcp_socket.h"
#include "msa/base/slurm_messages.h"

#include "node_paths.h"

namespace msa::node {

namespace {

void AddFarOptions(CLI::App& app, FarOptions& far) {
  app.add_option("--controller-uid", far.controller_uid,
                 "whom a controller on another host must run as (default 0)");
  app.add_option("--munge-socket", far.munge_socket, "of munged (default: munge's own)");
  app.add_option("--host", far.host,
                 "with --controller tls:...: by which other hosts reach this one (default: the node's name)");
  app.add_option("--port", far.port, "likewise, for msactl on other hosts (default 7710)")
      ->check(CLI::Range(1, 65535));
  app.add_option("--jobd-ports", far.jobd_ports,
                 "likewise, FIRST-LAST: for the job daemons here; one that another program has fails its job "
                 "(default 20000-29999)");
}

// For others a name or a number must mean this host.
Status CompleteFar(const std::string& name, FarOptions& far) {
  MSA_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                       AddressesOf(far.host.empty() ? name : far.host));
  far.host = addresses.front();
  if (far.host.starts_with("127.") || far.host == "::1")
    return Error(
        Code::kInvalidArgument,
        "'{}' is {} here, which means another host elsewhere; give this host's address by --host, or "
        "correct /etc/hosts",
        name, far.host);
  if (far.host.find(':') != std::string::npos) far.host = "[" + far.host + "]";
  unsigned first = 0;
  unsigned last = 0;
  char rest = 0;
  if (std::sscanf(far.jobd_ports.c_str(), "%5u-%5u%c", &first, &last, &rest) != 2 || first == 0 ||
      last < first || last > 65535)
    return Error(Code::kInvalidArgument, "--jobd-ports '{}'; expected FIRST-LAST, ports from 1 to 65535",
                 far.jobd_ports);
  return Status::Ok();
}

}  // namespace

ParsedOptions ParseOptions(int argc, char** argv) {
  ParsedOptions parsed;
  Options& o = parsed.options;
  CLI::App app(
      "Node daemon of msa: one per node. It keeps a pool of job daemons, hands them jobs and watches them.");
  app.set_version_flag("--version", MSA_VERSION);
  app.add_option("--name", o.name, "name of this node in the topology file")->required();
  app.add_option("--dir", o.dir, "directory of the system")->required();
  app.add_option("--topology", o.topology, "topology file")->required();
  app.add_option(
      "--controller", o.controller,
      "address of the controller: unix:PATH, or tls:HOST:PORT on another host, where munge vouches for "
      "this one (default unix:DIR/controller.sock)");
  AddFarOptions(app, o.far);
  app.add_option(
         "--pool", o.pool,
         "warm job daemons kept (default 2; more for a while when many jobs start; 0: each job starts its "
         "own)")
      ->check(CLI::Range(0, 256));
  app.add_option("--pool-idle-ms", o.pool_idle_ms,
                 "how long after the last job of a burst the pool stays grown (default 10000)")
      ->check(CLI::Range(10, 3'600'000));
  app.add_option("--jobd", o.jobd, "path of msa-jobd (default: beside this executable)");
  app.add_option("--trampoline", o.trampoline, "path of msa-exec (default: beside this executable)");
  app.add_option(
      "--plugin-socket", o.plugin_socket,
      "where Slurm's plugin msa_spank.so reports steps (default: " + std::string(wire::kSlurmPluginSocket) +
          " if the controller runs with --scheduler=slurm, else nowhere)");
  app.add_option("--attach-hold-ms", o.attach_hold_ms,
                 "how long an attaching client waits for its job (default 10000)");
  app.add_option("--jobd-start-ms", o.jobd_start_ms,
                 "how long a job daemon may take to report (default 10000)")
      ->check(CLI::Range(10, 600'000));
  app.add_flag("--quit-jobs-on-term", o.quit_jobs_on_term, "SIGTERM ends the jobs on this node too");
  app.add_option("--log-level", o.log_level, "trace, debug, info, warn, err or critical (default info)")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "err", "critical"}));
  app.footer(
      "Signals: SIGTERM ends the daemon and its pool and leaves jobs running: the next msa-noded of this "
      "node takes them\n"
      "over (with --quit-jobs-on-term they are ended). SIGINT ends the daemon and all jobs on this node.\n"
      "Exit codes: 0 ended by a signal as above, 1 failed, 2 usage, 3 no such node or file, 4 denied, 5 disk "
      "full or memory\n"
      "exhausted, 7 another node daemon runs.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_now = true;
    parsed.exit_code = app.exit(error) == 0 ? 0 : 2;
  }
  return parsed;
}

Status CompleteOptions(Options& options) {
  std::error_code error;
  const auto dir = std::filesystem::absolute(options.dir, error);
  if (error) return ErrnoError(error.value(), "directory '" + options.dir + "'");
  options.dir = dir.lexically_normal().string();
  if (options.dir.size() > 1 && options.dir.ends_with('/')) options.dir.pop_back();
  if (options.controller.empty()) options.controller = "unix:" + options.dir + "/controller.sock";
  if (options.controller.starts_with(kTlsPrefix)) {
    MSA_RETURN_IF_ERROR(ParseControllerAddress(options.controller).status());
    MSA_RETURN_IF_ERROR(CompleteFar(options.name, options.far));
  } else if (options.controller.starts_with("unix:")) {
    MSA_RETURN_IF_ERROR(CheckSocketPath(options.controller.substr(5)));
  } else {
    return Error(Code::kInvalidArgument, "--controller is '{}'; expected unix:PATH or tls:HOST:PORT",
                 options.controller);
  }
  if (!options.plugin_socket.empty()) {
    if (!options.plugin_socket.starts_with('/'))
      return Error(Code::kInvalidArgument, "--plugin-socket is '{}'; expected an absolute path",
                   options.plugin_socket);
    MSA_RETURN_IF_ERROR(CheckSocketPath(options.plugin_socket));
  }
  const NodePaths paths(options.dir, options.name);
  // The longest socket of a node: a job daemon's own, with a number that grows.
  MSA_RETURN_IF_ERROR(CheckSocketPath(paths.run_directory(99'999'999) + "/job.sock"));
  if (options.jobd.empty() || options.trampoline.empty()) {
    MSA_ASSIGN_OR_RETURN(const std::string beside, ExecutableDirectory());
    if (options.jobd.empty()) options.jobd = beside + "/msa-jobd";
    if (options.trampoline.empty()) options.trampoline = beside + "/msa-exec";
  }
  for (const std::string* program : {&options.jobd, &options.trampoline})
    if (::access(program->c_str(), X_OK) != 0)
      return ErrnoError(errno, "program '" + *program +
                                   "' (install msa completely, or name it by --jobd and --trampoline)");
  return Status::Ok();
}

}  // namespace msa::node
