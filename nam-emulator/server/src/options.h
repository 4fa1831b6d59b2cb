#pragma once

#include <cstdint>
#include <string>

#include "msa/base/status.h"

namespace msa::namd {

struct Options {
  std::string name;
  std::string dir;
  std::string topology;
  std::string backing;  // empty: by the topology file, else DIR/nam/<name>
  std::string fabric;   // libfabric's provider, "none"; empty: the best that is there
  std::string fabric_host;
  std::uint16_t fabric_port = 0;  // 0: that of the last time, else any
  std::string log_level = "info";

  std::string base() const { return dir + "/n/" + name; }
  std::string socket() const { return base() + "/namd.sock"; }
  std::string link() const { return base() + "/nam-link.sock"; }
  std::string lock() const { return base() + "/namd.lock"; }
  std::string notes() const { return base() + "/nam-owners"; }
};

// What the command line says. exit_now: help and version were printed (0), or a text about wrong usage was
// (2).
struct ParsedOptions {
  Options options;
  bool exit_now = false;
  int exit_code = 0;
};
ParsedOptions ParseOptions(int argc, char** argv);

// Fills in defaults that depend on other options, and checks that paths are usable. kInvalidArgument.
Status CompleteOptions(Options& options);

}  // namespace msa::namd
