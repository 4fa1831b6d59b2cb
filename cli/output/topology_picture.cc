#include "output/topology_picture.h"

#include <algorithm>

#include <fmt/format.h>

#include "output/text.h"

namespace msa::cli {
namespace {

constexpr std::size_t kBarWidth = 10;

std::string Padded(std::string text, std::size_t width) {
  const std::size_t have = DisplayWidth(text);
  if (have < width) text.append(width - have, ' ');
  return text;
}

std::string Cut(const std::string& text, std::size_t width) {
  const std::u32string all = DecodeUtf8(text);
  if (all.size() <= width) return text;
  std::string out;
  for (std::size_t i = 0; i + 3 < width; ++i) AppendUtf8(out, all[i]);
  return out + "...";
}

// "[####......]", one '#' at least where anything is used, one '.' where anything is free.
std::string Bar(const NodeInfo& node) {
  const std::size_t width = std::min<std::size_t>(kBarWidth, std::max<std::size_t>(node.cores, 1));
  std::size_t used =
      node.cores == 0 ? 0 : (std::size_t{node.cores_used} * width + node.cores - 1) / node.cores;
  if (node.cores_used < node.cores) used = std::min(used, width - 1);
  if (node.cores_used > 0) used = std::max<std::size_t>(used, 1);
  return "[" + std::string(used, '#') + std::string(width - std::min(used, width), '.') + "]";
}

std::string NodeCell(const NodeInfo& node) {
  std::string out = Printable(node.name) + " ";
  if (node.state == NodeState::kUp) {
    out += fmt::format("{} {}/{}", Bar(node), node.cores_used, node.cores);
  } else {
    out += fmt::format("[{}]", node.state == NodeState::kDown ? "down" : "unknown");
  }
  if (node.drained) out += " drained";
  for (std::size_t i = 0; i < node.jobs.size() && i < 3; ++i)
    out += fmt::format("{}{}", i == 0 ? " job " : ",", node.jobs[i]);
  if (node.jobs.size() > 3) out += fmt::format("+{}", node.jobs.size() - 3);
  return out;
}

char NodeLetter(const NodeInfo& node) {
  if (node.state == NodeState::kDown) return 'x';
  if (node.state == NodeState::kUnknown) return '?';
  if (node.drained) return 'd';
  if (node.cores_used == 0) return '.';
  if (node.cores_used >= node.cores) return '#';
  return '+';
}

std::vector<std::string> FullLines(const std::vector<const NodeInfo*>& nodes, std::size_t width) {
  std::vector<std::string> cells;
  std::size_t widest = 0;
  for (const NodeInfo* node : nodes) {
    cells.push_back(Cut(NodeCell(*node), width));
    widest = std::max(widest, DisplayWidth(cells.back()));
  }
  const std::size_t columns = std::max<std::size_t>(1, (width + 3) / (widest + 3));
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i % columns == 0) lines.emplace_back();
    lines.back() += Padded(cells[i], widest);
    if (i % columns + 1 < columns && i + 1 < cells.size()) lines.back() += "   ";
  }
  return lines;
}

// Rows of one character a node in groups of ten, the row's nodes named in front.
std::vector<std::string> CompactLines(const std::vector<const NodeInfo*>& nodes, std::size_t width) {
  std::vector<std::string> names;
  for (const NodeInfo* node : nodes) names.push_back(Printable(node->name));
  std::size_t name_width = 0;
  for (const std::string& name : names) name_width = std::max(name_width, DisplayWidth(name));
  name_width = std::min(name_width, width / 3);
  const std::size_t room = width > name_width + 2 ? width - name_width - 2 : 1;
  const std::size_t per_row = std::clamp<std::size_t>((room + 1) / 11 * 10, 10, 100);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < nodes.size(); i += per_row) {
    std::string line = Padded(Cut(names[i], name_width), name_width) + "  ";
    for (std::size_t k = i; k < std::min(i + per_row, nodes.size()); ++k) {
      if (k > i && (k - i) % 10 == 0) line += ' ';
      line += NodeLetter(*nodes[k]);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string Title(const ModuleInfo& module, const std::vector<const NodeInfo*>& nodes) {
  std::uint64_t cores = 0;
  std::uint64_t used = 0;
  for (const NodeInfo* node : nodes) {
    cores += node->cores;
    used += node->cores_used;
  }
  const bool known = !module.slurm || module.slurm->known_to_msa;
  const std::string id = fmt::format(" ({}{}id {})", module.kind == module.name ? "" : Printable(module.kind),
                                     module.kind == module.name ? "" : ", ", module.id);
  std::string out = fmt::format("{}{}: {}, {}, {} used", Printable(module.name), known ? id : "",
                                Count(nodes.size(), "node"), Count(cores, "core"), used);
  if (module.nam_bytes != 0) out += fmt::format(", NAM {}", ShowBytes(module.nam_bytes));
  return out;
}

void AddBox(std::string& out, const std::string& title, const std::vector<std::string>& lines,
            std::size_t width) {
  const std::string shown = Cut(title, width - 6);
  out += "+- " + shown + " " + std::string(width - DisplayWidth(shown) - 5, '-') + "+\n";
  for (const std::string& line : lines) out += "| " + Padded(line, width - 4) + " |\n";
  out += "+" + std::string(width - 2, '-') + "+\n";
}

}  // namespace

std::string DrawTopology(const SystemInfo& system, const std::vector<ModuleInfo>& modules,
                         const std::vector<NodeInfo>& nodes, const PictureOptions& options) {
  const std::size_t width = std::clamp<std::size_t>(options.width, 40, 160);
  std::string out = fmt::format("system '{}': {}, {} ({} up), {} of {} used\n", Printable(system.system_name),
                                Count(modules.size(), "module"), Count(system.nodes, "node"), system.nodes_up,
                                system.cores_used, Count(system.cores, "core"));
  bool compact = false;
  for (const ModuleInfo& module : modules) {
    std::vector<const NodeInfo*> mine;
    for (const NodeInfo& node : nodes)
      if (node.module == module.name) mine.push_back(&node);
    const bool small = mine.size() <= kMaxNodesInFull;
    compact |= !small;
    out += "\n";
    AddBox(out, Title(module, mine), small ? FullLines(mine, width - 4) : CompactLines(mine, width - 4),
           width);
  }
  if (compact)
    out +=
        "\none character a node: . idle   + partly used   # full   d drained   x down   ? not reported yet\n";
  return out;
}

}  // namespace msa::cli
