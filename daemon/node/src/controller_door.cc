#include "controller_door.h"

#include <algorithm>

#include "msa/base/clock.h"

namespace msa::node {

Result<std::unique_ptr<ControllerDoor>> ControllerDoor::Create(EventLoop& loop, const Options& options,
                                                               std::function<void()> on_renew) {
  MSA_ASSIGN_OR_RETURN(const ControllerAddress address, ParseControllerAddress(options.controller));
  EnrolOptions enrol;
  enrol.address = address.enrol;
  enrol.role = PeerRole::kNode;
  enrol.node = options.node;
  enrol.controller_uid = options.controller_uid;
  enrol.munge_socket = options.munge_socket;
  MSA_ASSIGN_OR_RETURN(auto dialer, MemberDialer::Create(std::move(enrol)));
  return std::unique_ptr<ControllerDoor>(
      new ControllerDoor(loop, address.tls, std::move(dialer), std::move(on_renew)));
}

ControllerDoor::ControllerDoor(EventLoop& loop, std::string address, std::unique_ptr<MemberDialer> dialer,
                               std::function<void()> on_renew)
    : loop_(loop),
      address_(std::move(address)),
      dialer_(std::move(dialer)),
      on_renew_(std::move(on_renew)),
      worker_(loop) {}

ControllerDoor::~ControllerDoor() {
  if (renewal_) loop_.Cancel(*renewal_);
}

void ControllerDoor::Connect(std::function<void(Result<UniqueFd>)> done) {
  struct Work {
    std::optional<Result<UniqueFd>> result;
  };
  const auto work = std::make_shared<Work>();
  worker_.Run([this, work] { work->result = dialer_->Dial(address_, {.role = PeerRole::kController}); },
              [this, work, done = std::move(done)] {
                if (work->result->ok()) PlanRenewal();
                done(*std::move(work->result));
              });
}

void ControllerDoor::PlanRenewal() {
  if (renewal_) loop_.Cancel(*renewal_);
  renewal_ = loop_.After(std::max(dialer_->RenewAt() - Now(), Millis(0)), [this] {
    renewal_.reset();
    on_renew_();
  });
}

}  // namespace msa::node
