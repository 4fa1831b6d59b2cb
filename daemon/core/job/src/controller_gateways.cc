// Gateway nodes: a job that asks for some has them for itself. They are no members of it, nothing of it runs
// there; whoever asks for none still sends his messages through all of them.
#include <algorithm>
#include <set>

#include "controller_impl.h"

namespace msa {

bool Controller::Impl::IsUsable(const Node& node) {
  return node.state == NodeState::kUp && node.session != 0 && !node.drained;
}

std::vector<std::string> Controller::Impl::FreeGateways(JobId except) const {
  std::set<std::string_view> taken;
  for (const JobId id : active)
    if (id != except)
      for (const std::string& name : Find(id)->record.gateways) taken.insert(name);
  std::vector<std::string> free;
  for (const Node& node : nodes)
    if (topology.IsGateway(*node.spec) && IsUsable(node) && !taken.contains(node.spec->name))
      free.push_back(node.spec->name);
  return free;
}

void Controller::Impl::TakeGateways(Job& job) const {
  job.record.gateways = FreeGateways(job.record.id);
  job.record.gateways.resize(std::min<std::size_t>(job.record.gateways.size(), job.record.spec.gateways));
}

// What is there for jobs, and what each of them has of it.
void Controller::Impl::CountGateways(ClusterView& view) const {
  for (const Node& node : nodes)
    if (topology.IsGateway(*node.spec) && IsUsable(node)) ++view.gateway_capacity;
  for (RunningJob& running : view.running)
    for (const std::string& name : Find(running.id)->record.gateways)
      if (const Node* node = FindNode(name); node != nullptr && IsUsable(*node)) ++running.gateways;
}

}  // namespace msa
