#pragma once
// The book with a store in memory and namds that do as they are told. Invariants are checked after every
// event.

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "msa/base/wire.h"
#include "msa/nam/nam_book.h"

namespace msa::nam_test {

inline constexpr std::uint64_t kSystem = 0x5157;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// What a store would hold after the commits, as bytes.
class Store {
 public:
  void Apply(const NamEffect& effect) {
    if (const auto* put = std::get_if<nam_effect::PutRegion>(&effect)) {
      regions[put->record.uuid] = wire::Encode(put->record);
    } else if (const auto* gone = std::get_if<nam_effect::DeleteRegion>(&effect)) {
      EXPECT_EQ(regions.erase(gone->uuid), 1u) << "a region was deleted that was never put";
    } else if (const auto* put = std::get_if<nam_effect::PutLease>(&effect)) {
      last = std::max(last, put->record.id);
      leases[put->record.id] = wire::Encode(put->record);
    } else if (const auto* gone = std::get_if<nam_effect::DeleteLease>(&effect)) {
      EXPECT_EQ(leases.erase(gone->lease), 1u) << "a lease was deleted that was never put";
    }
  }
  StoredNam Load() const {
    StoredNam state;
    state.last_lease = last;
    for (const auto& [uuid, blob] : regions) Read(blob, state.regions.emplace_back());
    for (const auto& [id, blob] : leases) Read(blob, state.leases.emplace_back());
    return state;
  }
  std::map<RegionUuid, std::string> regions;
  std::map<LeaseId, std::string> leases;
  LeaseId last;

 private:
  template <class Record>
  static void Read(const std::string& blob, Record& record) {
    wire::Decoder decoder(blob);
    record.Fields(decoder);
    EXPECT_TRUE(decoder.ok());
  }
};

using NamdMessage = std::variant<wire::NamdWelcome, wire::NamExtentAllocate, wire::NamExtentCommit,
                                 wire::NamExtentFree, wire::NamRevoke, wire::NamScan>;

// The files of a NAM node, and the daemon that keeps them.
struct Namd {
  using Key = std::pair<RegionUuid, Generation>;
  struct Extent {
    wire::NamExtentState state = wire::NamExtentState::kPending;
    Bytes bytes;
    bool mapped = false;  // somebody still has it: a free is not answered
  };
  std::uint64_t capacity = 0;
  std::map<Key, Extent> extents;
  bool up = false;
  std::uint32_t pid = 100;
  std::deque<NamdMessage> inbox;
  Code fail_allocate = Code::kOk;
  bool scans = true;  // it answers NamScan with what follows
  wire::NamScanned in_directory;
  std::map<std::uint64_t, Key> frees;  // that wait for the last mapping
  std::set<LeaseId> revoked;
  std::set<NamClientId> clients_gone;
  std::optional<std::vector<std::uint64_t>> connections;
  wire::NamdWelcome welcome;
};

class Harness {
 public:
  explicit Harness(std::vector<NamNodeSpec> nodes = {{"nam0", Bytes(kMiB)}}, NamPolicy limits = {})
      : specs(std::move(nodes)), policy(limits) {
    book = std::make_unique<NamBook>(specs, policy, kSystem);
    for (const NamNodeSpec& spec : specs) {
      namds[spec.name].capacity = spec.capacity.value;
      Up(spec.name);
    }
  }

  // ---- events
  bool checks = true;  // the invariants, after each event
  void On(NamEvent event) { Take(book->On(std::move(event), now)); }
  void Up(const std::string& node, std::uint64_t system = kSystem) {
    Namd& namd = namds[node];
    namd.up = true;
    namd.inbox.clear();
    namd.frees.clear();
    wire::NamdHello hello;
    hello.system = system;
    hello.capacity = Bytes(namd.capacity);
    hello.socket = "/d/n/" + node + "/namd.sock";
    hello.fabric_provider = "tcp;ofi_rxm";
    hello.pid = namd.pid;
    hello.connections = namd.connections;
    for (const auto& [key, extent] : namd.extents)
      hello.extents.push_back({key.first, key.second, extent.state, extent.bytes});
    On(nam_event::NamdUp{node, hello});
    if (auto_pump) Pump();
  }
  void Lose(const std::string& node) {
    namds[node].up = false;
    namds[node].inbox.clear();
    On(nam_event::NamdLost{node, "killed"});
  }
  void StartJob(std::uint64_t id, std::uint64_t allotment = 0,
                std::vector<wire::NamRegionBinding> regions = {}) {
    nam_event::JobStarted job{JobId(id),        {1000, 100},   "ada",
                              Bytes(allotment), allotment > 0, std::move(regions)};
    jobs[id] = job;
    On(job);
  }
  void EndJob(std::uint64_t id) {
    jobs.erase(id);
    On(nam_event::JobEnded{JobId(id)});
    if (auto_pump) Pump();
  }
  void Sleep(Millis span) {
    now += span;
    On(nam_event::Tick{});
    if (auto_pump) Pump();
  }
  // The controller is killed and started again; the sessions of the namds are over.
  void Restart() {
    std::vector<nam_event::JobStarted> running;
    for (const auto& [id, job] : jobs) running.push_back(job);
    book = std::make_unique<NamBook>(specs, policy, kSystem);
    open.clear();
    for (auto& [name, namd] : namds) {
      namd.up = false;
      namd.inbox.clear();
    }
    auto effects = book->Restore(store.Load(), running, now);
    ASSERT_TRUE(effects.ok()) << effects.status().ToString();
    Take(*std::move(effects));
  }

