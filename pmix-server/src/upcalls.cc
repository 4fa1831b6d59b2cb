// The callbacks that libpmix calls on its own thread. Each copies its arguments, posts to the loop and
// returns; the answer goes back through libpmix's callback function when the Reply is called. PMIx
// Standard 4.1, chapter 16.

#include <cstdlib>
#include <cstring>
#include <utility>

#include "host_link.h"
#include "pmix_values.h"
#include "spawn_request.h"

namespace msa::pmix {
namespace {

HostLinkPtr g_current;

// Calls libpmix back exactly once: with the answer, or with PMIX_ERROR when the last copy of its reply goes
// unused. After the host is gone it stays silent.
template <class... Results>
class Answer {
 public:
  using Deliver = std::function<void(pmix_status_t, Results...)>;
  Answer(HostLinkPtr link, Deliver deliver) : link_(std::move(link)), deliver_(std::move(deliver)) {}
  ~Answer() { Give(PMIX_ERROR, Results()...); }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void Give(pmix_status_t status, Results... results) {
    if (given_.exchange(true)) return;
    MutexLock lock(link_->mu);
    if (link_->open) deliver_(status, std::move(results)...);
  }

 private:
  HostLinkPtr link_;
  Deliver deliver_;
  std::atomic<bool> given_ = false;
};

template <class... Results>
std::function<void(PmixStatus, Results...)> MakeReply(const HostLinkPtr& link,
                                                      typename Answer<Results...>::Deliver deliver) {
  auto answer = std::make_shared<Answer<Results...>>(link, std::move(deliver));
  return [answer](PmixStatus status, Results... results) { answer->Give(status, std::move(results)...); };
}

StatusReply ReplyTo(const HostLinkPtr& link, pmix_op_cbfunc_t callback, void* cbdata) {
  return MakeReply<>(link, [callback, cbdata](pmix_status_t status) {
    if (callback != nullptr) callback(status, cbdata);
  });
}

void FreeString(void* data) { delete static_cast<std::string*>(data); }

DataReply ReplyTo(const HostLinkPtr& link, pmix_modex_cbfunc_t callback, void* cbdata) {
  return MakeReply<std::string>(link, [callback, cbdata](pmix_status_t status, std::string data) {
    if (callback == nullptr) return;
    if (status != PMIX_SUCCESS || data.empty()) {
      callback(status, nullptr, 0, cbdata, nullptr, nullptr);
      return;
    }
    auto* kept = new std::string(std::move(data));
    callback(status, kept->data(), kept->size(), cbdata, FreeString, kept);
  });
}

using Values = std::vector<std::pair<Proc, KeyValue>>;

void DeliverValues(pmix_status_t status, const Values& values, pmix_lookup_cbfunc_t callback, void* cbdata) {
  std::vector<pmix_pdata_t> data;
  data.reserve(values.size());
  for (const auto& [proc, value] : values) {
    const auto publisher = ToPmix(proc);
    auto unpacked = UnpackValue(value.packed_value);
    if (!publisher.ok() || !unpacked.ok()) {
      status = PMIX_ERR_UNPACK_FAILURE;
      continue;
    }
    pmix_pdata_t& item = data.emplace_back();
    std::memset(&item, 0, sizeof item);
    item.proc = *publisher;
    std::strncpy(item.key, value.key.c_str(), PMIX_MAX_KEYLEN);
    item.value = *unpacked;
  }
  // libpmix copies before it returns.
  callback(status, data.empty() ? nullptr : data.data(), data.size(), cbdata);
  for (pmix_pdata_t& item : data) PMIX_PDATA_DESTRUCT(&item);
}

void Post(const HostLinkPtr& link, Upcall upcall) {
  link->loop.Post([link, upcall = std::move(upcall)]() mutable {
    if (link->on_upcall) link->on_upcall(std::move(upcall));
  });
}

pmix_status_t OnConnected(const pmix_proc_t* proc, void*, pmix_info_t*, std::size_t,
                          pmix_op_cbfunc_t callback, void* cbdata) noexcept {
  Post(g_current, ClientConnected{FromPmix(*proc)});
  // libpmix 4.2 passes no callback here.
  if (callback == nullptr) return PMIX_SUCCESS;
  g_current->loop.Post([reply = ReplyTo(g_current, callback, cbdata)] { reply(PMIX_SUCCESS); });
  return PMIX_SUCCESS;
}

pmix_status_t OnFinalized(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t callback, void* cbdata) noexcept {
  Post(g_current, ClientFinalized{FromPmix(*proc), ReplyTo(g_current, callback, cbdata)});
  return PMIX_SUCCESS;
}

pmix_status_t OnAbort(const pmix_proc_t* proc, void*, int status, const char* message, pmix_proc_t* procs,
                      std::size_t count, pmix_op_cbfunc_t callback, void* cbdata) noexcept {
  Post(g_current, Aborted{FromPmix(*proc), status, message == nullptr ? "" : message, FromPmix(procs, count),
                          ReplyTo(g_current, callback, cbdata)});
  return PMIX_SUCCESS;
}

// Ranks of this node have died in the fence, or before it: those that are left hear of it.
DataReply WithLocalStatus(const pmix_info_t* infos, std::size_t ninfo, DataReply reply) {
  for (std::size_t i = 0; i < ninfo; ++i) {
    if (!HasKey(infos[i], PMIX_LOCAL_COLLECTIVE_STATUS) || infos[i].value.type != PMIX_STATUS) continue;
    const pmix_status_t local = infos[i].value.data.status;
    if (local == PMIX_SUCCESS) continue;
    return [local, reply = std::move(reply)](PmixStatus status, std::string data) {
      reply(status == PMIX_SUCCESS ? local : status, std::move(data));
    };
  }
  return reply;
}

pmix_status_t OnFence(const pmix_proc_t* procs, std::size_t count, const pmix_info_t* infos,
                      std::size_t ninfo, char* data, std::size_t size, pmix_modex_cbfunc_t callback,
                      void* cbdata) noexcept {
  // The blob is the host's to free (PMIx Standard 4.1, pmix_server_fencenb_fn_t).
  std::string blob = data == nullptr ? std::string() : std::string(data, size);
  std::free(data);
  Post(g_current, Fence{FromPmix(procs, count), std::move(blob), TimeoutOf(infos, ninfo),
                        WithLocalStatus(infos, ninfo, ReplyTo(g_current, callback, cbdata))});
  return PMIX_SUCCESS;
}

pmix_status_t OnDirectModex(const pmix_proc_t* proc, const pmix_info_t* infos, std::size_t ninfo,
                            pmix_modex_cbfunc_t callback, void* cbdata) noexcept {
  Post(g_current,
       DirectModex{FromPmix(*proc), TimeoutOf(infos, ninfo), ReplyTo(g_current, callback, cbdata)});
  return PMIX_SUCCESS;
}

// Directives of publish, lookup and unpublish; libpmix adds the caller's ids.
bool IsDirective(const pmix_info_t& info) {
  for (const char* key : {PMIX_RANGE, PMIX_PERSISTENCE, PMIX_TIMEOUT, PMIX_WAIT, PMIX_USERID, PMIX_GRPID})
    if (HasKey(info, key)) return true;
  return false;
}

Range RangeOf(const pmix_info_t* infos, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (HasKey(infos[i], PMIX_RANGE))
      return static_cast<Range>(NumberOf(infos[i].value).value_or(PMIX_RANGE_INVALID));
  return Range::kSession;
}

pmix_status_t OnPublish(const pmix_proc_t* proc, const pmix_info_t* infos, std::size_t ninfo,
                        pmix_op_cbfunc_t callback, void* cbdata) noexcept {
  Publish publish{.proc = FromPmix(*proc), .range = RangeOf(infos, ninfo)};
  for (std::size_t i = 0; i < ninfo; ++i) {
    if (HasKey(infos[i], PMIX_PERSISTENCE))
      publish.persistence = static_cast<Persistence>(NumberOf(infos[i].value).value_or(PMIX_PERSIST_INVALID));
    if (IsDirective(infos[i])) continue;
    std::string packed = PackValue(infos[i].value);
    if (packed.empty()) return PMIX_ERR_BAD_PARAM;
    publish.data.push_back({infos[i].key, std::move(packed)});
  }
  publish.reply = ReplyTo(g_current, callback, cbdata);
  Post(g_current, std::move(publish));
  return PMIX_SUCCESS;
}

pmix_status_t OnLookup(const pmix_proc_t* proc, char** keys, const pmix_info_t* infos, std::size_t ninfo,
                       pmix_lookup_cbfunc_t callback, void* cbdata) noexcept {
  Lookup lookup{.proc = FromPmix(*proc), .keys = StringsOf(keys), .range = RangeOf(infos, ninfo)};
  lookup.timeout_s = TimeoutOf(infos, ninfo);
  for (std::size_t i = 0; i < ninfo; ++i) {
    // A number says how many keys to wait for, 0 all; we always wait for all.
    if (HasKey(infos[i], PMIX_WAIT)) lookup.wait = infos[i].value.type != PMIX_BOOL || FlagOf(infos[i].value);
  }
  lookup.reply = MakeReply<Values>(g_current, [callback, cbdata](pmix_status_t status, Values values) {
    DeliverValues(status, values, callback, cbdata);
  });
  Post(g_current, std::move(lookup));
  return PMIX_SUCCESS;
}

pmix_status_t OnUnpublish(const pmix_proc_t* proc, char** keys, const pmix_info_t* infos, std::size_t ninfo,
                          pmix_op_cbfunc_t callback, void* cbdata) noexcept {
  Post(g_current, Unpublish{FromPmix(*proc), StringsOf(keys), RangeOf(infos, ninfo),
                            ReplyTo(g_current, callback, cbdata)});
  return PMIX_SUCCESS;
}

pmix_status_t OnSpawn(const pmix_proc_t* proc, const pmix_info_t* job_info, std::size_t ninfo,
                      const pmix_app_t* apps, std::size_t napps, pmix_spawn_cbfunc_t callback,
                      void* cbdata) noexcept {
  Spawn spawn = ParseSpawn(job_info, ninfo, apps, napps);
  spawn.proc = FromPmix(*proc);
  spawn.reply =
      MakeReply<std::string>(g_current, [callback, cbdata](pmix_status_t status, std::string nspace) {
        pmix_nspace_t name;
        std::memset(name, 0, sizeof name);
        std::strncpy(name, nspace.c_str(), PMIX_MAX_NSLEN);
        callback(status, name, cbdata);
      });
  Post(g_current, std::move(spawn));
  return PMIX_SUCCESS;
}

pmix_status_t OnConnect(const pmix_proc_t* procs, std::size_t count, const pmix_info_t* infos,
                        std::size_t ninfo, pmix_op_cbfunc_t callback, void* cbdata) noexcept {
  Post(g_current,
       Connect{FromPmix(procs, count), TimeoutOf(infos, ninfo), ReplyTo(g_current, callback, cbdata)});
  return PMIX_SUCCESS;
}

pmix_status_t OnDisconnect(const pmix_proc_t* procs, std::size_t count, const pmix_info_t* infos,
                           std::size_t ninfo, pmix_op_cbfunc_t callback, void* cbdata) noexcept {
  Post(g_current,
       Disconnect{FromPmix(procs, count), TimeoutOf(infos, ninfo), ReplyTo(g_current, callback, cbdata)});
  return PMIX_SUCCESS;
}

// libpmix keeps the registrations of its clients itself; the job daemon sends all that it knows.
pmix_status_t OnRegisterEvents(pmix_status_t*, std::size_t, const pmix_info_t*, std::size_t,
                               pmix_op_cbfunc_t callback, void* cbdata) noexcept {
  g_current->loop.Post([reply = ReplyTo(g_current, callback, cbdata)] { reply(PMIX_SUCCESS); });
  return PMIX_SUCCESS;
}

pmix_status_t OnDeregisterEvents(pmix_status_t*, std::size_t, pmix_op_cbfunc_t callback,
                                 void* cbdata) noexcept {
  g_current->loop.Post([reply = ReplyTo(g_current, callback, cbdata)] { reply(PMIX_SUCCESS); });
  return PMIX_SUCCESS;
}

pmix_status_t OnNotifyEvent(pmix_status_t code, const pmix_proc_t* source, pmix_data_range_t range,
                            pmix_info_t* infos, std::size_t ninfo, pmix_op_cbfunc_t callback,
                            void* cbdata) noexcept {
  ClientEvent event{.event = code, .range = static_cast<Range>(range)};
  if (source != nullptr) event.source = FromPmix(*source);
  for (std::size_t i = 0; i < ninfo; ++i) {
    const pmix_value_t& value = infos[i].value;
    if (HasKey(infos[i], PMIX_EVENT_AFFECTED_PROC) && value.type == PMIX_PROC)
      event.affected.push_back(FromPmix(*value.data.proc));
    if (HasKey(infos[i], PMIX_EVENT_AFFECTED_PROCS) && value.type == PMIX_DATA_ARRAY &&
        value.data.darray != nullptr && value.data.darray->type == PMIX_PROC)
      for (Proc& proc :
           FromPmix(static_cast<pmix_proc_t*>(value.data.darray->array), value.data.darray->size))
        event.affected.push_back(std::move(proc));
  }
  const bool stays_here = event.range == Range::kLocal || event.range == Range::kProcLocal;
  g_current->loop.Post(
      [link = g_current, event = std::move(event), stays_here, reply = ReplyTo(g_current, callback, cbdata)] {
        if (!stays_here && !link->on_event) return reply(PMIX_ERR_NOT_SUPPORTED);
        if (!stays_here) link->on_event(event);
        reply(PMIX_SUCCESS);
      });
  return PMIX_SUCCESS;
}

// One key that a client asked for, with the namespace that the query is about.
struct QueryItem {
  std::string key;
  std::string nspace;
};

struct QueryResult {
  InfoList infos;
};

void FreeQueryResult(void* data) { delete static_cast<QueryResult*>(data); }

// Namespaces of this job and whether they run; all else is unknown to the host (libpmix answers what it can
// itself).
void AnswerQuery(const HostLinkPtr& link, const std::vector<QueryItem>& items, pmix_info_cbfunc_t callback,
                 void* cbdata) {
  const std::vector<std::string> namespaces =
      link->namespaces ? link->namespaces() : std::vector<std::string>();
  auto* result = new QueryResult;
  for (const QueryItem& item : items) {
    if (item.key == PMIX_QUERY_NAMESPACES) {
      result->infos.AddString(PMIX_QUERY_NAMESPACES, fmt::format("{}", fmt::join(namespaces, ",")));
    } else if (item.key == PMIX_QUERY_JOB_STATUS) {
      for (const std::string& nspace : namespaces)
        if (nspace == item.nspace) result->infos.AddStatus(PMIX_QUERY_JOB_STATUS, PMIX_SUCCESS);
    }
  }
  const std::size_t answered = result->infos.size();
  MutexLock lock(link->mu);
  if (!link->open || answered == 0) {
    delete result;
    if (link->open) callback(PMIX_ERR_NOT_FOUND, nullptr, 0, cbdata, nullptr, nullptr);
    return;
  }
  callback(answered == items.size() ? PMIX_SUCCESS : PMIX_QUERY_PARTIAL_SUCCESS, result->infos.data(),
           answered, cbdata, FreeQueryResult, result);
}

pmix_status_t OnQuery(pmix_proc_t*, pmix_query_t* queries, std::size_t count, pmix_info_cbfunc_t callback,
                      void* cbdata) noexcept {
  std::vector<QueryItem> items;
  for (std::size_t i = 0; i < count; ++i) {
    std::string nspace;
    for (std::size_t q = 0; q < queries[i].nqual; ++q)
      if (HasKey(queries[i].qualifiers[q], PMIX_NSPACE))
        nspace = TextOf(queries[i].qualifiers[q].value).value_or("");
    for (std::string& key : StringsOf(queries[i].keys)) items.push_back({std::move(key), nspace});
  }
  g_current->loop.Post([link = g_current, items = std::move(items), callback, cbdata] {
    AnswerQuery(link, items, callback, cbdata);
  });
  return PMIX_SUCCESS;
}

void OnLog(const pmix_proc_t* client, const pmix_info_t* data, std::size_t ndata, const pmix_info_t*,
           std::size_t, pmix_op_cbfunc_t callback, void* cbdata) noexcept {
  std::vector<ClientLog> lines;
  for (std::size_t i = 0; i < ndata; ++i) {
    const bool to_stderr = HasKey(data[i], PMIX_LOG_STDERR);
    if (!to_stderr && !HasKey(data[i], PMIX_LOG_STDOUT)) continue;
    if (auto text = TextOf(data[i].value)) lines.push_back({FromPmix(*client), to_stderr, std::move(*text)});
  }
  g_current->loop.Post(
      [link = g_current, lines = std::move(lines), reply = ReplyTo(g_current, callback, cbdata)] {
        if (!link->on_log || lines.empty()) return reply(PMIX_ERR_NOT_SUPPORTED);
        for (const ClientLog& line : lines) link->on_log(line);
        reply(PMIX_SUCCESS);
      });
}

struct OperationTicket {
  HostLinkPtr link;
  std::function<void(pmix_status_t)> then;
};

void OnOperationDone(pmix_status_t status, void* cbdata) {
  std::unique_ptr<OperationTicket> ticket(static_cast<OperationTicket*>(cbdata));
  EventLoop& loop = ticket->link->loop;
  loop.Post([link = ticket->link, then = std::move(ticket->then), status] {
    if (link->on_upcall) then(status);
  });
}

struct ModexTicket {
  HostLinkPtr link;
  std::function<void(PmixStatus, std::string)> then;
};

void OnModexData(pmix_status_t status, char* data, std::size_t size, void* cbdata) {
  std::unique_ptr<ModexTicket> ticket(static_cast<ModexTicket*>(cbdata));
  std::string blob = status == PMIX_SUCCESS && data != nullptr ? std::string(data, size) : std::string();
  EventLoop& loop = ticket->link->loop;
  loop.Post([link = ticket->link, then = std::move(ticket->then), status, blob = std::move(blob)] {
    if (link->on_upcall) then(status, blob);
  });
}

}  // namespace

void SetCurrentHost(HostLinkPtr link) { g_current = std::move(link); }

// Functions that are not set are answered PMIX_ERR_NOT_SUPPORTED by libpmix.
pmix_server_module_t* ServerModule() {
  static pmix_server_module_t module = [] {
    pmix_server_module_t m;
    std::memset(&m, 0, sizeof m);
    m.client_connected2 = OnConnected;
    m.client_finalized = OnFinalized;
    m.abort = OnAbort;
    m.fence_nb = OnFence;
    m.direct_modex = OnDirectModex;
    m.publish = OnPublish;
    m.lookup = OnLookup;
    m.unpublish = OnUnpublish;
    m.spawn = OnSpawn;
    m.connect = OnConnect;
    m.disconnect = OnDisconnect;
    m.register_events = OnRegisterEvents;
    m.deregister_events = OnDeregisterEvents;
    m.notify_event = OnNotifyEvent;
    m.query = OnQuery;
    m.log = OnLog;
    return m;
  }();
  return &module;
}

void RunOperation(const HostLinkPtr& link, const std::function<pmix_status_t(pmix_op_cbfunc_t, void*)>& start,
                  std::function<void(pmix_status_t)> then) {
  auto* ticket = new OperationTicket{link, std::move(then)};
  const pmix_status_t status = start(OnOperationDone, ticket);
  // libpmix keeps the ticket only when it says that it will call back.
  if (status != PMIX_SUCCESS)
    OnOperationDone(status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status, ticket);
}

void RequestModex(const HostLinkPtr& link, const pmix_proc_t& proc,
                  std::function<void(PmixStatus, std::string)> then) {
  auto* ticket = new ModexTicket{link, std::move(then)};
  const pmix_status_t status = PMIx_server_dmodex_request(&proc, OnModexData, ticket);
  if (status != PMIX_SUCCESS) OnModexData(status, nullptr, 0, ticket);
}

}  // namespace msa::pmix
