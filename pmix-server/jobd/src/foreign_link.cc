#include "foreign_link.h"

#include <fmt/format.h>

#include "peer_socket.h"

namespace msa::jobd {
namespace {

constexpr std::uint32_t kConnector = 0;
constexpr std::uint32_t kListener = 1;

}  // namespace

ForeignLinks::ForeignLinks(EventLoop& loop, ForeignLinkOptions options, Handlers handlers)
    : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)) {}

ForeignLinks::~ForeignLinks() {
  for (auto& [number, link] : links_) loop_.Cancel(link->unused);
}

Result<ForeignLinks::Link*> ForeignLinks::Make(std::uint64_t number, std::uint32_t self,
                                               const LinkTicket& ticket, std::string address) {
  auto link = std::make_unique<Link>();
  link->self = self;
  PeerMesh::Handlers handlers;
  handlers.on_frame = [this, number](std::uint32_t, wire::Frame frame) {
    if (links_.contains(number)) handlers_.on_frame(number, frame);
  };
  handlers.on_joined = [this, number](std::uint32_t) {
    const auto it = links_.find(number);
    if (it == links_.end()) return;
    loop_.Cancel(it->second->unused);
    it->second->unused = {};
    handlers_.on_up(number);
  };
  handlers.on_lost = [this, number](std::uint32_t, const std::string& reason) { Lose(number, reason); };
  handlers.on_trouble = [this](const std::string& text) { handlers_.on_trouble("link: " + text); };
  PeerMeshOptions options{ticket.asker,       ticket.incarnation, self,
                          std::move(address), ticket.secret,      options_.connect_limit};
  MSA_ASSIGN_OR_RETURN(link->mesh, PeerMesh::Create(loop_, link->tls, options, std::move(handlers)));
  Link* raw = link.get();
  links_[number] = std::move(link);
  return raw;
}

Result<std::string> ForeignLinks::Listen(std::uint64_t number, const LinkTicket& ticket) {
  MSA_ASSIGN_OR_RETURN(const PeerAddress own, ParsePeerAddress(options_.address));
  const std::string address =
      own.is_unix ? fmt::format("unix:{}/x{}.{}", options_.directory, ticket.asker, ticket.request)
                  : fmt::format("tcp:{}:0",
                                own.host.find(':') == std::string::npos ? own.host : "[" + own.host + "]");
  MSA_ASSIGN_OR_RETURN(Link* const link, Make(number, kListener, ticket, address));
  wire::Member connector;
  connector.index = kConnector;
  connector.node = fmt::format("job {}", ticket.asker);
  link->mesh->SetMembers(Epoch(1), {connector}, {});
  link->unused = loop_.After(options_.unused, [this, number] {
    Lose(number, fmt::format("nobody used it within {} s", options_.unused.count() / 1000));
  });
  return link->mesh->address();
}

Status ForeignLinks::Connect(std::uint64_t number, const LinkTicket& ticket, const std::string& address) {
  MSA_ASSIGN_OR_RETURN(Link* const link, Make(number, kConnector, ticket, {}));
  wire::Member listener;
  listener.index = kListener;
  listener.node = "another job";
  listener.address = address;
  link->mesh->SetMembers(Epoch(1), {listener}, {});
  link->mesh->Connect(kListener);
  return Status::Ok();
}

void ForeignLinks::Send(std::uint64_t number, std::uint16_t type, std::uint64_t id, std::string payload) {
  const auto it = links_.find(number);
  if (it == links_.end()) return;
  it->second->mesh->Send(it->second->self == kListener ? kConnector : kListener, type, id,
                         std::move(payload));
}

void ForeignLinks::Lose(std::uint64_t number, const std::string& reason) {
  if (!links_.contains(number)) return;
  Close(number);
  handlers_.on_lost(number, reason);
}

// The mesh may be the one whose handler runs.
void ForeignLinks::Close(std::uint64_t number) {
  const auto it = links_.find(number);
  if (it == links_.end()) return;
  loop_.Cancel(it->second->unused);
  loop_.Post([dead = std::shared_ptr<Link>(std::move(it->second))] {});
  links_.erase(it);
}

}  // namespace msa::jobd
