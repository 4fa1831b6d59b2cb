#pragma once

#include <string>
#include <vector>

#include "client/types.h"

namespace msa::cli {

struct PictureOptions {
  std::size_t width = 80;  // columns of the terminal, at least 40
};

// Modules as boxes of ASCII, their nodes with cores in use and jobs. A module of more than kMaxNodesInFull
// nodes is drawn with one character a node.
std::string DrawTopology(const SystemInfo& system, const std::vector<ModuleInfo>& modules,
                         const std::vector<NodeInfo>& nodes, const PictureOptions& options);

inline constexpr std::size_t kMaxNodesInFull = 16;

}  // namespace msa::cli
