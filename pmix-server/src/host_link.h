#pragma once
// What libpmix's threads, replies on any thread and the loop's thread share of one PmixHost. It outlives the
// host as long as a reply does.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <pmix_common.h>
#include <pmix_server.h>

#include "msa/base/mutex.h"
#include "msa/pmix/pmix_host.h"

namespace msa::pmix {

struct HostLink {
  explicit HostLink(EventLoop& event_loop) : loop(event_loop) {}

  EventLoop& loop;  // used by libpmix's thread and the loop's while the host lives
  // Loop's thread; empty once the host is gone.
  std::function<void(Upcall)> on_upcall;
  std::function<void(ClientEvent)> on_event;
  std::function<void(ClientLog)> on_log;
  // Names of the registered namespaces. Loop's thread.
  std::function<std::vector<std::string>()> namespaces;

  Mutex mu;
  bool open MSA_GUARDED_BY(mu) = true;  // libpmix may be called
};
using HostLinkPtr = std::shared_ptr<HostLink>;

// The one host that libpmix calls: set before PMIx_server_init, cleared after PMIx_server_finalize.
void SetCurrentHost(HostLinkPtr link);

// The callbacks handed to PMIx_server_init.
pmix_server_module_t* ServerModule();

// One call of libpmix that ends in a pmix_op_cbfunc_t: `start` gets the callback and its data and returns
// what libpmix returned; `then` runs on the loop's thread, once, unless the host is gone by then.
void RunOperation(const HostLinkPtr& link, const std::function<pmix_status_t(pmix_op_cbfunc_t, void*)>& start,
                  std::function<void(pmix_status_t)> then);

// The same for PMIx_server_dmodex_request.
void RequestModex(const HostLinkPtr& link, const pmix_proc_t& proc,
                  std::function<void(PmixStatus, std::string)> then);

}  // namespace msa::pmix
