// Any text is a topology that keeps its own rules, or is refused with a message that names the file.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "msa/adapters/config/topology_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto system = msa::ParseTopology({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  if (system.ok() ? !system->Check().ok()
                  : system.status().message().rfind("topology file fuzz.toml", 0) != 0)
    std::abort();
  return 0;
}
