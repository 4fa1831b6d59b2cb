// Tasks that Slurm starts, between their connections, the node daemon, and the head.
#include <fcntl.h>

#include <spdlog/spdlog.h>

#include "jobd.h"

namespace msa::jobd {
namespace {

// Slurm's numbers of what is no user's step, from SLURM_MAX_NORMAL_STEP_ID on: scripts, interactive shells.
constexpr std::uint32_t kFirstSpecialStep = 0xfffffff0;

}  // namespace

void Jobd::MakeSlurmTasks(const wire::LaunchJob& launch) {
  SlurmTasks::Handlers handlers;
  handlers.answer = [this](std::uint64_t client, const wire::SlurmTaskReady& ready, UniqueFd channel) {
    job_socket_->Answer(client, ready, std::move(channel));
  };
  handlers.joined = [this, head = launch.head_index](const SlurmJoined& joined) {
    mesh_->SendMessage(head, joined);
  };
  handlers.lost = [this, head = launch.head_index](const SlurmLost& lost) { mesh_->SendMessage(head, lost); };
  handlers.on_exit = [this](const launch::TaskExit& exit) { member_->OnExit(exit); };
  handlers.log = [this](const std::string& text) { Log(text); };
  handlers.on_heard = [this](const std::string& nspace) { sruns_->Resume(nspace); };
  slurm_ = std::make_unique<SlurmTasks>(
      loop_, SlurmTasksOptions{launch.job, launch.incarnation, options_.node, job_socket_->path()},
      std::move(handlers));
  SrunSteps::Handlers of_srun;
  of_srun.ended = [this, head = launch.head_index](const SrunEnded& ended) {
    mesh_->SendMessage(head, ended);
  };
  of_srun.output = [this](const std::string& streams) {
    UniqueFd out = slurm_->OutputOf(streams);
    if (!out) out.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    return out;
  };
  of_srun.error = [this](const std::string& streams, const std::string& bytes) {
    return slurm_->Write(streams, bytes);
  };
  sruns_ = std::make_unique<SrunSteps>(*launcher_, SrunOptions{options_.srun, options_.trampoline},
                                       std::move(of_srun));
}

void Jobd::OnCompanionOrder(const wire::Frame& frame) {
  const auto order = wire::Decode<wire::CompanionOrder>(frame.payload);
  if (!order.ok()) return spdlog::warn("an order for msa-companion: {}", order.status().message());
  if (!companions_) {
    const std::string& beside = options_.trampoline;
    companions_ = std::make_unique<CompanionRuns>(
        loop_,
        options_.companion.empty() ? beside.substr(0, beside.rfind('/') + 1) + "msa-companion"
                                   : options_.companion,
        [this](const wire::CompanionReport& report) {
          link_->Send(wire::CompanionReport::kType, 0, wire::Encode(report));
        });
  }
  companions_->On(*order);
}

void Jobd::OnSlurmJoin(std::uint64_t client, SlurmJoin join) {
  wire::SlurmTaskReady ready;
  if (!slurm_ || leaving_) {
    ready.refusal =
        leaving_  ? fmt::format("the job daemon of {} is leaving: the job is ending", options_.node)
        : launch_ ? fmt::format("job {} is msa's own: its tasks are started by msactl run", launch_->job)
                  : fmt::format("the job daemon of {} has no job yet", options_.node);
    return job_socket_->Answer(client, ready, {});
  }
  // No world is made of a script: an MPI program that it runs by itself is one of its own by right.
  if (join.join.step.value >= kFirstSpecialStep)
    return job_socket_->Answer(client, member_->ScriptEnvironmentHere(join.join.environment), {});
  slurm_->OnJoin(client, std::move(join));
}

// The node daemon's word, of slurmstepd's.
void Jobd::OnSlurmEnd(const wire::Frame& frame) {
  if (!slurm_) return;
  Status decoded;
  if (frame.type == wire::SlurmTaskEnd::kType) {
    const auto end = wire::Decode<wire::SlurmTaskEnd>(frame.payload);
    if (end.ok()) return slurm_->OnTaskEnd(*end);
    decoded = end.status();
  } else if (frame.type == wire::SlurmStepVerdict::kType) {
    const auto verdict = wire::Decode<wire::SlurmStepVerdict>(frame.payload);
    if (verdict.ok()) return slurm_->OnWithdrawn(*verdict);
    decoded = verdict.status();
  } else {
    const auto end = wire::Decode<wire::SlurmStepEnd>(frame.payload);
    if (end.ok() && end->step.value < kFirstSpecialStep) return slurm_->OnStepEnd(*end);
    decoded = end.status();
  }
  if (!decoded.ok()) spdlog::warn("message of the node daemon: {}", decoded.message());
}

bool Jobd::IsForSlurmTasks(std::uint16_t type) {
  return type == SlurmRefused::kType || type == SlurmNotice::kType || type == SrunStart::kType ||
         type == SlurmNoMore::kType;
}

void Jobd::OnSlurmHead(const wire::Frame& frame) {
  if (!slurm_) return;
  const auto with = [&](auto message, auto&& act) {
    const auto decoded = wire::Decode<decltype(message)>(frame.payload);
    if (decoded.ok()) return act(*decoded);
    spdlog::warn("message of the head: {}", decoded.status().message());
  };
  switch (frame.type) {
    case SlurmRefused::kType:
      return with(SlurmRefused{}, [&](const auto& m) { slurm_->Refuse(m); });
    case SlurmNotice::kType:
      return with(SlurmNotice{}, [&](const auto& m) { slurm_->Say(m); });
    case SrunStart::kType:
      return with(SrunStart{}, [&](const auto& m) { sruns_->Start(m); });
    case SlurmNoMore::kType:
      return with(SlurmNoMore{}, [&](const auto& m) {
        slurm_->NoMore(m);
        sruns_->End(m.nspace, m.part);
      });
  }
}

}  // namespace msa::jobd
