// PMI-1, by which MPICH's tasks find their world: the parts of it that concern other nodes and the head.
#include <algorithm>

#include "member.h"

namespace msa::jobd {
namespace {

// Names of MPI_Publish_name by MPICH are no values that a PMIx client could unpack.
std::string StoreKey(const std::string& service) { return "pmi1:" + service; }

}  // namespace

PmiWorld& Member::PmiWorldOf(Hosted& hosted) {
  if (hosted.pmi) return *hosted.pmi;
  const wire::StepSpec& spec = hosted.reg.spec;
  pmi1::ServerOptions options;
  options.kvsname = spec.nspace;
  options.rank_node = hosted.reg.rank_node;
  for (const wire::App& app : spec.apps) options.app_sizes.push_back(app.ntasks);
  for (std::uint32_t rank = 0; rank < spec.rank_member.size(); ++rank)
    if (spec.rank_member[rank] == options_.self) options.local_ranks.push_back(rank);
  options.universe_size = std::max(hosted.reg.universe, static_cast<std::uint32_t>(spec.rank_member.size()));
  hosted.pmi = std::make_unique<PmiWorld>(
      loop_, std::move(options),
      [this, nspace = spec.nspace](pmi1::Effect effect) { OnPmi(nspace, std::move(effect)); });
  return *hosted.pmi;
}

void Member::OnPmi(const std::string& nspace, pmi1::Effect effect) {
  const auto it = hosted_.find(nspace);
  if (it == hosted_.end()) return;
  std::visit([&](auto&& one) { On(it->second, one); }, effect);
}

void Member::On(Hosted& hosted, const pmi1::Connected& effect) {
  const std::string& nspace = hosted.reg.spec.nspace;
  launcher_.MarkConnected(nspace, Rank(effect.rank));
  Client& client = hosted.clients[effect.rank];
  client.pmi_connected = true;
  client.pmi_finalized = false;
  TellConnections(nspace, hosted);
}

void Member::On(Hosted& hosted, const pmi1::Finalized& effect) {
  hosted.clients[effect.rank].pmi_finalized = true;
  TellConnections(hosted.reg.spec.nspace, hosted);
}

void Member::On(Hosted& hosted, const pmi1::Aborted& effect) {
  ToHead(AbortRequest{{hosted.reg.spec.nspace, effect.rank}, effect.exit_code, {}, {}});
}

void Member::On(Hosted& hosted, pmi1::EnterBarrier& effect) {
  const std::string& nspace = hosted.reg.spec.nspace;
  OpenCollective open;
  open.kind = pmix::CollectiveKind::kPmi1Barrier;
  open.data_reply = [this, nspace](pmix::PmixStatus status, std::string data) {
    const auto it = hosted_.find(nspace);
    if (it == hosted_.end() || !it->second.pmi) return;
    if (status == pmix::kPmixSuccess) return it->second.pmi->OnBarrier(std::move(data));
    it->second.pmi->OnBarrier(Error(
        Code::kUnavailable, "the nodes could not meet (PMIx status {}); see the job daemon's log", status));
  };
  Begin({pmix::CollectiveKind::kPmi1Barrier, {{nspace, pmix::kRankWildcard}}, std::move(effect.data), 0},
        std::move(open));
}

void Member::On(Hosted& hosted, pmi1::NameRequest& effect) {
  const pmix::Proc proc{hosted.reg.spec.nspace, effect.rank};
  const std::string key = StoreKey(effect.service);
  const auto answer = [this, proc](pmix::PmixStatus status, const wire::Frame* frame) {
    const auto it = hosted_.find(proc.nspace);
    if (it == hosted_.end() || !it->second.pmi) return;
    Result<StoreReply> reply = frame == nullptr ? Error(Code::kUnavailable, "status {}", status)
                                                : wire::Decode<StoreReply>(frame->payload);
    if (reply.ok() && reply->status != pmix::kPmixSuccess)
      reply = Error(Code::kNotFound, "status {}", reply->status);
    Result<std::string> port = reply.status();
    if (reply.ok())
      port = reply->values.empty() ? std::string() : std::move(reply->values[0].value.packed_value);
    it->second.pmi->OnName(Rank(proc.rank), port);
  };
  switch (effect.verb) {
    case pmi1::NameVerb::kPublish:
      (void)Ask(
          options_.head,
          StorePublish{proc, pmix::Range::kNamespace, pmix::Persistence::kSession, {{key, effect.port}}},
          answer);
      return;
    case pmi1::NameVerb::kLookup:
      (void)Ask(options_.head, StoreLookup{proc, {key}, pmix::Range::kNamespace, false, 0}, answer);
      return;
    case pmi1::NameVerb::kUnpublish:
      (void)Ask(options_.head, StoreUnpublish{proc, {key}, pmix::Range::kNamespace}, answer);
      return;
  }
}

void Member::On(Hosted& hosted, pmi1::SpawnRefused& effect) {
  ToHead(TaskNotice{hosted.reg.spec.nspace, Rank(effect.rank), std::move(effect.text)});
}

void Member::On(Hosted& hosted, pmi1::Close& effect) {
  ToHead(TaskNotice{hosted.reg.spec.nspace, Rank(effect.rank),
                    "its MPI (PMI-1) cannot be served: it " + std::move(effect.reason)});
}

}  // namespace msa::jobd
