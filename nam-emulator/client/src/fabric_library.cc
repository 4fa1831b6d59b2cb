#include "fabric_library.h"

#include <dlfcn.h>
#include <msa_nam.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <map>
#include <utility>

#include "msa/base/mutex.h"

namespace msa::nam {
namespace {

struct Fabric {
  Mutex mu;
  // A forked child uses none of its parent's: keyed by process.
  std::map<std::pair<pid_t, std::string>, FabricClient*> clients MSA_GUARDED_BY(mu);
  std::map<std::pair<FabricClient*, std::string>, std::weak_ptr<FabricPeer>> peers MSA_GUARDED_BY(mu);
};
// Never destroyed, clients neither: threads may outlive static objects.
Fabric& TheFabric() {
  static auto* const fabric = new Fabric;
  return *fabric;
}

// What happens on signals is the program's. Libraries that libfabric loads may install handlers of their own
// (libinfinipath of provider psm: exit(1) on INT, TERM, HUP, SEGV and others); what they changed is undone.
// Until then this thread takes no signals, nor do threads that they start.
class SignalKeeper {
 public:
  SignalKeeper() {
    sigset_t most;
    sigfillset(&most);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&most, fault);
    pthread_sigmask(SIG_BLOCK, &most, &mask_);
    for (int i = 1; i < NSIG; ++i) known_[i] = sigaction(i, nullptr, &before_[i]) == 0;
  }
  ~SignalKeeper() {
    for (int i = 1; i < NSIG; ++i) {
      struct sigaction now {};
      if (known_[i] && sigaction(i, nullptr, &now) == 0 && now.sa_handler != before_[i].sa_handler)
        sigaction(i, &before_[i], nullptr);
    }
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  SignalKeeper(const SignalKeeper&) = delete;
  SignalKeeper& operator=(const SignalKeeper&) = delete;

 private:
  std::array<struct sigaction, NSIG> before_{};
  std::array<bool, NSIG> known_{};
  sigset_t mask_{};
};

std::string LibraryPath() {
  Dl_info info{};
  const std::string name = "libmsanam-fabric.so";
  if (dladdr(reinterpret_cast<void*>(&TheFabric), &info) == 0 || info.dli_fname == nullptr) return name;
  const std::string self = info.dli_fname;
  const std::size_t slash = self.rfind('/');
  return slash == std::string::npos ? name : self.substr(0, slash + 1) + name;
}

Result<FabricOpen> Load() {
  const std::string path = LibraryPath();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error(Code::kUnavailable, "fabric library cannot be loaded: {}; install it beside libmsanam.so",
                 dlerror());
  void* symbol = dlsym(library, MSA_NAM_FABRIC_SYMBOL);
  if (symbol == nullptr)
    return Error(Code::kInternal, "{} has no symbol {}; use one msa throughout", path, MSA_NAM_FABRIC_SYMBOL);
  return reinterpret_cast<FabricOpen>(symbol);
}

}  // namespace

Result<FabricClient*> OpenFabric(const std::string& provider) {
  Fabric& fabric = TheFabric();
  const MutexLock lock(fabric.mu);
  FabricClient*& client = fabric.clients[{getpid(), provider}];
  if (client != nullptr) return client;
  const SignalKeeper keeper;  // open asks libfabric for its providers: all of them are loaded then
  MSA_ASSIGN_OR_RETURN(const FabricOpen open, Load());
  Status failed;
  client = open(kFabricAbi, provider.c_str(), &failed);
  if (client == nullptr)
    return failed.ok() ? Status(Code::kInternal, "fabric library gave no reason") : failed;
  return client;
}

Result<std::shared_ptr<FabricPeer>> ConnectFabric(const std::string& provider, const std::string& address) {
  MSA_ASSIGN_OR_RETURN(FabricClient * client, OpenFabric(provider));
  Fabric& fabric = TheFabric();
  const MutexLock lock(fabric.mu);
  std::erase_if(fabric.peers, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<FabricPeer>& known = fabric.peers[{client, address}];
  std::shared_ptr<FabricPeer> peer = known.lock();
  if (peer && !peer->broken()) return peer;
  MSA_ASSIGN_OR_RETURN(std::unique_ptr<FabricPeer> fresh, client->Connect(address));
  peer = std::move(fresh);
  known = peer;
  return peer;
}

}  // namespace msa::nam
