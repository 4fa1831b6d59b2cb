#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/frame_channel.h"
#include "msa/base/unique_fd.h"

namespace msa::node {

// Where the namd of this node connects: its frames of 0x09xx go to the controller and back, unread but for
// NamdHello's version. One namd at a time: a newer one replaces an older. Only this process's own user and
// root are let in. One thread, the loop's.
class NamLink {
 public:
  struct Options {
    std::string node;
    std::string path;             // of the socket
    Millis hello_timeout{5'000};  // a local process says hello at once
    // Of a namd that does not read: beyond this its connection is given up.
    std::size_t max_queued = std::size_t{32} << 20;
  };
  struct Handlers {
    std::function<void(wire::Frame)> on_frame;               // for the controller; NamdHello first
    std::function<void(const std::string& reason)> on_gone;  // the one that said hello; not after Reset
  };
  NamLink(EventLoop& loop, Options options, Handlers handlers);
  ~NamLink();
  NamLink(const NamLink&) = delete;
  NamLink& operator=(const NamLink&) = delete;

  // Opens the socket. Errors as ListenUnix.
  Status Listen();
  // To the namd that said hello; dropped if there is none. NamdQuit is the last that it gets.
  void Send(const wire::Frame& frame);
  // Ends every connection: namd connects again and says hello anew. Nothing is told.
  void Reset();

 private:
  struct Peer {
    std::unique_ptr<FrameChannel> channel;
    TimerId hello_timer{};
  };
  void Accept();
  Status Admit(UniqueFd fd);
  void OnFrame(std::uint64_t peer, wire::Frame frame);
  void OnHello(std::uint64_t peer, wire::Frame frame);
  void OnClosed(std::uint64_t peer, const Status& why);
  // Without a word to it.
  void Drop(std::uint64_t peer);
  // It is told to leave this node alone.
  void Quit(std::uint64_t peer, const std::string& reason);

  EventLoop& loop_;
  const Options options_;
  const Handlers handlers_;
  UniqueFd listener_;
  TimerId resume_timer_{};
  std::map<std::uint64_t, Peer> peers_;
  std::uint64_t next_peer_ = 1;
  std::uint64_t namd_ = 0;  // the peer that said hello last; 0: none
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace msa::node