  // ---- requests
  static NamCaller Ada() { return Caller(1000, "ada"); }
  static NamCaller Bob() { return Caller(1001, "bob"); }
  static NamCaller Root() {
    NamCaller caller = Caller(0, "root");
    caller.operator_ = true;
    return caller;
  }
  static NamCaller Caller(std::uint32_t uid, const std::string& name) {
    NamCaller caller;
    caller.user = {uid, uid / 10};
    caller.user_name = name;
    caller.who = "pid " + std::to_string(uid) + " on nam0";
    caller.holder.node = "nam0";
    caller.holder.connection = uid + 1;
    return caller;
  }
  static NamCaller InJob(std::uint64_t job, std::uint64_t client = 1) {
    NamCaller caller;
    caller.user = {1000, 100};
    caller.user_name = "ada";
    caller.who = "rank 0 of msa." + std::to_string(job) + ".1.0 on cn0";
    caller.holder.job = JobId(job);
    caller.holder.client = NamClientId(client);
    return caller;
  }
  static wire::NamCreate Create(const std::string& name, std::vector<std::uint64_t> bytes,
                                wire::NamLifetime lifetime = wire::NamLifetime::kPersistent) {
    wire::NamCreate m;
    m.token = name.empty() ? "" : ("token of " + name).substr(0, wire::kMaxNamToken);
    m.name = name;
    m.lifetime = lifetime;
    for (const std::uint64_t one : bytes) m.segments.push_back({Bytes(one), 8});
    return m;
  }
  std::uint64_t Send(const NamCaller& caller, NamRequest request) {
    const std::uint64_t tag = ++last_tag;
    open.insert(tag);
    On(nam_event::Request{caller, std::move(request), RegionUuid{7, tag}, tag});
    if (auto_pump) Pump();
    return tag;
  }
  // The reply, which must have come.
  nam_effect::Reply Ask(const NamCaller& caller, NamRequest request) {
    const std::uint64_t tag = Send(caller, std::move(request));
    EXPECT_TRUE(replies.contains(tag)) << "no reply";
    return replies[tag];
  }
  Status Try(const NamCaller& caller, NamRequest request) { return Ask(caller, std::move(request)).status; }
  NamLeaseReply MustGrant(const NamCaller& caller, NamRequest request) {
    const nam_effect::Reply reply = Ask(caller, std::move(request));
    EXPECT_TRUE(reply.status.ok()) << reply.status.ToString();
    const auto* lease = std::get_if<NamLeaseReply>(&reply.body);
    EXPECT_NE(lease, nullptr);
    return lease == nullptr ? NamLeaseReply{} : *lease;
  }
  std::vector<wire::NamRegionInfo> List(const NamCaller& caller, const std::string& region = "") {
    const auto reply = Ask(caller, wire::NamList{region, ""});
    const auto* listing = std::get_if<wire::NamListing>(&reply.body);
    return reply.status.ok() && listing != nullptr ? listing->regions : std::vector<wire::NamRegionInfo>();
  }
  wire::NamUsage Usage() { return Usage(Root()); }
  wire::NamUsage Usage(const NamCaller& caller) {
    return std::get<wire::NamUsage>(Ask(caller, wire::NamUsageAsk{}).body);
  }
  wire::NamCheckResult Check(bool repair) {
    return std::get<wire::NamCheckResult>(Ask(Root(), wire::NamCheckAsk{repair}).body);
  }
  void CloseAll(const NamCaller& caller) {
    On(nam_event::HolderGone{caller.holder});
    if (auto_pump) Pump();
  }

  // ---- namds
  // One message of one namd; false: none waits.
  bool Step(const std::string& node) {
    Namd& namd = namds[node];
    if (!namd.up || namd.inbox.empty()) return false;
    const NamdMessage message = std::move(namd.inbox.front());
    namd.inbox.pop_front();
    std::visit([&](const auto& m) { Serve(node, namd, m); }, message);
    return true;
  }
  void Pump() {
    for (bool more = true; more;) {
      more = false;
      for (auto& [name, namd] : namds) more = Step(name) || more;
    }
  }
  void Unmap(const std::string& node) {
    for (auto& [key, extent] : namds[node].extents) extent.mapped = false;
    for (const auto& [request, key] : std::exchange(namds[node].frees, {})) {
      namds[node].extents.erase(key);
      On(nam_event::ExtentDone{node, {request, 0, ""}});
    }
  }
  std::size_t Extents() const {
    std::size_t sum = 0;
    for (const auto& [name, namd] : namds) sum += namd.extents.size();
    return sum;
  }
  template <class E>
  std::size_t Count() const {
    std::size_t count = 0;
    for (const NamEffect& effect : last) count += std::holds_alternative<E>(effect) ? 1 : 0;
    return count;
  }

