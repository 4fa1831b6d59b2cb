// Namespaces of other jobs: hosted without ranks, so that libpmix knows their processes; operations over them
// go through the head.
#include <algorithm>

#include "member.h"

namespace msa::jobd {

void Member::OnForeignFrame(const wire::Frame& frame) {
  const auto with = [&](auto message, auto&& act) {
    auto decoded = wire::Decode<decltype(message)>(frame.payload);
    if (decoded.ok()) return act(std::move(*decoded));
    log_("message of the head: " + decoded.status().message());
  };
  switch (frame.type) {
    case ForeignRegister::kType:
      return with(ForeignRegister{}, [&](auto m) { RegisterForeign(std::move(m)); });
    case ForeignEnded::kType:
      return with(ForeignEnded{}, [&](auto m) { OnForeignEnded(m); });
    case ForeignModexServe::kType:
      return with(ForeignModexServe{}, [&](auto m) { ServeModex(frame.id, m); });
    default:
      return;
  }
}

void Member::RegisterForeign(ForeignRegister message) {
  const std::string nspace = message.reg.spec.nspace;
  if (hosted_.contains(nspace) || !foreign_.try_emplace(nspace, message.job).second) {
    ToHead(ForeignReady{nspace, {}});
    return;
  }
  pmix::NamespaceInfo info = InfoOf(message.reg);
  info.job_id = fmt::format("{}", message.job);
  // No node of that name: nothing of it runs here.
  host_.RegisterNamespace(info, "", options_.user,
                          [this, nspace, weak = std::weak_ptr<int>(alive_)](Status status) {
                            if (!weak.expired())
                              ToHead(ForeignReady{nspace, status.ok() ? std::string() : status.message()});
                          });
}

void Member::OnForeignEnded(const ForeignEnded& message) {
  if (foreign_.erase(message.nspace) == 0) return;
  ForgetForeignOperations(message.nspace);
  host_.DeregisterNamespace(message.nspace, [] {});
}

void Member::ForgetForeignOperations(const std::string& nspace) {
  std::erase_if(foreign_sequence_, [&](const auto& entry) {
    const auto& procs = entry.first.second;
    return std::any_of(procs.begin(), procs.end(),
                       [&](const pmix::Proc& proc) { return proc.nspace == nspace; });
  });
}

bool Member::CrossesJobs(const std::vector<pmix::Proc>& procs) const {
  return std::any_of(procs.begin(), procs.end(),
                     [&](const pmix::Proc& proc) { return foreign_.contains(proc.nspace); });
}

void Member::BeginForeign(Collective collective, OpenCollective open) {
  ForeignCollective message;
  message.key.kind = collective.kind;
  message.key.procs = std::move(collective.procs);
  auto& procs = message.key.procs;
  std::sort(procs.begin(), procs.end());
  procs.erase(std::unique(procs.begin(), procs.end()), procs.end());
  message.key.sequence = foreign_sequence_[{message.key.kind, procs}]++;
  message.data = std::move(collective.data);
  message.timeout_s = collective.timeout_s;
  Ask(options_.head, message,
      [this, open = std::move(open)](pmix::PmixStatus status, const wire::Frame* frame) {
        ForeignResult result{status, {}, {}};
        if (frame != nullptr) {
          auto decoded = wire::Decode<ForeignResult>(frame->payload);
          result = decoded.ok() ? std::move(*decoded) : ForeignResult{pmix::kPmixErr, {}, {}};
        }
        if (!result.reason.empty()) log_("collective with another job: " + result.reason);
        if (open.data_reply) open.data_reply(result.status, std::move(result.data));
        if (open.status_reply) open.status_reply(result.status);
      });
}

void Member::AskForeignModex(pmix::DirectModex upcall) {
  Ask(options_.head, ForeignModex{upcall.proc},
      [reply = std::move(upcall.reply)](pmix::PmixStatus status, const wire::Frame* frame) {
        if (frame == nullptr) return reply(status, {});
        auto answer = wire::Decode<ModexReply>(frame->payload);
        if (!answer.ok()) return reply(pmix::kPmixErr, {});
        reply(answer->status, std::move(answer->data));
      });
}

void Member::ServeModex(std::uint64_t id, const ForeignModexServe& message) {
  host_.LocalModex(message.proc,
                   [this, id, weak = std::weak_ptr<int>(alive_)](pmix::PmixStatus status, std::string data) {
                     if (!weak.expired()) ToHead(ForeignModexReply{status, std::move(data)}, id);
                   });
}

}  // namespace msa::jobd
