// What tasks ask over MSA_JOB_SOCKET: leave to spawn.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "member.h"
#include "spawn_keys.h"

namespace msa::jobd {
namespace {

constexpr std::size_t kMaxFile = 64 * 1024;

std::string Absolute(std::string path, const std::string& cwd) {
  while (path.starts_with("./") && path.size() > 2) path.erase(0, 2);
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

bool IsProgram(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> Directories(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(':', begin), list.size());
    out.push_back(end == begin ? "." : list.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// Where the command's program is, as the children's shell would find it from their working directory.
Result<std::string> FindProgram(const ParsedCommand& command, const wire::SpawnAsk& ask,
                                const std::string& cwd) {
  const std::string& name = command.program;
  if (name.empty()) return Error(Code::kInvalidArgument, "a command is empty");
  std::vector<std::string> tried;
  if (name.find('/') != std::string::npos) {
    tried.push_back(Absolute(name, cwd));
  } else {
    for (const std::string& directory : command.search)
      tried.push_back(Absolute(directory, cwd) + "/" + name);
    for (const std::string& directory : Directories(ask.search_path))
      tried.push_back(Absolute(directory, cwd) + "/" + name);
    tried.push_back(cwd + "/" + name);
  }
  const auto found = std::find_if(tried.begin(), tried.end(), IsProgram);
  if (found != tried.end()) return *found;
  if (tried.size() == 1 && ::access(tried[0].c_str(), F_OK) == 0)
    return Error(Code::kPermissionDenied, "spawn refused: '{}' is no program that can be executed", tried[0]);
  if (tried.size() == 1) return Error(Code::kNotFound, "spawn refused: program '{}' not found", tried[0]);
  return Error(
      Code::kNotFound,
      "spawn refused: program '{}' found neither in PATH nor in '{}'; give its path, or its directory in the "
      "info key 'path'",
      name, cwd);
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
    MSA_ASSIGN_OR_RETURN(std::string program, FindProgram(parsed, ask, cwd));
    parsed.plan.program = parsed.program;
    plan.request.commands.push_back(std::move(parsed.plan));
    plan.request.wait_ms = std::max(plan.request.wait_ms, std::int64_t{parsed.wait.count()});
    plan.request.time_ms = std::max(plan.request.time_ms, std::int64_t{parsed.time.count()});
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
  plans_[request] = {client, {}};
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
    it->second.ticket = verdict.ticket;
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
