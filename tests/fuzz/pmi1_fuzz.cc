// PMI-1 of two nodes with two tasks each, under arbitrary bytes of the tasks: it may refuse, never break an
// invariant, and after a barrier all nodes know the same. The input is a sequence of (task, length, bytes).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "msa/pmi1/process_mapping.h"
#include "msa/pmi1/server.h"

namespace msa::pmi1 {
namespace {

ServerOptions OptionsOf(std::uint32_t node) {
  ServerOptions options;
  options.kvsname = "k";
  options.rank_node = {0, 1, 1, 0};
  options.app_sizes = {3, 1};
  options.local_ranks = node == 0 ? std::vector<std::uint32_t>{0, 3} : std::vector<std::uint32_t>{1, 2};
  options.max_kvs_bytes = 256;
  return options;
}

class World {
 public:
  void Say(std::uint32_t rank, std::string_view bytes) {
    const std::uint32_t node = rank == 1 || rank == 2 ? 1 : 0;
    Take(node, nodes_[node].OnData(rank, bytes));
    for (const Server& server : nodes_)
      if (!server.CheckInvariants().ok()) std::abort();
  }
  void End(std::uint32_t rank) { nodes_[rank == 1 || rank == 2 ? 1 : 0].OnGone(rank); }

 private:
  void Take(std::uint32_t node, Effects effects) {
    for (Effect& effect : effects) {
      if (const auto* reply = std::get_if<Reply>(&effect))
        if (std::count(reply->text.begin(), reply->text.end(), '\n') != 1 || reply->text.back() != '\n')
          std::abort();
      if (auto* enter = std::get_if<EnterBarrier>(&effect)) {
        if (entered_[node]) std::abort();
        entered_[node] = std::move(enter->data);
      }
      if (const auto* name = std::get_if<NameRequest>(&effect)) Answer(node, *name);
    }
    if (!entered_[0] || !entered_[1]) return;
    const std::string all = *entered_[0] + *entered_[1];
    entered_[0].reset();
    entered_[1].reset();
    for (std::uint32_t other = 0; other < 2; ++other) Take(other, nodes_[other].OnBarrier(all));
  }
  void Answer(std::uint32_t node, const NameRequest& name) {
    Result<std::string> port = std::string();
    if (name.verb == NameVerb::kPublish) names_[name.service] = name.port;
    if (name.verb == NameVerb::kUnpublish) names_.erase(name.service);
    if (name.verb == NameVerb::kLookup) {
      const auto it = names_.find(name.service);
      port = it == names_.end() ? Result<std::string>(Error(Code::kNotFound, "none")) : it->second;
    }
    Take(node, nodes_[node].OnName(name.rank, port));
  }

  Server nodes_[2] = {Server(OptionsOf(0)), Server(OptionsOf(1))};
  std::optional<std::string> entered_[2];
  std::map<std::string, std::string> names_;
};

}  // namespace
}  // namespace msa::pmi1

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msa::pmi1;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  (void)ProcessMapping(std::vector<std::uint32_t>(data, data + std::min<std::size_t>(size, 200)));
  World world;
  while (rest.size() >= 2) {
    const auto who = static_cast<std::uint8_t>(rest[0]);
    const std::size_t length = std::min<std::size_t>(static_cast<std::uint8_t>(rest[1]), rest.size() - 2);
    if (who >= 0xfc)
      world.End(who % 4);
    else
      world.Say(who % 4, rest.substr(2, length));
    rest.remove_prefix(2 + length);
  }
  return 0;
}
