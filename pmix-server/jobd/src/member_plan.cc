// What tasks ask over MSA_JOB_SOCKET: leave to spawn.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "msa/launch/find_program.h"

#include "member.h"
#include "spawn_keys.h"

namespace msa::jobd {
namespace {

constexpr std::size_t kMaxFile = 64 * 1024;
constexpr std::uint64_t kMostNam = std::numeric_limits<std::int64_t>::max();

std::string Absolute(const std::string& path, const std::string& cwd) {
  return path.empty() || path.starts_with('/') ? path : cwd + "/" + path;
}

Result<std::string> ReadKeyFile(const std::string& path) {
  // Never waits: what is named may be a pipe.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0)
    return ErrnoError(errno, fmt::format("info key 'file': open '{}'", path));
  if (!S_ISREG(status.st_mode))
    return Error(Code::kInvalidArgument, "info key 'file': '{}' is no regular file", path);
  std::string text(kMaxFile + 1, '\0');
  const ssize_t size = ::read(fd.get(), text.data(), text.size());
  if (size < 0) return ErrnoError(errno, fmt::format("info key 'file': read '{}'", path));
  if (static_cast<std::size_t>(size) > kMaxFile)
    return Error(Code::kInvalidArgument, "info key 'file': '{}' is longer than {} bytes", path, kMaxFile);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

// Where the command's program is, as a shell in the children's working directory would find it.
Result<std::string> FindCommand(const ParsedCommand& command, const wire::SpawnAsk& ask,
                                const std::string& cwd) {
  if (command.program.empty()) return Error(Code::kInvalidArgument, "a command is empty");
  std::string path;
  for (const std::string& directory : command.search) path += directory + ":";
  // Last the directory itself: mpirun, too, starts "child" where it stands.
  path += ask.search_path + ":.";
  const launch::Lookup found = launch::FindProgram({command.program, path, cwd});
  if (found.path.empty()) return Error(Code::kNotFound, "spawn refused: {}", found.error.message);
  return std::filesystem::path(found.path).lexically_normal().string();
}

struct ReadyPlan {
  PlanRequest request;
  wire::SpawnVerdict verdict;  // programs and directories
};

Result<ReadyPlan> MakePlan(const wire::TaskHello& task, wire::SpawnAsk ask) {
  if (ask.commands.empty()) return Error(Code::kInvalidArgument, "no command is given");
  ReadyPlan plan;
  plan.request.proc = {task.nspace, task.rank.value};
  for (wire::SpawnCommand& command : ask.commands) {
    for (std::string& key : command.unknown) plan.request.unknown.push_back(std::move(key));
    MSA_ASSIGN_OR_RETURN(ParsedCommand parsed,
                         ParseSpawnCommand(std::move(command), [&](const std::string& path) {
                           return ReadKeyFile(Absolute(path, ask.cwd));
                         }));
    const std::string cwd = parsed.wdir.empty() ? ask.cwd : Absolute(parsed.wdir, ask.cwd);
    struct stat status {};
    if (::stat(cwd.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
      return Error(Code::kNotFound, "spawn refused: working directory '{}' (info key 'wdir') is no directory",
                   cwd);
    MSA_ASSIGN_OR_RETURN(std::string program, FindCommand(parsed, ask, cwd));
    parsed.plan.program = parsed.program;
    plan.request.commands.push_back(std::move(parsed.plan));
    plan.request.wait_ms = std::max(plan.request.wait_ms, std::int64_t{parsed.wait.count()});
    plan.request.time_ms = std::max(plan.request.time_ms, std::int64_t{parsed.time.count()});
    if (parsed.nam.value > kMostNam - plan.request.nam.value)
      return Error(Code::kInvalidArgument, "info key 'msa_nam': the commands ask for more than {} bytes",
                   kMostNam);
    plan.request.nam = Bytes(plan.request.nam.value + parsed.nam.value);
    plan.verdict.programs.push_back(std::move(program));
    plan.verdict.wdirs.push_back(parsed.wdir.empty() ? std::string() : cwd);
  }
  return plan;
}

}  // namespace

void Member::OnTaskFrame(std::uint64_t client, const wire::TaskHello& task, const wire::Frame& frame) {
  const auto with = [&](auto message, auto&& act) {
    auto decoded = wire::Decode<decltype(message)>(frame.payload);
    if (decoded.ok()) return act(std::move(*decoded));
    log_("message of a task: " + decoded.status().message());
  };
  switch (frame.type) {
    case wire::SpawnAsk::kType:
      return with(wire::SpawnAsk{}, [&](auto m) { OnSpawnAsk(client, task, frame.id, std::move(m)); });
    case wire::SpawnWithdraw::kType:
      return with(wire::SpawnWithdraw{}, [&](auto m) {
        DropPlans([&](const TaskPlan& plan) { return plan.client == client && plan.ticket == m.ticket; });
      });
    case wire::Disconnected::kType:
      return with(wire::Disconnected{}, [&](auto m) {
        ToHead(NamespacesLinked{{task.nspace, m.nspace}, false});
      });
    default:
      log_(fmt::format("a task sent a message of type {:#06x}; ignored", frame.type));
  }
}

void Member::OnTaskGone(std::uint64_t client) {
  DropPlans([&](const TaskPlan& plan) { return plan.client == client; });
}

void Member::OnSpawnAsk(std::uint64_t client, const wire::TaskHello& task, std::uint64_t id,
                        wire::SpawnAsk ask) {
  auto plan = MakePlan(task, std::move(ask));
  if (!plan.ok()) {
    wire::SpawnVerdict verdict;
    const Code code = plan.status().code();
    verdict.refusal =
        code == Code::kInvalidArgument ? wire::SpawnRefusal::kInfoValue : wire::SpawnRefusal::kSpawn;
    verdict.reason = plan.status().message();
    return options_.to_task(client, verdict, id);
  }
  const std::uint64_t request = next_request_;
  plans_[request] = {client, {}, {}};
  Ask(options_.head, plan->request,
      [this, client, id, request, verdict = std::move(plan->verdict)](
          pmix::PmixStatus, const wire::Frame* frame) { OnPlanReply(client, id, request, verdict, frame); });
}

void Member::OnPlanReply(std::uint64_t client, std::uint64_t id, std::uint64_t request,
                         wire::SpawnVerdict verdict, const wire::Frame* frame) {
  auto reply = frame == nullptr ? Result<PlanReply>(Error(Code::kUnavailable, "the head of the job is gone"))
                                : wire::Decode<PlanReply>(frame->payload);
  const auto it = plans_.find(request);
  if (!reply.ok()) {
    verdict.refusal = wire::SpawnRefusal::kSpawn;
    verdict.reason = "spawn refused: " + reply.status().message();
  } else {
    verdict.refusal = reply->refusal;
    verdict.reason = std::move(reply->reason);
    verdict.ticket = std::move(reply->ticket);
    verdict.nspace = std::move(reply->nspace);
    verdict.counts = std::move(reply->counts);
  }
  if (it == plans_.end()) return;  // withdrawn meanwhile, of which the head was told
  if (verdict.ticket.empty())
    plans_.erase(it);
  else
    it->second = {client, verdict.ticket, verdict.nspace};
  options_.to_task(client, verdict, id);
}

void Member::DropPlans(const std::function<bool(const TaskPlan&)>& which) {
  std::erase_if(plans_, [&](const auto& entry) {
    if (!which(entry.second)) return false;
    ToHead(PlanDrop{entry.first});  // nothing, if it was used
    return true;
  });
}

void Member::OnEvent(const NamespaceEvent& message) {
  std::vector<pmix::Proc> affected;
  for (const std::string& target : message.targets)
    if (hosted_.contains(target)) affected.push_back({target, pmix::kRankWildcard});
  if (!affected.empty()) host_.NotifyEvent(message.event, message.source, affected);
}

}  // namespace msa::jobd
