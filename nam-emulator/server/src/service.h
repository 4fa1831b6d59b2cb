#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "msa/base/mutex.h"
#include "msa/base/wire.h"
#include "msa/nam/fabric_server.h"
#include "msa/namd/book.h"

#include "extent_file.h"
#include "owner_notes.h"

namespace msa::namd {

// namd's extents and attachments, and the answers to 0x08xx, the same over a socket and over the fabric. Any
// thread: the loop's and the fabric's both serve. What it answers from is under one lock, which is never held
// while the fabric is called, a file is made or anything is waited for.
class Service {
 public:
  struct Options {
    std::string node;
    Hmac hmac;
    std::string notes;  // directory of OwnerNotes
    std::function<std::uint64_t()> random;
  };
  // Called without the lock, on any thread.
  struct Hooks {
    std::function<void(const ExtentKey&)> on_removable;  // nobody maps it any more
    std::function<void(const ExtentKey&, const std::string& reason)> on_damaged;
    // The lease of what this connection has mapped has ended.
    std::function<void(std::uint64_t connection, std::uint64_t attachment)> on_ended;
  };
  Service(Options options, Hooks hooks);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Before the first attach over it; it stays until after the service, or until SetFabric(nullptr).
  void SetFabric(nam::FabricServer* fabric) MSA_EXCLUDES(mu_);

  struct Peer {
    Caller caller;
    pid_t pid = 0;  // 0: not on this host
  };
  struct Answer {
    wire::Frame frame;
    UniqueFd file;  // goes with it
  };
  // Answers a request of 0x08xx. Never blocks.
  Answer Serve(const Peer& peer, const wire::Frame& request) MSA_EXCLUDES(mu_);
  // The process at this connection is that client: what it has over the fabric ends with the connection, too.
  // False: the client is another user's.
  bool ClientHello(const Peer& peer, NamClientId client) MSA_EXCLUDES(mu_);
  void ConnectionClosed(std::uint64_t connection) MSA_EXCLUDES(mu_);

  // An extent with its file; null: broken, `shape` is what is known of it.
  void Put(const ExtentKey& key, wire::NamExtentState state, std::shared_ptr<ExtentFile> file,
           ExtentShape shape) MSA_EXCLUDES(mu_);
  void MarkDamaged(const ExtentKey& key, const std::string& reason) MSA_EXCLUDES(mu_);
  std::shared_ptr<ExtentFile> FileOf(const ExtentKey& key) const MSA_EXCLUDES(mu_);
  std::optional<wire::NamExtentState> StateOf(const ExtentKey& key) const MSA_EXCLUDES(mu_);
  void Commit(const ExtentKey& key) MSA_EXCLUDES(mu_);
  // on_removable follows, perhaps at once.
  void Free(const ExtentKey& key) MSA_EXCLUDES(mu_);
  void Remove(const ExtentKey& key) MSA_EXCLUDES(mu_);
  std::vector<wire::NamExtentReport> Reports() const MSA_EXCLUDES(mu_);

  // Without `ended`, which is carried out.
  Result<Reconciliation> Welcome(const wire::NamdWelcome& welcome) MSA_EXCLUDES(mu_);
  void Revoke(const wire::NamRevoke& revoke) MSA_EXCLUDES(mu_);

  // Takes over the owners that a namd before this one had; returns those whose process is to be watched.
  struct Watched {
    ExtentKey extent;
    std::uint32_t owner = 0;
    pid_t pid = 0;
  };
  std::vector<Watched> RestoreOwners() MSA_EXCLUDES(mu_);
  void OwnerProcessGone(const ExtentKey& key, std::uint32_t owner) MSA_EXCLUDES(mu_);
  // Takes back what holders of writable descriptors have added to files beyond what is charged.
  void TrimFiles() MSA_EXCLUDES(mu_);
  // After BusGuard's descriptor was readable: reports what was damaged.
  void LookForDamage() MSA_EXCLUDES(mu_);

  Status CheckInvariants() const MSA_EXCLUDES(mu_);

 private:
  struct Later {  // what is done without the lock
    std::vector<std::uint64_t> keys;
    std::vector<std::shared_ptr<ExtentFile>> files;  // outlive their keys
    std::vector<Outcome::Told> told;
    std::vector<ExtentKey> removable;
    std::vector<std::pair<ExtentKey, std::string>> damaged;
  };
  struct LocalClient {
    std::uint64_t connection = 0;
    std::uint32_t uid = 0;
    pid_t pid = 0;
  };
  using Files = std::map<ExtentKey, std::shared_ptr<ExtentFile>>;

  template <class M>
  Answer ServeAs(const Peer& peer, const wire::Frame& request);
  Result<Answer> On(const Peer& peer, const wire::NamAttach& attach) MSA_EXCLUDES(mu_);
  Result<Answer> On(const Peer& peer, const wire::NamDetach& detach) MSA_EXCLUDES(mu_);
  Result<Answer> On(const Peer& peer, const wire::NamLock& lock) MSA_EXCLUDES(mu_);
  Result<Answer> On(const Peer& peer, const wire::NamAtomic& atomic) MSA_EXCLUDES(mu_);
  Status RegisterKey(const Grant& grant, const std::shared_ptr<ExtentFile>& file, wire::NamAttached& answer)
      MSA_EXCLUDES(mu_);
  void Note(const Peer& peer, const Grant& grant, ExtentFile& file) MSA_REQUIRES(mu_);
  void Apply(Outcome outcome, Later& later) MSA_REQUIRES(mu_);
  void Damage(const ExtentKey& key, const std::string& reason, Later& later) MSA_REQUIRES(mu_);
  void Finish(Later later) MSA_EXCLUDES(mu_);

  const Options options_;
  const Hooks hooks_;
  mutable Mutex mu_;
  Book book_ MSA_GUARDED_BY(mu_);
  Files files_ MSA_GUARDED_BY(mu_);
  OwnerNotes notes_ MSA_GUARDED_BY(mu_);
  std::map<NamClientId, LocalClient> local_clients_ MSA_GUARDED_BY(mu_);        // by ClientHello
  std::map<std::uint64_t, NamClientId> local_connections_ MSA_GUARDED_BY(mu_);  // theirs
  nam::FabricServer* fabric_ MSA_GUARDED_BY(mu_) = nullptr;
  // Of registered keys: the memory stays until they are unregistered.
  std::map<std::uint64_t, std::shared_ptr<ExtentFile>> registered_ MSA_GUARDED_BY(mu_);
};

}  // namespace msa::namd
