#pragma once
// /etc/msa/client.conf, else /run/msa/client.conf: where msactl of a host finds a system whose controller is
// on another. Lines KEY = VALUE; '#' begins a comment.

#include <cstdint>
#include <string>
#include <string_view>

#include "msa/base/status.h"

namespace msa::cli {

struct ClientFile {
  std::string server;                // tls:HOST:PORT; empty: none
  std::uint32_t controller_uid = 0;  // whom the controller must run as
  std::string munge_socket;          // empty: munge's own
  std::string backend;               // msa, slurm or auto: who schedules on that system; empty: not said
};

// kInvalidArgument: a line that is none, with its number. `name` is of the file, for that text.
Result<ClientFile> ParseClientFile(std::string_view text, const std::string& name);
// No such file: an empty ClientFile.
Result<ClientFile> LoadClientFile();

}  // namespace msa::cli
