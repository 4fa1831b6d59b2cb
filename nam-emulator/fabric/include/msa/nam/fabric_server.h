#pragma once
// namd's side of the fabric: one endpoint, remote access to registered memory, and requests that namd
// answers. One progress thread of its own, which sleeps when nothing comes.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/base/wire.h"

namespace msa::nam {

struct FabricServerOptions {
  std::string provider;    // libfabric's name; empty: the best that is there (verbs, cxi, else tcp;ofi_rxm)
  std::string host;        // address or interface to listen on; empty: the first that libfabric finds
  std::uint16_t port = 0;  // 0: any. The one in use is in address()
  // Told what was dropped: garbage, answers that nobody took. On the progress thread; must not block.
  std::function<void(const std::string&)> log;
};

// A registered piece of memory, as a client must name it.
struct FabricKey {
  std::uint64_t key = 0;   // random
  std::uint64_t base = 0;  // added to an offset (FI_MR_VIRT_ADDR), else 0
};

class FabricServer {
 public:
  // On the progress thread: answers a request (0x08xx, id) of the endpoint `from` (its fi_getname bytes; what
  // the transport says, not what the message claims, where the provider tells it). Must not block.
  using Handler = std::function<wire::Frame(const std::string& from, wire::Frame request)>;

  // kUnavailable: no provider of that name, or none at all, or none that passes the test of what is relied on
  // (a write, a read, a refusal, a request); says which there are. kInvalidArgument: no such host, or a
  // provider that is known to lose transfers. Takes a second and more. Calls Prepare.
  static Result<std::unique_ptr<FabricServer>> Start(FabricServerOptions options, Handler handler);
  // To be called before, while the process has one thread: sets libfabric's FI_OFI_RXM_CM_PROGRESS_INTERVAL,
  // unless that is set, so that connecting takes 1 ms rather than 20, and lets the libraries that are loaded
  // with libfabric leave the process's signal handlers alone.
  static void Prepare();
  virtual ~FabricServer() = default;

  virtual const std::string& provider() const = 0;
  virtual const std::string& address() const = 0;  // fi_getname

  enum class Access { kRead, kReadWrite };
  // Any thread, the handler too. The memory must stay until Unregister has returned; from then on the key is
  // refused, and a transfer that had begun touches it no more. For memory that is not mapped shared, or from
  // hugetlbfs, Unregister has to cut all clients' connections over tcp;ofi_rxm, so that they connect again.
  virtual Result<FabricKey> Register(void* base, Bytes bytes, Access access) = 0;
  virtual void Unregister(std::uint64_t key) = 0;
};

}  // namespace msa::nam
