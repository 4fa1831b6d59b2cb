#include "nam_daemon.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "msa/base/fault.h"
#include "msa/base/nam_fabric.h"

#include "bus_guard.h"

namespace msa::namd {
namespace {

constexpr Millis kTrimPause{5000};

}  // namespace

NamDaemon::NamDaemon(EventLoop& loop, Options options, std::unique_ptr<ExtentStore> store)
    : loop_(loop), options_(std::move(options)), store_(std::move(store)) {
  Service::Options service{options_.node, options_.hmac, options_.notes, options_.random};
  Service::Hooks hooks;
  hooks.on_removable = [this](const ExtentKey& key) { loop_.Post([this, key] { Remove(key); }); };
  hooks.on_damaged = [this](const ExtentKey& key, const std::string& reason) {
    loop_.Post([this, damaged = wire::NamExtentDamaged{key.uuid, key.generation, reason}] {
      if (session_) link_->Send(damaged);
    });
  };
  hooks.on_ended = [this](std::uint64_t connection, std::uint64_t attachment) {
    loop_.Post([this, connection, attachment] { clients_->OnEnded(connection, attachment); });
  };
  service_ = std::make_unique<Service>(std::move(service), std::move(hooks));
  clients_ = std::make_unique<LocalClients>(
      loop_, *service_, options_.seed,
      LocalClients::Hooks{[this](const wire::NamFromLocal& request) { return Relay(request); },
                          [this] { return link_->full(); },
                          [this](wire::NamLocalGone gone) { OnLocalGone(gone); },
                          [this](NamClientId client) { OnLocalHello(client); }, [this] { OnFilePassed(); }});
  link_ = std::make_unique<Link>(
      loop_, options_.link,
      Link::Handlers{[this] { OnLinkUp(); }, [this](const wire::Frame& frame) { OnFrame(frame); },
                     [this](const Status& why) { OnLinkDown(why); }, [this] { clients_->OnRelayDrained(); }});
  worker_ = std::make_unique<Worker>(loop_);
}

NamDaemon::~NamDaemon() {
  worker_.reset();
  loop_.Cancel(trim_timer_);
  for (const auto& [id, process] : owners_) loop_.Unwatch(process.pidfd.get());
  if (BusGuard::wake_fd() >= 0) loop_.Unwatch(BusGuard::wake_fd());
}

Status NamDaemon::Load() {
  MSA_RETURN_IF_ERROR(BusGuard::Install());
  MSA_RETURN_IF_ERROR(loop_.Watch(BusGuard::wake_fd(), EPOLLIN, [this](std::uint32_t) {
    BusGuard::Acknowledge();
    service_->LookForDamage();
  }));
  MSA_ASSIGN_OR_RETURN(ExtentStore::Listing listing, store_->Scan());
  for (const std::string& name : listing.foreign)
    spdlog::warn("'{}/{}' is no extent and is left alone; move it elsewhere", store_->directory(), name);
  for (ExtentStore::Found& found : listing.extents) {
    const bool pending = found.stage == Stage::kPending;
    if (found.file == nullptr) {
      spdlog::log(pending ? spdlog::level::info : spdlog::level::err, "extent {} is broken: {}",
                  ToText(found.key), found.fault);
      service_->Put(found.key, pending ? State::kPending : State::kDamaged, nullptr, {0, Bytes(found.bytes)});
      continue;
    }
    allocated_ += found.file->file_bytes();
    const ExtentShape shape = found.file->shape();
    service_->Put(found.key, pending ? State::kPending : State::kCommitted, std::move(found.file), shape);
  }
  for (const Service::Watched& watched : service_->RestoreOwners())
    if (!WatchOwner(watched).ok()) service_->OwnerProcessGone(watched.extent, watched.owner);
  spdlog::info("{} extents of {} bytes in '{}'", listing.extents.size(), allocated_, store_->directory());
  return Status::Ok();
}

Status NamDaemon::WatchOwner(const Service::Watched& watched) {
  MSA_ASSIGN_OR_RETURN(ProcessHandle process, OpenProcess(watched.pid));
  const std::uint64_t id = next_owner_++;
  const int fd = process.pidfd.get();
  owners_.emplace(id, std::move(process));
  return loop_.Watch(fd, EPOLLIN, [this, id, watched](std::uint32_t) {
    loop_.Unwatch(owners_.at(id).pidfd.get());
    owners_.erase(id);
    service_->OwnerProcessGone(watched.extent, watched.owner);
  });
}

void NamDaemon::UseFabric(nam::FabricServer* fabric) {
  fabric_ = fabric;
  if (fabric != nullptr) service_->SetFabric(fabric);
  link_->Send(Hello());  // nowhere without a link; then the next one tells it
}

void NamDaemon::EndFabric() {
  service_->SetFabric(nullptr);
  fabric_ = nullptr;
}

Status NamDaemon::Start() {
  MSA_RETURN_IF_ERROR(clients_->Listen(options_.socket, options_.socket_mode));
  link_->Start();
  return Status::Ok();
}

wire::NamdHello NamDaemon::Hello() const {
  wire::NamdHello hello;
  hello.extents = service_->Reports();
  // An empty directory may serve any system.
  if (!hello.extents.empty()) hello.system = store_->Fact(kSystemFact).value_or(0);
  const std::uint64_t wanted = options_.capacity.value;
  const std::uint64_t missing = wanted > allocated_ ? wanted - allocated_ : 0;
  hello.capacity = Bytes(std::min(wanted, allocated_ + store_->Room(missing)));
  hello.backing = store_->directory();
  hello.socket = options_.socket;
  if (!fabric_) {
    hello.fabric_provider = wire::kNamFabricStarting;
  } else if (*fabric_ != nullptr) {
    hello.fabric_provider = (*fabric_)->provider();
    hello.fabric_address = (*fabric_)->address();
  }
  hello.pid = static_cast<std::uint32_t>(::getpid());
  hello.connections = clients_->Connections();
  return hello;
}

void NamDaemon::OnLinkUp() {
  const wire::NamdHello hello = Hello();
  if (hello.capacity < options_.capacity)
    spdlog::warn("'{}' has room for {} bytes of the topology's {}", hello.backing, hello.capacity,
                 options_.capacity);
  link_->Send(hello);
}

void NamDaemon::OnLinkDown(const Status& why) {
  spdlog::info("session with the controller is over: {}", why.message());
  session_ = false;
  free_requests_.clear();  // asked again in the next one
  waiting_allocates_.clear();
  clients_->OnSessionLost();
}

template <class M>
bool NamDaemon::Take(const wire::Frame& frame) {
  if (frame.type != M::kType) return false;
  auto message = wire::Decode<M>(frame.payload);
  if (message.ok())
    On(std::move(*message));
  else
    spdlog::error("from the controller: {}", message.status().message());
  return true;
}

void NamDaemon::OnFrame(const wire::Frame& frame) {
  if (Take<wire::NamdWelcome>(frame) || Take<wire::NamdQuit>(frame)) return;
  if (!session_)
    return spdlog::error("message type {:#06x} before the controller's welcome is ignored", frame.type);
  if (Take<wire::NamToLocal>(frame) || Take<wire::NamExtentAllocate>(frame) ||
      Take<wire::NamExtentCommit>(frame) || Take<wire::NamExtentFree>(frame) ||
      Take<wire::NamRevoke>(frame) || Take<wire::NamScan>(frame))
    return;
  spdlog::error("message type {:#06x} of the controller is unknown to this NAM daemon", frame.type);
}

void NamDaemon::On(const wire::NamdQuit& quit) {
  options_.on_over(Error(Code::kFailedPrecondition, "controller refuses this NAM daemon: {}", quit.reason));
}

Status NamDaemon::Adopt(const wire::NamdWelcome& welcome) {
  const std::uint64_t own = store_->Fact(kSystemFact).value_or(0);
  if (own != 0 && own != welcome.system && !service_->Reports().empty())
    return Error(
        Code::kFailedPrecondition,
        "extents in '{}' are of system {:016x}, the controller's is {:016x}; start this daemon with the "
        "system to which they belong, or with another --backing",
        store_->directory(), own, welcome.system);
  return store_->SetFact(kSystemFact, welcome.system);
}

void NamDaemon::On(const wire::NamdWelcome& welcome) {
  if (const Status status = Adopt(welcome); !status.ok()) return options_.on_over(status);
  const auto asked = service_->Welcome(welcome);
  if (!asked.ok()) return options_.on_over(asked.status());
  session_ = true;
  ++sessions_;
  spdlog::info("session with the controller: {} leases, {} extents", welcome.leases.size(),
               welcome.extents.size());
  for (const wire::NamLocalGone& gone : std::exchange(unsent_gone_, {})) link_->Send(gone);
  for (const wire::NamExtentDamaged& damaged : asked->damaged) {
    const ExtentKey key{damaged.uuid, damaged.generation};
    spdlog::error("extent {} is damaged: {}", ToText(key), damaged.reason);
    service_->MarkDamaged(key, damaged.reason);
    link_->Send(damaged);
  }
  for (const ExtentKey& key : asked->unknown)
    spdlog::warn("extent {} belongs to no region; 'msactl region fsck --repair' frees it", ToText(key));
  for (const ExtentKey& key : asked->commit) Commit(key);
  for (const ExtentKey& key : asked->free)
    if (!making_.contains(key)) service_->Free(key);
}

void NamDaemon::Done(std::uint64_t request, const Status& status) {
  if (session_)
    link_->Send(wire::NamExtentDone{request, static_cast<std::uint8_t>(status.code()), status.message()});
}

Status NamDaemon::Relay(const wire::NamFromLocal& request) {
  if (!session_)
    return Error(Code::kUnavailable, "NAM daemon of {} has no session with the controller; try again",
                 options_.node);
  link_->Send(request);
  return Status::Ok();
}

// To say of one that has connected again that it went would end what it has taken since.
void NamDaemon::OnLocalHello(NamClientId client) {
  for (wire::NamLocalGone& gone : unsent_gone_)
    if (gone.client == client) gone.client = NamClientId();
}

// Who has got a file may make it longer, as long as he has it and without anybody being told.
void NamDaemon::OnFilePassed() {
  if (is_trimming_) return;
  is_trimming_ = true;
  trim_timer_ = loop_.After(kTrimPause, [this] {
    service_->TrimFiles();
    is_trimming_ = false;
    if (!clients_->empty()) OnFilePassed();
  });
}

void NamDaemon::OnLocalGone(wire::NamLocalGone gone) {
  if (session_) return link_->Send(gone);
  unsent_gone_.push_back(gone);
}

}  // namespace msa::namd
