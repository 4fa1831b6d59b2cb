#pragma once
// The way to a controller on another host: TLS, with a certificate that munge obtains. Loop's thread.

#include <functional>
#include <memory>
#include <string>

#include "msa/adapters/enrol/member_dialer.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/worker.h"

namespace msa::node {

class ControllerDoor {
 public:
  struct Options {
    std::string controller;  // tls:HOST:PORT
    std::string node;
    std::uint32_t controller_uid = 0;
    std::string munge_socket;
  };
  static Result<std::unique_ptr<ControllerDoor>> Create(EventLoop& loop, const Options& options);
  ControllerDoor(const ControllerDoor&) = delete;
  ControllerDoor& operator=(const ControllerDoor&) = delete;

  // Lets clients with a certificate in, at HOST:PORT. `on_client` runs on another thread. Once. Errors as
  // ListenTcp.
  Status Serve(const std::string& address, std::function<void(UniqueFd, const PeerIdentity&)> on_client);

  // Calls `done` once, unless the door is destroyed before.
  void Connect(std::function<void(Result<UniqueFd>)> done);

 private:
  ControllerDoor(EventLoop& loop, std::string address, std::unique_ptr<MemberDialer> dialer);

  const std::string address_;
  const std::unique_ptr<MemberDialer> dialer_;
  Worker worker_;  // names resolve, and munged answers, when they will
};

}  // namespace msa::node
