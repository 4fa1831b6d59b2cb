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
  // The same for a frame that is relayed. A client that does not read is dropped.
  void SendFrame(std::uint64_t client, const wire::Frame& frame);

  const std::string& path() const noexcept { return path_; }
  std::size_t connections() const noexcept { return clients_.size(); }

 private:
  JobSocket(EventLoop& loop, std::string path, Handlers handlers,
            std::function<void(const std::string&)> log);
  struct Client {
    std::unique_ptr<FrameChannel> channel;
    std::optional<wire::TaskHello> task;  // after its hello
  };
  void Accept();
  Status Admit(UniqueFd fd);
  void OnFrame(std::uint64_t client, const wire::Frame& frame);
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
