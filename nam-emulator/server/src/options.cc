#include "options.h"

#include <filesystem>

#include <CLI/CLI.hpp>

#include "msa/adapters/process/unix_socket.h"

namespace msa::namd {
namespace {

Status MakeAbsolute(std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (error) return ErrnoError(error.value(), "directory '" + path + "'");
  path = absolute.lexically_normal().string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return Status::Ok();
}

}  // namespace

ParsedOptions ParseOptions(int argc, char** argv) {
  ParsedOptions parsed;
  Options& o = parsed.options;
  CLI::App app(
      "NAM daemon of msa: one per node with network attached memory. It keeps the memory of regions in files "
      "and serves it to processes, on its own host by mapping, elsewhere over the fabric.");
  app.set_version_flag("--version", MSA_VERSION);
  app.add_option("--name", o.name, "name of this node in the topology file")->required();
  app.add_option("--dir", o.dir, "directory of the system")->required();
  app.add_option("--topology", o.topology, "topology file; its key 'nam' says how much memory the node has")
      ->required();
  app.add_option(
      "--backing", o.backing,
      "directory of the regions' files, of this daemon alone: on a disk, in /dev/shm, or hugetlbfs "
      "(default: NAME in the directory that the topology file names as 'backing', else DIR/nam/NAME)");
  app.add_option(
      "--fabric", o.fabric,
      "libfabric provider, or 'none' for access on this host only (default: the best that is there)");
  app.add_option("--fabric-host", o.fabric_host, "address to listen on (default: all)");
  app.add_option("--fabric-port", o.fabric_port,
                 "port to listen on (default: that of the last time, else any)");
  app.add_option("--log-level", o.log_level, "trace, debug, info, warn, err or critical (default info)")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "err", "critical"}));
  app.footer(
      "Signals: SIGTERM and SIGINT end the daemon; regions stay, processes that have them mapped keep their "
      "mappings, and\n"
      "the next msa-namd of this node serves them again, locks included.\n"
      "Exit codes: 0 ended by a signal as above, 1 failed, 2 usage, 3 no such node or file, 4 denied, 5 disk "
      "full or memory\n"
      "exhausted, 7 another NAM daemon runs, or the extents are another system's, 8 the fabric is not to be "
      "had.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_now = true;
    parsed.exit_code = app.exit(error) == 0 ? 0 : 2;
  }
  return parsed;
}

Status CompleteOptions(Options& options) {
  MSA_RETURN_IF_ERROR(MakeAbsolute(options.dir));
  if (!options.backing.empty()) MSA_RETURN_IF_ERROR(MakeAbsolute(options.backing));
  return CheckSocketPath(options.link());
}

}  // namespace msa::namd
