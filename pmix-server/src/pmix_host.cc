#include "msa/pmix/pmix_host.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include <pmix_server.h>

#include "msa/adapters/process/files.h"

#include "host_link.h"
#include "pmix_values.h"
#include "registration.h"

namespace msa::pmix {

static_assert(kPmixSuccess == PMIX_SUCCESS && kPmixErr == PMIX_ERROR && kPmixErrTimeout == PMIX_ERR_TIMEOUT);
static_assert(kPmixErrUnreachable == PMIX_ERR_UNREACH && kPmixErrBadParam == PMIX_ERR_BAD_PARAM);
static_assert(kPmixErrOutOfResource == PMIX_ERR_OUT_OF_RESOURCE && kPmixErrNotFound == PMIX_ERR_NOT_FOUND);
static_assert(kPmixErrNotSupported == PMIX_ERR_NOT_SUPPORTED &&
              kPmixErrDuplicateKey == PMIX_ERR_DUPLICATE_KEY);
static_assert(kPmixErrExists == PMIX_ERR_EXISTS);
static_assert(kPmixErrPartialSuccess == PMIX_ERR_PARTIAL_SUCCESS);
static_assert(kPmixErrJobFailedToStart == PMIX_ERR_JOB_FAILED_TO_LAUNCH &&
              kPmixErrJobAborted == PMIX_ERR_JOB_ABORTED);
static_assert(kPmixErrProcTermWithoutSync == PMIX_ERR_PROC_TERM_WO_SYNC);
static_assert(kRankWildcard == PMIX_RANK_WILDCARD);
static_assert(static_cast<int>(Range::kProcLocal) == PMIX_RANGE_PROC_LOCAL);
static_assert(static_cast<int>(Range::kNamespace) == PMIX_RANGE_NAMESPACE);
static_assert(static_cast<int>(Persistence::kSession) == PMIX_PERSIST_SESSION);

namespace {

// libpmix 4.2 cannot be initialised a second time after its end (its select sets are left over).
bool g_started = false;

void SetEnvironment(const PmixHostOptions& options) {
  // libpmix reads settings in the home directory: without HOME it takes the account's, and falls over if
  // there is none.
  if (getpwuid(geteuid()) == nullptr) setenv("HOME", "/", 0);
  // The hash store needs no files shared with the clients, which get the same setting (open_mpi_env.h).
  setenv("PMIX_MCA_gds", "hash", 1);
  // No plugin of hwloc (GPUs, X11) is of use here; loading them costs 5 ms of the start.
  setenv("HWLOC_PLUGINS_PATH", "/none", 1);
  if (options.topology_xml.empty()) return;
  setenv("HWLOC_XMLFILE", options.topology_xml.c_str(), 1);
  setenv("HWLOC_THISSYSTEM", "1", 1);
}

}  // namespace

class PmixHost::Impl {
 public:
  explicit Impl(EventLoop& loop) : link_(std::make_shared<HostLink>(loop)) {}
  ~Impl();

  Status Init(const PmixHostOptions& options, std::function<void(Upcall)> on_upcall);
  void Register(const NamespaceInfo& info, const std::string& this_node, UserIdentity user,
                std::function<void(Status)> on_done);
  void Deregister(const std::string& nspace, std::function<void()> on_done);
  bool Knows(const std::string& nspace) const { return namespaces_.contains(nspace); }
  const HostLinkPtr& link() const { return link_; }

 private:
  struct Namespace {
    std::string directory;  // PMIX_NSDIR
    RanksPerNode ranks;     // on each node, for the node ranks of later namespaces
  };
  // A registration under way: the infos must live until libpmix has called back for all of them.
  struct Registration {
    explicit Registration(InfoList&& list) : infos(std::move(list)) {}
    InfoList infos;
    std::size_t outstanding = 0;
    pmix_status_t status = PMIX_SUCCESS;
    std::string failed;  // what failed first
    std::function<void(Status)> on_done;
  };
  void Await(const std::shared_ptr<Registration>& registration, const std::string& nspace,
             const std::string& what, const std::function<pmix_status_t(pmix_op_cbfunc_t, void*)>& start);
  RanksPerNode RanksOnNodes() const;
  void DoneLater(std::function<void()> callback);

