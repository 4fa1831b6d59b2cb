#include <algorithm>
#include <iterator>

#include <fmt/ranges.h>

#include "msa/job/job_variables.h"

#include "controller_impl.h"

namespace msa {
namespace {

wire::PlacedComponent PlacedOf(const JobRecord& record, std::uint32_t index) {
  const ComponentRequest& ask = record.spec.components[index].resources;
  wire::PlacedComponent out;
  out.module = ask.module;
  out.ntasks_per_node = ask.ntasks_per_node;
  out.cpus_per_task = std::max(1u, ask.cpus_per_task);
  for (const Allocation& share : record.allocations) {
    if (share.component != index || share.grant.value != 0) continue;
    out.ntasks += share.tasks;
    out.shares.push_back({share.member, share.cores, share.tasks});
  }
  return out;
}

// Of the program that a job of mode kStep starts.
wire::App AppOf(const JobRecord& record, std::uint32_t index, std::vector<std::uint32_t>& rank_member) {
  const Component& component = record.spec.components[index];
  wire::App app;
  app.component = index;
  app.argv = component.argv;
  app.env = component.env;
  app.cwd = component.cwd;
  app.cpus_per_task = std::max(1u, component.resources.cpus_per_task);
  app.ntasks = 0;
  for (const Allocation& share : record.allocations) {
    if (share.component != index || share.grant.value != 0) continue;
    app.ntasks += share.tasks;
    rank_member.insert(rank_member.end(), share.tasks, share.member);
  }
  return app;
}

// What people see of the script; a job's name may hold what a file's may not.
std::string ScriptName(const JobRecord& record) {
  const std::string base = record.spec.name.substr(record.spec.name.rfind('/') + 1);
  return base.empty() || base == "." || base == ".." ? "script" : base;
}

}  // namespace

void Controller::Impl::FillStep(const JobRecord& record, wire::StepSpec& step) const {
  step.name = record.spec.name;
  step.env = record.spec.env;
  // Of the job that submitted it, and of this one.
  static constexpr std::string_view kOurs[] = {kNamRegionsVariable, kGatewaysVariable};
  std::erase_if(step.env, [](const std::string& line) {
    return std::any_of(std::begin(kOurs), std::end(kOurs), [&](std::string_view name) {
      return line.starts_with(name) && line.substr(name.size()).starts_with('=');
    });
  });
  if (!record.spec.nam_regions.empty())
    step.env.push_back(fmt::format("{}={}", kNamRegionsVariable, NamRegionsText(record.spec.nam_regions)));
  if (!record.gateways.empty())
    step.env.push_back(fmt::format("{}={}", kGatewaysVariable, fmt::join(record.gateways, ",")));
  step.cwd = record.spec.cwd;
  step.stdio = record.spec.stdio;
  step.kill_policy = record.spec.kill_policy;
  step.bind = !record.spec.no_bind;
  step.on_child_failure = record.spec.on_child_failure;
  step.mpi_library = !record.spec.no_mpi_library;
  step.time_limit_s = record.spec.time_limit_s;
  step.limits = record.spec.limits;
  const auto components = static_cast<std::uint32_t>(record.spec.components.size());
  switch (record.spec.mode) {
    case wire::JobMode::kStep:
      step.nspace = fmt::format("msa.{}.{}.0", record.id, record.incarnation);
      for (std::uint32_t i = 0; i < components; ++i) step.apps.push_back(AppOf(record, i, step.rank_member));
      break;
    case wire::JobMode::kBatch: {
      step.step = wire::kBatchStep;
      step.nspace = fmt::format("msa.{}.{}.batch", record.id, record.incarnation);
      // A shell that starts steps: it has no core of its own and is no MPI program.
      step.bind = false;
      step.mpi_library = false;
      wire::App app;
      app.argv = record.spec.script_args;
      app.argv.insert(app.argv.begin(), ScriptName(record));
      step.apps.push_back(std::move(app));
      step.rank_member = {record.head};
      break;
    }
    case wire::JobMode::kAlloc:
      step.nspace = fmt::format("msa.{}.{}.alloc", record.id, record.incarnation);
      break;
  }
}

std::shared_ptr<const wire::LaunchJob> Controller::Impl::BuildLaunch(const Job& job, bool with_step) const {
  const JobRecord& record = job.record;
  auto launch = std::make_shared<wire::LaunchJob>();
  launch->job = record.id;
  launch->incarnation = record.incarnation;
  launch->epoch = record.epoch;
  launch->secret = record.secret;
  launch->user = record.user;
  launch->user_name = record.user_name;
  launch->job_name = record.spec.name;
  launch->head_index = record.head;
  launch->interactive = record.interactive;
  launch->members = record.members;
  for (wire::Member& member : launch->members) {
    // A node that has not registered since the controller's start still listens where it did.
    const Node* node = FindNode(member.node);
    if (node != nullptr && !node->jobd_address.empty()) member.address = AddressOn(*node, record);
  }
  launch->has_step = with_step;
  launch->mode = record.spec.mode;
  launch->slurms = record.IsSlurms();
  if (record.spec.mode != wire::JobMode::kStep)
    for (std::uint32_t i = 0; i < record.spec.components.size(); ++i)
      launch->components.push_back(PlacedOf(record, i));
  if (!with_step) return launch;
  launch->script = record.spec.script;
  FillStep(record, launch->step);
  return launch;
}

}  // namespace msa
