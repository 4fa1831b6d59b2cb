#pragma once

#include <string>

#include "msa/base/status.h"

namespace msa::cli {

// The directory that a cluster command means: --dir, else MSA_DIR, else the user's default; canonical.
struct ClusterDirectory {
  std::string path;
  std::string flag;  // " --dir DIR" if that is needed to name it again, else ""
};
ClusterDirectory WhichDirectory(const std::string& dir);

// Of `path` beneath it, quoted for people: "there is no local system in '...'; start one with 'msactl cluster
// up'".
Status NothingThere(const ClusterDirectory& directory);

}  // namespace msa::cli
