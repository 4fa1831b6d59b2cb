#include "commands/cluster_directory.h"

#include <stdlib.h>

#include "client/endpoint.h"

namespace msa::cli {

ClusterDirectory WhichDirectory(const std::string& dir) {
  if (!dir.empty()) return {CanonicalDirectory(dir), " --dir " + dir};
  const char* from_environment = ::getenv("MSA_DIR");
  if (from_environment != nullptr && *from_environment != '\0')
    return {CanonicalDirectory(from_environment), ""};
  return {DefaultDirectory(), ""};
}

Status NothingThere(const ClusterDirectory& directory) {
  return Error(Code::kUnavailable, "no local system runs in '{}'; start one with 'msactl cluster up{}'",
               directory.path, directory.flag);
}

}  // namespace msa::cli
