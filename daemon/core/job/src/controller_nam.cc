// Network attached memory in the controller: the book's events and effects, and who asks.

#include "controller_impl.h"

namespace msa {

void Controller::Impl::Handle(event::NamCall& e) {
  Emit(effect::NamReply{e.reply, Status(Code::kUnimplemented, "no network attached memory yet"), {}});
}
void Controller::Impl::Handle(event::NamCallEnded&) {}
void Controller::Impl::Handle(event::NamdUp&) {}
void Controller::Impl::Handle(event::NamdLost&) {}
void Controller::Impl::Handle(event::FromNamd&) {}
void Controller::Impl::OnMessage(Job&, const std::string&, wire::NamFromTask&) {}
void Controller::Impl::OnMessage(Job&, const std::string&, wire::NamTaskGone&) {}
void Controller::Impl::OnMessage(Job&, const std::string&, wire::NamAllotmentAsk&) {}

}  // namespace msa
