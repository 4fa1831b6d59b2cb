#pragma once
// Connections between the heads of two jobs: one peer mesh of two for each ticket, TLS 1.3 with the ticket's
// secret. A ticket serves one connection; the listener of one that nobody uses goes after a while.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "msa/adapters/process/event_loop.h"
#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/base/wire.h"

#include "peer_mesh.h"
#include "tls_stream.h"

namespace msa::jobd {

// What the two sides of a link share.
struct LinkTicket {
  JobId asker;  // the job that connects
  Incarnation incarnation;
  std::uint64_t request = 0;  // unique among the asker's
  std::string secret;         // hex
};

struct ForeignLinkOptions {
  std::string directory;  // for unix sockets
  std::string address;    // where this job daemon listens for its own job: "unix:PATH" or "tcp:HOST:PORT"
  Millis unused{30'000};  // a ticket that is not used by then is void; longer than a head needs to ask again
  Millis connect_limit{10'000};
};

// Links are known by numbers of the caller's choice. One thread, the loop's. Callbacks never run inside a
// call.
class ForeignLinks {
 public:
  struct Handlers {
    std::function<void(std::uint64_t link)> on_up;
    std::function<void(std::uint64_t link, const wire::Frame&)> on_frame;
    // Once for each link that was not closed here, tickets that were not used included.
    std::function<void(std::uint64_t link, const std::string& reason)> on_lost;
    std::function<void(const std::string& text)> on_trouble;
  };
  ForeignLinks(EventLoop& loop, ForeignLinkOptions options, Handlers handlers);
  ~ForeignLinks();
  ForeignLinks(const ForeignLinks&) = delete;
  ForeignLinks& operator=(const ForeignLinks&) = delete;

  // The address that the other side is to connect to. kInvalidArgument: the secret; else the system's reason.
  Result<std::string> Listen(std::uint64_t link, const LinkTicket& ticket);
  // Frames sent before the connection stands are kept for it.
  Status Connect(std::uint64_t link, const LinkTicket& ticket, const std::string& address);
  void Send(std::uint64_t link, std::uint16_t type, std::uint64_t id, std::string payload);
  void Close(std::uint64_t link);
  std::size_t size() const noexcept { return links_.size(); }

 private:
  struct Link {
    TlsContext tls;
    std::unique_ptr<PeerMesh> mesh;  // before tls goes
    std::uint32_t self = 0;
    TimerId unused{};
  };
  Result<Link*> Make(std::uint64_t link, std::uint32_t self, const LinkTicket& ticket, std::string address);
  void Lose(std::uint64_t link, const std::string& reason);

  EventLoop& loop_;
  ForeignLinkOptions options_;
  Handlers handlers_;
  std::map<std::uint64_t, std::unique_ptr<Link>> links_;
};

}  // namespace msa::jobd
