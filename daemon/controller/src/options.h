#pragma once

#include <string>

#include "msa/base/ids.h"
#include "msa/scheduler/scheduler.h"

namespace msa {

struct DaemonOptions {
  std::string directory;  // holds the database, the lock and, unless told otherwise, the socket
  std::string topology;   // path of the topology file
  std::string listen;     // "unix:PATH"; empty: unix:DIRECTORY/controller.sock
  Millis node_timeout{10000};
  Millis heartbeat{1000};
  Millis owner_grace{10000};
  Backfill backfill = Backfill::kEasy;
};

}  // namespace msa