  std::vector<NamNodeSpec> specs;
  NamPolicy policy;
  std::unique_ptr<NamBook> book;
  Store store;
  std::map<std::string, Namd> namds;
  std::map<std::uint64_t, nam_event::JobStarted> jobs;
  std::map<std::uint64_t, nam_effect::Reply> replies;
  std::set<std::uint64_t> open;  // tags without a reply
  std::vector<wire::NamAllotment> allotments;
  std::vector<std::string> refused;
  std::vector<NamEffect> last;  // of the last event
  std::uint64_t last_tag = 0;
  Instant now = FromUnixMillis(1'700'000'000'000);
  bool auto_pump = true;

 private:
  void Serve(const std::string&, Namd& namd, const wire::NamdWelcome& m) {
    namd.welcome = m;
    std::set<Namd::Key> listed;
    for (const auto& report : m.extents) listed.emplace(report.uuid, report.generation);
    std::erase_if(namd.extents, [&](const auto& entry) {
      return entry.second.state == wire::NamExtentState::kPending && !listed.contains(entry.first);
    });
  }
  void Serve(const std::string& node, Namd& namd, const wire::NamExtentAllocate& m) {
    Code code = namd.fail_allocate;
    std::uint64_t bytes = 0;
    for (const auto& segment : m.segments) {
      EXPECT_EQ(segment.offset % 64, 0u);
      EXPECT_GE(segment.offset, bytes) << "segments overlap";
      bytes = segment.offset + segment.bytes.value;
    }
    if (code == Code::kOk && m.copy_from.value != 0) {
      EXPECT_TRUE(namd.extents.contains({m.uuid, m.copy_from}));
    }
    if (code == Code::kOk)
      namd.extents.try_emplace({m.uuid, m.generation}).first->second.bytes = Bytes(bytes);
    On(nam_event::ExtentDone{node, {m.request, static_cast<std::uint8_t>(code), "no space"}});
  }
  void Serve(const std::string&, Namd& namd, const wire::NamExtentCommit& m) {
    const auto it = namd.extents.find({m.uuid, m.generation});
    ASSERT_NE(it, namd.extents.end()) << "commit of an extent that is not there";
    EXPECT_TRUE(store.regions.contains(m.uuid)) << "committed before the store was";
    it->second.state = wire::NamExtentState::kCommitted;
  }
  void Serve(const std::string& node, Namd& namd, const wire::NamExtentFree& m) {
    const auto it = namd.extents.find({m.uuid, m.generation});
    if (it != namd.extents.end() && it->second.mapped) {
      namd.frees[m.request] = it->first;
      return;
    }
    if (it != namd.extents.end()) namd.extents.erase(it);
    On(nam_event::ExtentDone{node, {m.request, 0, ""}});
  }
  void Serve(const std::string& node, Namd& namd, const wire::NamScan& m) {
    if (!namd.scans) return;
    wire::NamScanned scanned = namd.in_directory;
    scanned.request = m.request;
    On(nam_event::Scanned{node, std::move(scanned)});
  }
  void Serve(const std::string&, Namd& namd, const wire::NamRevoke& m) {
    namd.revoked.insert(m.leases.begin(), m.leases.end());
    namd.clients_gone.insert(m.clients.begin(), m.clients.end());
  }

  void Take(std::vector<NamEffect> effects) {
    const Status invariants = checks ? book->CheckInvariants() : Status::Ok();
    EXPECT_TRUE(invariants.ok()) << invariants.ToString();
    for (const NamEffect& effect : effects) store.Apply(effect);
    for (const NamEffect& effect : effects) {
      if (const auto* send = std::get_if<nam_effect::SendToNamd>(&effect)) {
        if (namds[send->node].up) namds[send->node].inbox.push_back(send->message);
      } else if (const auto* reply = std::get_if<nam_effect::Reply>(&effect)) {
        EXPECT_EQ(open.erase(reply->tag), 1u) << "a request was answered twice";
        replies[reply->tag] = *reply;
      } else if (const auto* answer = std::get_if<nam_effect::AllotmentReply>(&effect)) {
        allotments.push_back(answer->answer);
      } else if (const auto* refuse = std::get_if<nam_effect::RefuseNamd>(&effect)) {
        refused.push_back(refuse->reason);
        namds[refuse->node].up = false;
      }
    }
    last = std::move(effects);
  }
};

}  // namespace msa::nam_test
