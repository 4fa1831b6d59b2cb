#pragma once
// FabricServer by libfabric: see msa/nam/fabric_server.h.

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/unique_fd.h"
#include "msa/nam/fabric_server.h"

#include "exposed_memory.h"
#include "fragments.h"
#include "port.h"

namespace msa::nam {

// Everything but Register and Unregister belongs to the progress thread.
class Server final : public FabricServer {
 public:
  // Serves at once.
  static Result<std::unique_ptr<Server>> Open(FabricServerOptions options, Handler handler);
  ~Server() override;

  const std::string& provider() const override { return port_.provider(); }
  const std::string& address() const override { return port_.address(); }
  Result<FabricKey> Register(void* base, Bytes bytes, Access access) override;
  void Unregister(std::uint64_t key) override;

 private:
  struct Operation {
    fi_context2 context{};  // first: what libfabric gives back
    enum class Kind { kReceive, kSend } kind = Kind::kReceive;
  };
  struct Receive : Operation {
    std::unique_ptr<char[]> buffer;
  };
  // Who has sent something: known by the address that its messages name and the transport confirms.
  struct Client {
    std::string address;
    fi_addr_t at = FI_ADDR_UNSPEC;
    bool confirmed = false;         // the transport has named it as a message's source
    std::deque<std::string> queue;  // fragments to be sent
    std::size_t queued_bytes = 0;
    std::uint32_t in_flight = 0;
    SteadyTime moved{};  // when a fragment last left the queue, or came into an empty one
    std::list<Client*>::iterator in_order{};
  };
  struct Send : Operation {
    Client* client = nullptr;
    std::string bytes;
  };
  struct Arrival {
    Receive* receive = nullptr;
    std::size_t bytes = 0;
    fi_addr_t source = FI_ADDR_NOTAVAIL;
  };

  Server(Port port, FabricServerOptions options, Handler handler);
  Status Begin();
  void Run();
  bool Poll();
  void Sleep();
  void DropEnded();
  void OnCompletion(const fi_cq_msg_entry& entry, fi_addr_t source);
  void OnError();
  void OnSent(Send& send, const Status& status);
  void Post(Receive& receive);

  void HandleArrivals();
  Status HandleArrival(const Arrival& arrival);
  void HandleMessage(Client& client, Message message);
  Result<Client*> Admit(const std::string& address, fi_addr_t source);
  Result<Client*> Add(const std::string& address);
  void Remove(Client& client);

  void Answer(Client& client, const FragmentHead& head, const std::string& payload);
  void SendQueued();
  void SendFrom(Client& client);
  void GiveUp(Client& client, const std::string& why);

  bool IsOurs(const TcpConnection& connection);
  void DriveOrWait();
  void Wake();
  void Log(const std::string& line) const;

  const FabricServerOptions options_;
  const Handler handler_;
  const std::uint64_t instance_ = RandomBits();
  UniqueFd wake_;
  std::vector<std::unique_ptr<Receive>> receives_;
  std::vector<std::unique_ptr<Send>> sends_;
  std::vector<Send*> spare_sends_;
  std::vector<Receive*> unposted_;
  std::deque<Arrival> arrivals_;
  Reassembler reassembler_;
  std::unordered_map<std::string, std::unique_ptr<Client>> clients_;
  std::unordered_map<fi_addr_t, Client*> by_source_;
  std::list<Client*> order_;   // the longest silent first
  std::set<Client*> waiting_;  // with a queue
  std::size_t queued_bytes_ = 0;
  std::set<ino_t> ended_;  // connections, when it was last looked
  std::atomic<bool> stop_{false};
  std::thread thread_;
  Mutex dialed_mu_;
  std::set<std::string> dialed_
      MSA_GUARDED_BY(dialed_mu_);  // to whom the server may have connected by itself
  Port port_;                      // after what its operations point to: closed before
  std::unique_ptr<ExposedMemory> memory_;
};

}  // namespace msa::nam
