#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/base/status.h"
#include "msa/base/unique_fd.h"
#include "msa/jobd/task_messages.h"

#include "descriptor_stream.h"
#include "slurm_tasks.h"

namespace msa::jobd {

// MSA_JOB_SOCKET: where the tasks of this node reach their job daemon. Accepts this process's own user alone.
// One thread, the loop's.
class JobSocket {
 public:
  // The answer to a task's hello; an error refuses it.
  using Greeter = std::function<Result<wire::TaskWelcome>(const wire::TaskHello&)>;
  // After the hello. `client` names the connection and is never used again.
  struct Handlers {
    Greeter greet;
    std::function<void(std::uint64_t client, const wire::TaskHello& task, const wire::Frame& frame)> on_frame;
    std::function<void(std::uint64_t client)> on_closed;
    // A task of Slurm, instead of a hello; nothing else comes from it. null: there are none.
    std::function<void(std::uint64_t client, SlurmJoin join)> on_join;
    // msa-exec in the process `pid`, instead of a hello; an error refuses it.
    std::function<Result<wire::TaskExec>(pid_t pid)> on_exec;
  };
  // kInvalidArgument: path too long; else the system's reason.
  static Result<std::unique_ptr<JobSocket>> Create(EventLoop& loop, const std::string& path,
                                                   Handlers handlers,
                                                   std::function<void(const std::string&)> log);
  ~JobSocket();
  JobSocket(const JobSocket&) = delete;
  JobSocket& operator=(const JobSocket&) = delete;

  // To a client that may be gone.
  template <class M>
  void Send(std::uint64_t client, const M& message, std::uint64_t id) {
    if (const auto it = clients_.find(client); it != clients_.end())
      it->second.channel->SendMessage(message, id);
  }
  // The answer to a join, with a descriptor beside it if that is valid.
  void Answer(std::uint64_t client, const wire::SlurmTaskReady& ready, UniqueFd descriptor);
  // The same for a frame that is relayed. A client that does not read is dropped.
  void SendFrame(std::uint64_t client, const wire::Frame& frame);

  const std::string& path() const noexcept { return path_; }
  std::size_t connections() const noexcept { return clients_.size(); }

 private:
  JobSocket(EventLoop& loop, std::string path, Handlers handlers,
            std::function<void(const std::string&)> log);
  struct Client {
    std::unique_ptr<FrameChannel> channel;
    DescriptorStream* stream = nullptr;  // the channel's
    pid_t pid = 0;
    bool joined = false;                  // a task of Slurm
    std::optional<wire::TaskHello> task;  // after its hello
  };
  void Accept();
  Status Admit(UniqueFd fd);
  void OnFrame(std::uint64_t client, const wire::Frame& frame);
  Status Exec(const wire::Frame& frame, Client& client);
  Status Join(std::uint64_t id, const wire::Frame& frame, Client& client);
  Result<wire::TaskWelcome> Greet(const wire::Frame& frame, Client& client);
  void Drop(std::uint64_t client);

  EventLoop& loop_;
  std::string path_;
  Handlers handlers_;
  std::function<void(const std::string&)> log_;
  UniqueFd listener_;
  std::map<std::uint64_t, Client> clients_;
  std::uint64_t next_client_ = 1;
};

}  // namespace msa::jobd
