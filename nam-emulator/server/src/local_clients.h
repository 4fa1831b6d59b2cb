#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/base/nam_messages.h"

#include "passing_stream.h"
#include "service.h"

namespace msa::namd {

// The processes at namd's Unix socket. Requests of 0x08xx are the service's, those of 0x07xx go to the
// controller with what the kernel says of their sender. One thread, the loop's.
class LocalClients {
 public:
  struct Hooks {
    // kUnavailable: no session with the controller.
    std::function<Status(const wire::NamFromLocal&)> relay;
    std::function<bool()> relay_full;
    std::function<void(wire::NamLocalGone)> on_gone;  // of one that had relayed something, or said hello
    std::function<void(NamClientId)> on_hello;        // it lives
    std::function<void()> on_file;                    // one is passed to a client
  };
  // `first_connection`: of its numbers; different in each life of a namd.
  LocalClients(EventLoop& loop, Service& service, std::uint64_t first_connection, Hooks hooks);
  ~LocalClients();
  LocalClients(const LocalClients&) = delete;
  LocalClients& operator=(const LocalClients&) = delete;

  // Errors as ListenUnix.
  Status Listen(const std::string& path, mode_t mode);
  // A reply of the controller; dropped if its client is gone.
  void OnReply(wire::NamToLocal reply);
  // The session with the controller is over: what was asked in it is answered with kUnavailable.
  void OnSessionLost();
  // A lease of what it has mapped has ended.
  void OnEnded(std::uint64_t connection, std::uint64_t attachment);
  void OnRelayDrained();
  // Those that are open.
  std::vector<std::uint64_t> Connections() const;
  bool empty() const { return clients_.empty(); }

 private:
  struct Client {
    std::uint64_t connection = 0;
    PeerCredentials who;
    std::vector<std::uint32_t> groups;
    std::unique_ptr<FrameChannel> channel;
    PassingStream* stream = nullptr;     // the channel's, as long as that is open
    std::uint64_t sent = 0;              // bytes
    NamClientId client;                  // of its hello
    std::multiset<std::uint64_t> asked;  // frame ids of requests that the controller has not answered
    bool relayed = false;
    bool paused = false;  // what it relays has to wait
    bool full = false;    // it does not read the files that were passed to it
  };
  void Accept();
  Status Open(UniqueFd fd);
  void OnFrame(std::uint64_t connection, wire::Frame frame);
  void OnClosed(std::uint64_t connection, const Status& why);
  void OnFilePassed(std::uint64_t connection);
  void Greet(Client& client, const wire::Frame& frame);
  void Relay(Client& client, wire::Frame frame);
  void Send(Client& client, const wire::Frame& frame, UniqueFd file);
  void Fail(Client& client, std::uint64_t id, const Status& status);

  EventLoop& loop_;
  Service& service_;
  const Hooks hooks_;
  std::uint64_t next_connection_;
  UniqueFd listener_;
  TimerId accept_timer_{};
  std::map<std::uint64_t, Client> clients_;
};

}  // namespace msa::namd
