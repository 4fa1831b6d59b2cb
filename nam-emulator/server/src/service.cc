#include "service.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "msa/nam/locks.h"

namespace msa::namd {

Service::Service(Options options, Hooks hooks)
    : options_(std::move(options)),
      hooks_(std::move(hooks)),
      book_(options_.node, options_.hmac),
      notes_(options_.notes) {}

Service::~Service() { SetFabric(nullptr); }

void Service::SetFabric(nam::FabricServer* fabric) {
  Later later;
  {
    MutexLock lock(mu_);
    if (fabric != nullptr) {
      fabric_ = fabric;
      return;
    }
    for (auto& [key, file] : registered_) {
      later.keys.push_back(key);
      later.files.push_back(std::move(file));
    }
    registered_.clear();
  }
  Finish(std::move(later));
  MutexLock lock(mu_);
  fabric_ = nullptr;
}

void Service::Put(const ExtentKey& key, wire::NamExtentState state, std::shared_ptr<ExtentFile> file,
                  ExtentShape shape) {
  MutexLock lock(mu_);
  book_.Put(key, state, shape);
  files_[key] = std::move(file);
}

void Service::MarkDamaged(const ExtentKey& key, const std::string& reason) {
  Later later;
  {
    MutexLock lock(mu_);
    Damage(key, reason, later);
  }
  Finish(std::move(later));
}

std::shared_ptr<ExtentFile> Service::FileOf(const ExtentKey& key) const {
  MutexLock lock(mu_);
  const auto it = files_.find(key);
  return it == files_.end() ? nullptr : it->second;
}

std::optional<wire::NamExtentState> Service::StateOf(const ExtentKey& key) const {
  MutexLock lock(mu_);
  return book_.StateOf(key);
}

void Service::Commit(const ExtentKey& key) {
  MutexLock lock(mu_);
  book_.Commit(key);
}

void Service::Free(const ExtentKey& key) {
  Later later;
  {
    MutexLock lock(mu_);
    Apply(book_.Free(key), later);
  }
  Finish(std::move(later));
}

void Service::Remove(const ExtentKey& key) {
  std::shared_ptr<ExtentFile> file;  // unmapped without the lock
  MutexLock lock(mu_);
  book_.Remove(key);
  notes_.Remove(key);
  if (const auto it = files_.find(key); it != files_.end()) {
    file = std::move(it->second);
    files_.erase(it);
  }
}

std::vector<wire::NamExtentReport> Service::Reports() const {
  MutexLock lock(mu_);
  return book_.Reports();
}

Result<Reconciliation> Service::Welcome(const wire::NamdWelcome& welcome) {
  Later later;
  Result<Reconciliation> result = Status::Ok();
  {
    MutexLock lock(mu_);
    result = book_.Welcome(welcome);
    if (result.ok()) Apply(std::exchange(result->ended, {}), later);
  }
  Finish(std::move(later));
  return result;
}

void Service::Revoke(const wire::NamRevoke& revoke) {
  Later later;
  {
    MutexLock lock(mu_);
    Apply(book_.Revoke(revoke), later);
  }
  Finish(std::move(later));
}

bool Service::ClientHello(const Peer& peer, NamClientId client) {
  MutexLock lock(mu_);
  const std::uint64_t connection = peer.caller.connection;
  const auto known = local_clients_.find(client);
  if (known != local_clients_.end() && known->second.uid != peer.caller.uid) return false;
  // One process, one client; its newest connection is the one that tells.
  if (!local_connections_.try_emplace(connection, client).second) return false;
  local_clients_[client] = {connection, peer.caller.uid, peer.pid};
  for (const auto& [extent, owner] : book_.RemoteOwners(client, peer.caller.uid))
    notes_.Write(extent, {owner, peer.pid, StartOfProcess(peer.pid)});
  return true;
}

void Service::ConnectionClosed(std::uint64_t connection) {
  Later later;
  {
    MutexLock lock(mu_);
    Apply(book_.ConnectionClosed(connection), later);
    if (const auto hello = local_connections_.extract(connection); !hello.empty()) {
      const auto client = local_clients_.find(hello.mapped());
      if (client != local_clients_.end() && client->second.connection == connection) {
        Apply(book_.ClientGone(client->first, client->second.uid), later);
        local_clients_.erase(client);
      }
    }
  }
  Finish(std::move(later));
}

std::vector<Service::Watched> Service::RestoreOwners() {
  std::vector<Watched> watched;
  Later later;
  {
    MutexLock lock(mu_);
    std::vector<ExtentKey> kept;
    for (const auto& [key, file] : files_) {
      if (file == nullptr) continue;
      kept.push_back(key);
      nam::OwnerSet held;
      for (const OwnerNotes::Note& note : notes_.Read(key)) {
        if (!book_.Restore(key, note.owner).ok()) continue;
        held.Add(note.owner.owner);
        if (note.pid == 0) continue;  // its lease tells
        if (StartOfProcess(note.pid) == note.start)
          watched.push_back({key, note.owner.owner, note.pid});
        else
          Apply(book_.OwnerProcessGone(key, note.owner.owner), later);
      }
      // Nobody else will: what a number holds that nobody has been given, would be locked for good.
      for (std::uint32_t slot = 0; slot < file->shape().segments; ++slot)
        nam::FreeLocksOfOthers(file->lock(slot), held);
    }
    notes_.RemoveOthers(kept);
  }
  Finish(std::move(later));
  return watched;
}

void Service::OwnerProcessGone(const ExtentKey& key, std::uint32_t owner) {
  Later later;
  {
    MutexLock lock(mu_);
    Apply(book_.OwnerProcessGone(key, owner), later);
  }
  Finish(std::move(later));
}

void Service::TrimFiles() {
  std::vector<std::pair<ExtentKey, std::shared_ptr<ExtentFile>>> files;
  {
    MutexLock lock(mu_);
    files.assign(files_.begin(), files_.end());
  }
  for (const auto& [key, file] : files)
    if (file != nullptr && file->Trim())
      spdlog::warn("extent {} was made longer by a process that has it mapped; cut to its {} bytes",
                   ToText(key), file->file_bytes());
}

void Service::LookForDamage() {
  Later later;
  {
    MutexLock lock(mu_);
    for (const auto& [key, file] : files_)
      if (file != nullptr)
        if (const std::string reason = file->Damage(); !reason.empty()) Damage(key, reason, later);
  }
  Finish(std::move(later));
}

Status Service::CheckInvariants() const {
  MutexLock lock(mu_);
  return book_.CheckInvariants();
}

void Service::Damage(const ExtentKey& key, const std::string& reason, Later& later) {
  if (!book_.MarkDamaged(key, reason)) return;
  spdlog::error("extent {} is damaged: {}", ToText(key), reason);
  later.damaged.emplace_back(key, reason);
}

void Service::Apply(Outcome outcome, Later& later) {
  for (const OwnerEnd& end : outcome.owners) {
    const auto it = files_.find(end.extent);
    if (it == files_.end() || it->second == nullptr) continue;
    ExtentFile& file = *it->second;
    // Its process looks there before it takes a lock, and before those that it had are free.
    if (end.what == OwnerEnd::What::kLocks) file.owner(end.owner).process.store(nam::kRevokedProcess);
    for (std::uint32_t slot = 0; slot < file.shape().segments; ++slot)
      nam::FreeLocksOf(file.lock(slot), end.owner);
    if (end.what != OwnerEnd::What::kNumber) continue;
    // Last: as long as it is noted, a namd that is started anew knows whose locks to free.
    file.owner(end.owner).process.store(0);
    notes_.Clear(end.extent, end.owner);
  }
  for (const std::uint64_t key : outcome.keys)
    if (const auto it = registered_.find(key); it != registered_.end()) {
      later.keys.push_back(key);
      later.files.push_back(std::move(it->second));
      registered_.erase(it);
    }
  later.told.insert(later.told.end(), outcome.told.begin(), outcome.told.end());
  later.removable.insert(later.removable.end(), outcome.removable.begin(), outcome.removable.end());
}

void Service::Finish(Later later) {
  if (!later.keys.empty()) {
    nam::FabricServer* fabric = nullptr;
    {
      MutexLock lock(mu_);
      fabric = fabric_;
    }
    for (const std::uint64_t key : later.keys)
      if (fabric != nullptr) fabric->Unregister(key);
    later.files.clear();
  }
  for (const Outcome::Told& told : later.told) hooks_.on_ended(told.connection, told.attachment);
  for (const auto& [key, reason] : later.damaged) hooks_.on_damaged(key, reason);
  for (const ExtentKey& key : later.removable) hooks_.on_removable(key);
}

}  // namespace msa::namd
