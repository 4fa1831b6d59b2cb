// PMIx's upcalls: answered by the other members, the head, or at once.
#include <algorithm>

#include "member.h"

namespace msa::jobd {

void Member::OnUpcall(pmix::Upcall upcall) {
  std::visit([this](auto&& one) { On(std::move(one)); }, std::move(upcall));
}

void Member::On(pmix::ClientConnected upcall) {
  launcher_.MarkConnected(upcall.proc.nspace, Rank(upcall.proc.rank));
  const auto it = hosted_.find(upcall.proc.nspace);
  if (it == hosted_.end()) return;
  it->second.clients[upcall.proc.rank].connected = true;
  TellConnections(upcall.proc.nspace, it->second);
}

void Member::TellConnections(const std::string& nspace, Hosted& hosted) {
  bool pmix = false;
  bool pmi1 = false;
  for (const auto& [rank, client] : hosted.clients) {
    pmix = pmix || (client.in_pmix() && !client.in_pmi());
    pmi1 = pmi1 || (client.in_pmi() && !client.in_pmix());
  }
  if (pmix == hosted.told_pmix && pmi1 == hosted.told_pmi1) return;
  hosted.told_pmix = pmix;
  hosted.told_pmi1 = pmi1;
  ToHead(NamespaceConnected{nspace, pmix, pmi1});
}

void Member::On(pmix::ClientFinalized upcall) {
  if (const auto it = hosted_.find(upcall.proc.nspace); it != hosted_.end()) {
    it->second.clients[upcall.proc.rank].finalized = true;
    TellConnections(upcall.proc.nspace, it->second);
  }
  upcall.reply(pmix::kPmixSuccess);
}

void Member::On(pmix::Aborted upcall) {
  ToHead(AbortRequest{upcall.proc, upcall.exit_code, upcall.message, upcall.targets});
  upcall.reply(pmix::kPmixSuccess);
}

// ------------------------------------------------------------------------------------------ collectives

void Member::Begin(Collective collective, OpenCollective open) {
  const auto answer = [&](pmix::PmixStatus status) {
    if (open.data_reply) open.data_reply(status, {});
    if (open.status_reply) open.status_reply(status);
  };
  if (CrossesJobs(collective.procs)) return BeginForeign(std::move(collective), std::move(open));
  std::set<std::uint32_t> participants;
  std::set<std::string> nspaces;
  for (const pmix::Proc& proc : collective.procs) {
    const auto it = hosted_.find(proc.nspace);
    if (it == hosted_.end()) {
      log_(fmt::format("a collective names namespace '{}', which this job does not have (any more)",
                       proc.nspace));
      return answer(pmix::kPmixErrNotFound);
    }
    nspaces.insert(proc.nspace);
    const auto& rank_member = it->second.reg.spec.rank_member;
    if (proc.rank == pmix::kRankWildcard)
      participants.insert(rank_member.begin(), rank_member.end());
    else if (proc.rank < rank_member.size())
      participants.insert(rank_member[proc.rank]);
    else
      return answer(pmix::kPmixErrBadParam);
  }
  const std::uint64_t number = next_collective_++;
  open.kind = collective.kind;
  open.nspaces.assign(nspaces.begin(), nspaces.end());
  open.lowest = !participants.empty() && *participants.begin() == options_.self;
  if (collective.timeout_s > 0)
    open.timer = loop_.After(std::chrono::seconds(collective.timeout_s),
                             [this, number] { Run(engine_.OnTimeout(number)); });
  collectives_[number] = std::move(open);
  pmix::CollectiveEngine::Contribution contribution;
  contribution.operation = number;
  contribution.kind = collective.kind;
  contribution.procs = std::move(collective.procs);
  contribution.participants.assign(participants.begin(), participants.end());
  contribution.data = std::move(collective.data);
  Run(engine_.LocalContribution(std::move(contribution)));
}

void Member::Run(pmix::CollectiveEffects effects) {
  for (pmix::CollectiveEffect& effect : effects) {
    if (auto* send = std::get_if<pmix::SendToPeer>(&effect)) {
      mesh_.SendMessage(send->member, send->message);
    } else {
      Complete(std::move(std::get<pmix::CollectiveComplete>(effect)));
    }
  }
}

void Member::Complete(pmix::CollectiveComplete complete) {
  const auto it = collectives_.find(complete.operation);
  if (it == collectives_.end()) return;
  OpenCollective open = std::move(it->second);
  collectives_.erase(it);
  loop_.Cancel(open.timer);
  if (!complete.reason.empty()) log_("collective: " + complete.reason);
  // Open MPI 4.1 parts two worlds (MPI_Comm_disconnect, MPI_Finalize) by a fence over both.
  if (complete.status == pmix::kPmixSuccess && open.lowest && open.nspaces.size() > 1)
    ToHead(NamespacesLinked{open.nspaces, open.kind == pmix::CollectiveKind::kConnect});
  if (open.data_reply) open.data_reply(complete.status, std::move(complete.data));
  if (open.status_reply) open.status_reply(complete.status);
}

void Member::On(pmix::Fence upcall) {
  OpenCollective open;
  open.data_reply = std::move(upcall.reply);
  Begin({pmix::CollectiveKind::kFence, std::move(upcall.procs), std::move(upcall.data), upcall.timeout_s},
        std::move(open));
}

void Member::On(pmix::Connect upcall) {
  OpenCollective open;
  open.status_reply = std::move(upcall.reply);
  Begin({pmix::CollectiveKind::kConnect, std::move(upcall.procs), {}, upcall.timeout_s}, std::move(open));
}

void Member::On(pmix::Disconnect upcall) {
  OpenCollective open;
  open.status_reply = std::move(upcall.reply);
  Begin({pmix::CollectiveKind::kDisconnect, std::move(upcall.procs), {}, upcall.timeout_s}, std::move(open));
}

// ------------------------------------------------------------------------------------------ direct modex

void Member::On(pmix::DirectModex upcall) {
  if (foreign_.contains(upcall.proc.nspace)) return AskForeignModex(std::move(upcall));
  const auto it = hosted_.find(upcall.proc.nspace);
  if (it == hosted_.end() || upcall.proc.rank >= it->second.reg.spec.rank_member.size())
    return upcall.reply(pmix::kPmixErrNotFound, {});
  const std::uint32_t owner = it->second.reg.spec.rank_member[upcall.proc.rank];
  if (owner == options_.self) return host_.LocalModex(upcall.proc, std::move(upcall.reply));
  if (!members_.contains(owner)) return upcall.reply(pmix::kPmixErrUnreachable, {});
  Ask(owner, ModexRequest{upcall.proc},
      [reply = std::move(upcall.reply)](pmix::PmixStatus status, const wire::Frame* frame) {
        if (frame == nullptr) return reply(status, {});
        auto answer = wire::Decode<ModexReply>(frame->payload);
        if (!answer.ok()) return reply(pmix::kPmixErr, {});
        reply(answer->status, std::move(answer->data));
      });
}

void Member::OnModexRequest(std::uint32_t from, std::uint64_t id, const ModexRequest& message) {
  host_.LocalModex(message.proc, [this, from, id, weak = std::weak_ptr<int>(alive_)](pmix::PmixStatus status,
                                                                                     std::string data) {
    if (!weak.expired()) mesh_.SendMessage(from, ModexReply{status, std::move(data)}, id);
  });
}

// ------------------------------------------------------------------------------------------ at the head

void Member::On(pmix::Publish upcall) {
  Ask(options_.head, StorePublish{upcall.proc, upcall.range, upcall.persistence, std::move(upcall.data)},
      [reply = std::move(upcall.reply)](pmix::PmixStatus status, const wire::Frame* frame) {
        if (frame == nullptr) return reply(status);
        const auto answer = wire::Decode<StoreReply>(frame->payload);
        reply(answer.ok() ? answer->status : pmix::kPmixErr);
      });
}

void Member::On(pmix::Unpublish upcall) {
  Ask(options_.head, StoreUnpublish{upcall.proc, std::move(upcall.keys), upcall.range},
      [reply = std::move(upcall.reply)](pmix::PmixStatus status, const wire::Frame* frame) {
        if (frame == nullptr) return reply(status);
        const auto answer = wire::Decode<StoreReply>(frame->payload);
        reply(answer.ok() ? answer->status : pmix::kPmixErr);
      });
}

void Member::On(pmix::Lookup upcall) {
  Ask(options_.head,
      StoreLookup{upcall.proc, std::move(upcall.keys), upcall.range, upcall.wait, upcall.timeout_s},
      [reply = std::move(upcall.reply)](pmix::PmixStatus status, const wire::Frame* frame) {
        if (frame == nullptr) return reply(status, {});
        auto answer = wire::Decode<StoreReply>(frame->payload);
        if (!answer.ok()) return reply(pmix::kPmixErr, {});
        std::vector<std::pair<pmix::Proc, pmix::KeyValue>> values;
        for (StoreValue& value : answer->values)
          values.emplace_back(std::move(value.proc), std::move(value.value));
        reply(answer->status, std::move(values));
      });
}

void Member::On(pmix::Spawn upcall) {
  SpawnRequest request;
  request.proc = upcall.proc;
  request.timeout_s = upcall.timeout_s;
  const std::vector<std::string> inherited = launcher_.Inherited(upcall.proc.nspace, Rank(upcall.proc.rank));
  for (pmix::SpawnApp& app : upcall.apps) {
    app.env.insert(app.env.begin(), inherited.begin(), inherited.end());
    request.apps.push_back({std::move(app.argv), std::move(app.env), std::move(app.cwd), app.maxprocs,
                            std::move(app.hosts), std::move(app.unknown)});
  }
  Ask(options_.head, request,
      [this, reply = std::move(upcall.reply)](pmix::PmixStatus status, const wire::Frame* frame) {
        if (frame == nullptr) return reply(status, {});
        auto answer = wire::Decode<SpawnReply>(frame->payload);
        if (!answer.ok()) return reply(pmix::kPmixErr, {});
        // A plan that was used is not to be kept for the rest of the task's life.
        std::erase_if(plans_, [&](const auto& plan) {
          return !answer->nspace.empty() && plan.second.nspace == answer->nspace;
        });
        reply(answer->status, std::move(answer->nspace));
      });
}

}  // namespace msa::jobd
