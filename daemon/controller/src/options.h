#pragma once

#include <string>

#include "msa/base/ids.h"
#include "msa/scheduler/scheduler.h"

namespace msa {

struct DaemonOptions {
  std::string directory;   // holds the database, the lock and, unless told otherwise, the socket
  std::string topology;    // path of the topology file
  std::string listen;      // "unix:PATH"; empty: unix:DIRECTORY/controller.sock
  std::string listen_tls;  // "HOST:PORT" for other hosts, enrolment at the next port; empty: this host alone
  std::string munge_socket;  // empty: libmunge's own
  Millis certificate_life{3'600'000};
  Millis node_timeout{10000};
  Millis heartbeat{1000};
  Millis owner_grace{10000};
  Backfill backfill = Backfill::kEasy;
  bool slurm = false;       // Slurm schedules
  std::string slurm_agent;  // msa-slurm-agent; empty: beside this executable
};

}  // namespace msa