  HostLinkPtr link_;
  bool initialised_ = false;
  std::map<std::string, Namespace> namespaces_;
};

PmixHost::Impl::~Impl() {
  {
    MutexLock lock(link_->mu);
    link_->open = false;
  }
  link_->on_upcall = nullptr;
  link_->on_event = nullptr;
  link_->on_log = nullptr;
  link_->namespaces = nullptr;
  if (!initialised_) return;
  PMIx_server_finalize();
  SetCurrentHost(nullptr);
}

Status PmixHost::Impl::Init(const PmixHostOptions& options, std::function<void(Upcall)> on_upcall) {
  if (g_started)
    return Error(Code::kFailedPrecondition,
                 "this process hosts or hosted a PMIx server; libpmix allows one in a process's life, start "
                 "another process");
  MSA_RETURN_IF_ERROR(ToPmix({options.nspace, 0}).status());
  g_started = true;
  SetEnvironment(options);
  InfoList infos;
  infos.AddString(PMIX_SERVER_TMPDIR, options.directory);
  infos.AddString(PMIX_SYSTEM_TMPDIR, options.directory);
  infos.AddString(PMIX_SERVER_NSPACE, options.nspace);
  infos.AddRank(PMIX_SERVER_RANK, 0);
  infos.AddOff(PMIX_SERVER_TOOL_SUPPORT);
  infos.AddString(PMIX_HOSTNAME, options.hostname);
  link_->on_upcall = std::move(on_upcall);
  link_->on_event = options.on_event;
  link_->on_log = options.on_log;
  link_->namespaces = [this] {
    std::vector<std::string> names;
    for (const auto& [name, unused] : namespaces_) names.push_back(name);
    return names;
  };
  SetCurrentHost(link_);
  const pmix_status_t status = PMIx_server_init(ServerModule(), infos.data(), infos.size());
  if (status != PMIX_SUCCESS) {
    SetCurrentHost(nullptr);
    return Error(Code::kInternal,
                 "PMIx_server_init in directory {}: {}; check that the directory is writable and its "
                 "path shorter than 80 bytes",
                 options.directory, PMIx_Error_string(status));
  }
  initialised_ = true;
  return Status::Ok();
}

void PmixHost::Impl::DoneLater(std::function<void()> callback) {
  link_->loop.Post([link = link_, callback = std::move(callback)] {
    if (link->on_upcall) callback();
  });
}

RanksPerNode PmixHost::Impl::RanksOnNodes() const {
  RanksPerNode total;
  for (const auto& [name, entry] : namespaces_)
    for (const auto& [node, ranks] : entry.ranks) total[node] += ranks;
  return total;
}

void PmixHost::Impl::Await(const std::shared_ptr<Registration>& registration, const std::string& nspace,
                           const std::string& what,
                           const std::function<pmix_status_t(pmix_op_cbfunc_t, void*)>& start) {
  ++registration->outstanding;
  RunOperation(link_, start, [registration, nspace, what](pmix_status_t status) {
    if (status != PMIX_SUCCESS && registration->status == PMIX_SUCCESS) {
      registration->status = status;
      registration->failed = what;
    }
    if (--registration->outstanding > 0) return;
    registration->on_done(registration->status == PMIX_SUCCESS
                              ? Status::Ok()
                              : Error(Code::kInternal, "namespace '{}': libpmix refuses {}: {}", nspace,
                                      registration->failed, PMIx_Error_string(registration->status)));
  });
}

void PmixHost::Impl::Register(const NamespaceInfo& info, const std::string& this_node, UserIdentity user,
                              std::function<void(Status)> on_done) {
  const auto refuse = [&](Status status) {
    DoneLater([on_done, status = std::move(status)] { on_done(status); });
  };
  if (Status status = CheckNamespace(info); !status.ok()) return refuse(std::move(status));
  if (namespaces_.contains(info.nspace))
    return refuse(Error(Code::kInvalidArgument, "namespace '{}' is registered already", info.nspace));
  Namespace entry;
  entry.directory = info.tmpdir + "/" + info.nspace;
  for (const std::uint32_t node : info.rank_node) ++entry.ranks[info.nodes[node]];
  if (Status status = MakeDirectory(entry.directory); !status.ok())
    return refuse(status.WithContext("session directory of namespace '" + info.nspace + "'"));
  auto infos = NamespaceInfos(info, this_node, entry.directory, RanksOnNodes());
  if (!infos.ok()) return refuse(infos.status());
  namespaces_.emplace(info.nspace, std::move(entry));
  auto registration = std::make_shared<Registration>(std::move(*infos));
  registration->on_done = std::move(on_done);
  const auto local = LocalRanks(info, this_node);
  // libpmix takes these in order on its thread; the callbacks come only after the loop turns again.
  Await(registration, info.nspace, "the namespace", [&](pmix_op_cbfunc_t callback, void* cbdata) {
    return PMIx_server_register_nspace(info.nspace.c_str(), static_cast<int>(local.size()),
                                       registration->infos.data(), registration->infos.size(), callback,
                                       cbdata);
  });
  if (const Status corrected = CorrectJobSize(info); !corrected.ok()) {
    registration->status = PMIX_ERROR;
    registration->failed = corrected.message();
  }
  for (const std::uint32_t rank : local) {
    const auto proc = ToPmix({info.nspace, rank});
    Await(registration, info.nspace, "rank " + std::to_string(rank),
          [&](pmix_op_cbfunc_t callback, void* cbdata) {
            return PMIx_server_register_client(&*proc, user.uid, user.gid, nullptr, callback, cbdata);
          });
  }
}

void PmixHost::Impl::Deregister(const std::string& nspace, std::function<void()> on_done) {
  const auto it = namespaces_.find(nspace);
  if (it == namespaces_.end()) return DoneLater(std::move(on_done));
  const std::string directory = it->second.directory;
  namespaces_.erase(it);
  RunOperation(
      link_,
      [&](pmix_op_cbfunc_t callback, void* cbdata) -> pmix_status_t {
        PMIx_server_deregister_nspace(nspace.c_str(), callback, cbdata);
        return PMIX_SUCCESS;
      },
      [directory, on_done = std::move(on_done)](pmix_status_t) {
        // What cannot be removed now goes with the job's directory.
        (void)RemoveTree(directory);
        on_done();
      });
}

PmixHost::PmixHost(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PmixHost::~PmixHost() = default;

Result<std::unique_ptr<PmixHost>> PmixHost::Start(const PmixHostOptions& options, EventLoop& loop,
                                                  std::function<void(Upcall)> on_upcall) {
  auto impl = std::make_unique<Impl>(loop);
  MSA_RETURN_IF_ERROR(impl->Init(options, std::move(on_upcall)));
  return std::unique_ptr<PmixHost>(new PmixHost(std::move(impl)));
}

void PmixHost::RegisterNamespace(const NamespaceInfo& info, const std::string& this_node, UserIdentity user,
                                 std::function<void(Status)> on_done) {
  impl_->Register(info, this_node, user, std::move(on_done));
}

void PmixHost::DeregisterNamespace(const std::string& nspace, std::function<void()> on_done) {
  impl_->Deregister(nspace, std::move(on_done));
}

Result<std::vector<std::string>> PmixHost::ClientEnvironment(const Proc& proc) {
  if (!impl_->Knows(proc.nspace))
    return Error(Code::kNotFound, "namespace '{}' is not registered at this node", proc.nspace);
  MSA_ASSIGN_OR_RETURN(const pmix_proc_t client, ToPmix(proc));
  char** lines = nullptr;
  const pmix_status_t status = PMIx_server_setup_fork(&client, &lines);
  std::vector<std::string> environment = StringsOf(lines);
  for (char** line = lines; line != nullptr && *line != nullptr; ++line) std::free(*line);
  std::free(lines);
  if (status != PMIX_SUCCESS)
    return Error(Code::kInternal, "PMIx_server_setup_fork of rank {} of '{}': {}", proc.rank, proc.nspace,
                 PMIx_Error_string(status));
  return environment;
}

void PmixHost::LocalModex(const Proc& proc, std::function<void(PmixStatus, std::string)> on_data) {
  const auto client = ToPmix(proc);
  if (client.ok()) return RequestModex(impl_->link(), *client, std::move(on_data));
  impl_->link()->loop.Post([link = impl_->link(), on_data = std::move(on_data)] {
    if (link->on_upcall) on_data(PMIX_ERR_BAD_PARAM, "");
  });
}

void PmixHost::NotifyEvent(PmixStatus event, const Proc& source, const std::vector<Proc>& affected) {
  const auto from = ToPmix(source);
  if (!from.ok()) return;
  auto infos = std::make_shared<InfoList>();
  if (!affected.empty()) infos->AddProcs(PMIX_EVENT_AFFECTED_PROCS, affected);
  // LOCAL: to the clients of this server; the job daemons of the other nodes tell theirs.
  RunOperation(
      impl_->link(),
      [&](pmix_op_cbfunc_t callback, void* cbdata) {
        return PMIx_Notify_event(event, &*from, PMIX_RANGE_LOCAL, infos->data(), infos->size(), callback,
                                 cbdata);
      },
      [infos](pmix_status_t) {});
}

std::string StatusText(PmixStatus status) {
  const char* text = PMIx_Error_string(status);
  return text == nullptr ? std::to_string(status) : text;
}

}  // namespace msa::pmix
