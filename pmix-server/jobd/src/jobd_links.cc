// The head's links to other jobs.
#include <sys/random.h>

#include <cerrno>

#include <spdlog/spdlog.h>

#include "jobd.h"

namespace msa::jobd {

ForeignLinks& Jobd::Links() {
  if (links_ != nullptr) return *links_;
  ForeignLinks::Handlers handlers;
  handlers.on_up = [this](std::uint64_t link) {
    if (head_ && !leaving_) head_->OnLinkUp(link);
  };
  handlers.on_frame = [this](std::uint64_t link, const wire::Frame& frame) {
    if (head_ && !leaving_) head_->OnLinkFrame(link, frame);
  };
  handlers.on_lost = [this](std::uint64_t link, const std::string& reason) {
    if (head_ && !leaving_) head_->OnLinkLost(link, reason);
  };
  handlers.on_trouble = [this](const std::string& text) { Log(text); };
  links_ = std::make_unique<ForeignLinks>(
      loop_, ForeignLinkOptions{.directory = options_.directory, .address = address_}, std::move(handlers));
  return *links_;
}

std::string Jobd::NewSecret() {
  unsigned char bytes[32];
  // At most 256 bytes come whole, see getrandom(2).
  while (::getrandom(bytes, sizeof bytes, 0) < 0 && errno == EINTR) continue;
  std::string hex;
  for (const unsigned char byte : bytes) hex += fmt::format("{:02x}", byte);
  return hex;
}

Result<std::string> Jobd::ListenLink(std::uint64_t link, const LinkTicket& ticket) {
  return Links().Listen(link, ticket);
}

Status Jobd::OpenLink(std::uint64_t link, const LinkTicket& ticket, const std::string& address) {
  return Links().Connect(link, ticket, address);
}

void Jobd::ToLink(std::uint64_t link, std::uint16_t type, std::uint64_t id, std::string payload) {
  Links().Send(link, type, id, std::move(payload));
}

void Jobd::CloseLink(std::uint64_t link) { Links().Close(link); }

}  // namespace msa::jobd
