#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/worker.h"
#include "msa/base/nam_messages.h"

#include "extent_store.h"
#include "link.h"
#include "local_clients.h"
#include "service.h"

namespace msa::namd {

// namd: the store, the service, the clients and the session with the controller. One thread, the loop's; the
// worker makes and removes files.
class NamDaemon {
 public:
  struct Options {
    std::string node;
    std::string socket;  // for clients
    mode_t socket_mode = 0600;
    std::string link;        // of the node daemon
    std::string notes;       // directory of OwnerNotes
    Bytes capacity;          // of the topology
    std::uint64_t seed = 0;  // of connection numbers: random
    Hmac hmac;
    std::function<std::uint64_t()> random;
    std::function<void(Status)> on_over;  // the daemon must not go on
  };
  NamDaemon(EventLoop& loop, Options options, std::unique_ptr<ExtentStore> store);
  ~NamDaemon();
  NamDaemon(const NamDaemon&) = delete;
  NamDaemon& operator=(const NamDaemon&) = delete;

  // Reads the directory. Then Start.
  Status Load();
  Service& service() { return *service_; }
  ExtentStore& store() { return *store_; }
  // Serves this host. Until UseFabric the fabric is said to be on its way.
  Status Start();
  // Once, before Start or any time later; nullptr: there is none. The controller is told. It stays until
  // EndFabric.
  void UseFabric(nam::FabricServer* fabric);
  // Its keys end; nothing of it is used any more.
  void EndFabric();

 private:
  using State = wire::NamExtentState;

  wire::NamdHello Hello() const;
  void OnLinkUp();
  void OnLinkDown(const Status& why);
  void OnFrame(const wire::Frame& frame);
  template <class M>
  bool Take(const wire::Frame& frame);
  void On(const wire::NamdWelcome& welcome);
  void On(const wire::NamExtentAllocate& allocate);
  void On(const wire::NamExtentCommit& commit);
  void On(const wire::NamExtentFree& free);
  void On(const wire::NamScan& scan);
  void On(const wire::NamRevoke& revoke) { service_->Revoke(revoke); }
  void On(wire::NamToLocal reply) { clients_->OnReply(std::move(reply)); }
  void On(const wire::NamdQuit& quit);

  Status Adopt(const wire::NamdWelcome& welcome);
  void Done(std::uint64_t request, const Status& status);
  void Make(const wire::NamExtentAllocate& allocate, const ExtentKey& key, ExtentShape shape);
  void AllocateWaiting(const ExtentKey& key);
  void Commit(const ExtentKey& key);
  void Remove(const ExtentKey& key);
  struct Survey {
    std::vector<ExtentKey> known;  // committed when it began
    Result<ExtentStore::Listing> listing = Status::Ok();
  };
  void TellScan(std::uint64_t request, const Survey& survey);
  // One file that the survey found.
  void Judge(const ExtentStore::Found& found, wire::NamScanned& scanned);
  Status WatchOwner(const Service::Watched& watched);
  Status Relay(const wire::NamFromLocal& request);
  void OnLocalGone(wire::NamLocalGone gone);
  void OnLocalHello(NamClientId client);
  void OnFilePassed();

  EventLoop& loop_;
  const Options options_;
  std::unique_ptr<ExtentStore> store_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<LocalClients> clients_;
  std::unique_ptr<Link> link_;
  std::optional<nam::FabricServer*> fabric_;  // nullopt: it is being started
  bool session_ = false;                      // between welcome and the link's end
  std::uint64_t sessions_ = 0;                // so far
  std::uint64_t allocated_ = 0;               // bytes of all files
  std::set<ExtentKey> making_;
  std::set<ExtentKey> removing_;
  std::map<ExtentKey, std::vector<wire::NamExtentAllocate>> waiting_allocates_;  // for making_, removing_
  std::map<ExtentKey, std::vector<std::uint64_t>> free_requests_;
  std::vector<wire::NamLocalGone> unsent_gone_;
  bool is_trimming_ = false;
  TimerId trim_timer_{};
  std::map<std::uint64_t, ProcessHandle> owners_;  // of before a restart
  std::uint64_t next_owner_ = 1;
  std::unique_ptr<Worker> worker_;  // last: its thread uses the store
};

}  // namespace msa::namd
