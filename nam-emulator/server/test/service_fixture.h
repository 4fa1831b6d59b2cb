#pragma once
// A service over a directory of its own, with one committed extent, and a stand-in for the fabric.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "msa/adapters/process/files.h"
#include "msa/base/mutex.h"
#include "msa/nam/fabric_server.h"
#include "msa/support/scratch_directory.h"

#include "extent_store.h"
#include "service.h"

namespace msa::namd::test {

// Hands out keys and keeps account of them.
class FabricDouble : public nam::FabricServer {
 public:
  struct Registered {
    void* base = nullptr;
    Bytes bytes;
    Access access = Access::kRead;
  };
  const std::string& provider() const override { return provider_; }
  const std::string& address() const override { return address_; }
  Result<nam::FabricKey> Register(void* base, Bytes bytes, Access access) override {
    MutexLock lock(mu_);
    if (fails) return Status(Code::kResourceExhausted, "no keys left");
    keys_[++last_] = {base, bytes, access};
    return nam::FabricKey{last_, 0};
  }
  void Unregister(std::uint64_t key) override {
    MutexLock lock(mu_);
    keys_.erase(key);
  }
  std::map<std::uint64_t, Registered> keys() const {
    MutexLock lock(mu_);
    return keys_;
  }
  std::atomic<bool> fails = false;

 private:
  std::string provider_ = "double";
  std::string address_ = "here";
  mutable Mutex mu_;
  std::map<std::uint64_t, Registered> keys_ MSA_GUARDED_BY(mu_);
  std::uint64_t last_ MSA_GUARDED_BY(mu_) = 500;
};

inline std::string PlainHmac(std::string_view key, std::string_view text) {
  return std::to_string(std::hash<std::string>{}(std::string(key) + std::string(text)));
}

inline constexpr ExtentKey kServed{{5, 6}, Generation(1)};

class ServiceWorld {
 public:
  ServiceWorld() {
    (void)BusGuard::Install();
    (void)MakeDirectory(directory / "notes");
    store = std::move(*ExtentStore::Open(directory / "extents"));
    MakeService();
    auto file = store->Create(kServed, {.segments = 2, .data = Bytes(8192)});
    service->Put(kServed, wire::NamExtentState::kCommitted, *file, (*file)->shape());
    service->SetFabric(&fabric);
    Welcome();
  }
  // As a namd that is started in the place of one that was killed.
  void TakeUp() {
    auto file = service->FileOf(kServed);
    MakeService();
    service->Put(kServed, wire::NamExtentState::kCommitted, file, file->shape());
    (void)service->RestoreOwners();
  }
  void MakeService() {
    Service::Options options{"nam0", PlainHmac, directory / "notes", [this] { return ++random; }};
    Service::Hooks hooks;
    hooks.on_removable = [this](const ExtentKey& key) { removable.push_back(key); };
    hooks.on_ended = [this](std::uint64_t connection, std::uint64_t attachment) {
      const MutexLock lock(ended_mu);
      ended.push_back({connection, attachment});
    };
    hooks.on_damaged = [this](const ExtentKey&, const std::string& reason) { damages.push_back(reason); };
    service = std::make_unique<Service>(std::move(options), std::move(hooks));
  }

  void Welcome() {
    wire::NamdWelcome welcome{.system = 9, .key = "secret"};
    welcome.extents = {{kServed.uuid, kServed.generation, wire::NamExtentState::kCommitted, Bytes(8192)}};
    (void)service->Welcome(welcome);
  }

  static std::string Blob(std::uint64_t lease, NamRights rights = NamRights::kAll) {
    wire::NamLease value;
    value.system = 9;
    value.lease = LeaseId(lease);
    value.uuid = kServed.uuid;
    value.generation = kServed.generation;
    value.name = "field";
    value.rights = rights;
    value.uid = 1000;
    value.extents = {{.node = "nam0"}};
    value.segments = {{.slot = 0, .offset = 0, .bytes = Bytes(4096)},
                      {.slot = 1, .offset = 4096, .bytes = Bytes(4096)}};
    std::string text;
    wire::Encoder encoder(text);
    value.Fields(encoder);
    return wire::Encode(wire::SignedNamLease{text, PlainHmac("secret", text)});
  }

  template <class M>
  wire::Frame Ask(const Service::Peer& peer, const M& request) {
    return service->Serve(peer, {M::kType, 0, 1, wire::Encode(request)}).frame;
  }
  Result<wire::NamAttached> Attach(const Service::Peer& peer, std::uint64_t lease, std::uint64_t client,
                                   NamRights rights = NamRights::kAll) {
    const wire::Frame frame = Ask(
        peer, wire::NamAttach{
                  .blob = Blob(lease, rights), .client = NamClientId(client), .map = true, .fabric = true});
    if (frame.type == wire::NamAttached::kType) return wire::Decode<wire::NamAttached>(frame.payload);
    const auto failed = wire::Decode<wire::NamFailed>(frame.payload);
    return Status(static_cast<Code>(failed->code), failed->message);
  }

  support::ScratchDirectory directory;
  std::unique_ptr<ExtentStore> store;
  FabricDouble fabric;
  std::atomic<std::uint64_t> random = 1000;
  std::vector<ExtentKey> removable;
  std::vector<std::string> damages;
  Mutex ended_mu;                                              // leases end on any thread
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ended;  // connection, attachment
  std::unique_ptr<Service> service;
};

inline Service::Peer FromFabric() { return {}; }
inline Service::Peer FromSocket(std::uint64_t connection) {
  return {{Caller::Via::kSocket, connection, 1000}, 0};
}

}  // namespace msa::namd::test
