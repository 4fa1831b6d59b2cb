#include "controller_door.h"

#include <optional>

#include <spdlog/spdlog.h>

#include "msa/adapters/tls/tcp_socket.h"

namespace msa::node {
Result<std::unique_ptr<ControllerDoor>> ControllerDoor::Create(EventLoop& loop, const Options& options) {
  MSA_ASSIGN_OR_RETURN(const ControllerAddress address, ParseControllerAddress(options.controller));
  EnrolOptions enrol;
  enrol.address = address.enrol;
  enrol.role = PeerRole::kNode;
  enrol.node = options.node;
  enrol.controller_uid = options.controller_uid;
  enrol.munge_socket = options.munge_socket;
  const auto on_trouble = [](const Status& why) {
    spdlog::warn("certificate not renewed: {}", why.message());
  };
  MSA_ASSIGN_OR_RETURN(auto dialer, MemberDialer::Create(std::move(enrol), on_trouble));
  return std::unique_ptr<ControllerDoor>(new ControllerDoor(loop, address.tls, std::move(dialer)));
}

ControllerDoor::ControllerDoor(EventLoop& loop, std::string address, std::unique_ptr<MemberDialer> dialer)
    : address_(std::move(address)), dialer_(std::move(dialer)), worker_(loop) {}

void ControllerDoor::Connect(std::function<void(Result<UniqueFd>)> done) {
  struct Work {
    std::optional<Result<UniqueFd>> result;
  };
  const auto work = std::make_shared<Work>();
  worker_.Run([this, work] { work->result = dialer_->Dial(address_, {.role = PeerRole::kController}); },
              [work, done = std::move(done)] { done(*std::move(work->result)); });
}

Status ControllerDoor::Serve(const std::string& address,
                             std::function<void(UniqueFd, const PeerIdentity&)> on_client) {
  MSA_ASSIGN_OR_RETURN(UniqueFd listener, ListenTcp(address));
  dialer_->Serve(std::move(listener), std::move(on_client), [](const std::string& from, const Status& why) {
    spdlog::warn("from={} refused: {}", from, why.message());
  });
  return Status::Ok();
}

}  // namespace msa::node
