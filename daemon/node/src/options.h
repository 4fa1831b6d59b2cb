#pragma once

#include <cstdint>
#include <string>

#include "msa/base/ids.h"
#include "msa/base/status.h"

namespace msa::node {

// Towards other hosts.
struct FarOptions {
  std::uint32_t controller_uid = 0;  // whom the controller must run as
  std::string munge_socket;          // empty: libmunge's own
  std::string host;                  // address of this node, a number; default: what its name resolves to
  std::uint16_t port = 7710;         // for clients of jobs here
  std::string jobd_ports = "20000-29999";
};

struct Options {
  std::string name;
  std::string dir;
  std::string topology;
  std::string controller;     // default: unix:DIR/controller.sock
  FarOptions far;             // used if the controller is at a tls address
  std::string jobd;           // default: msa-jobd beside this executable
  std::string trampoline;     // default: msa-exec beside this executable
  std::string plugin_socket;  // default: wire::kSlurmPluginSocket where Slurm schedules, else none
  std::uint32_t pool = 2;
  std::uint32_t pool_idle_ms = 10'000;
  std::uint32_t attach_hold_ms = 10'000;
  std::uint32_t jobd_start_ms = 10'000;
  bool quit_jobs_on_term = false;
  std::string log_level = "info";
};

// What the command line says. The int is an exit code: help and version were printed (0), or a text about
// wrong usage was (2).
struct ParsedOptions {
  Options options;
  bool exit_now = false;
  int exit_code = 0;
};
ParsedOptions ParseOptions(int argc, char** argv);

// Fills in defaults that depend on other options or on where the executable lies, and checks that programs
// and paths are usable. kInvalidArgument, kNotFound.
Status CompleteOptions(Options& options);

}  // namespace msa::node
