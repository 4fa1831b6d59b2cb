#pragma once
// A head without processes: its outlet records what it says, time stands still until a test moves it.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "head.h"

namespace msa::jobd {

class HeadDouble : public HeadOutlet, public ::testing::Test {
 public:
  struct Said {
    std::uint32_t member = 0;
    std::uint16_t type = 0;
    std::uint64_t id = 0;
    std::string payload;
  };

  static wire::Member Node(std::uint32_t index, const std::string& name, std::uint16_t cores) {
    wire::Member member;
    member.index = index;
    member.node = name;
    member.module_name = name.substr(0, 2);
    member.module_kind = member.module_name;
    for (std::uint16_t i = 0; i < cores; ++i) member.cores.push_back(i);
    return member;
  }

  // Two nodes cn0 (2 cores) and bn0 (4); rank r runs on rank_member[r].
  void Begin(std::vector<std::uint32_t> rank_member, wire::KillPolicy policy = wire::KillPolicy::kMpi) {
    launch.job = JobId(7);
    launch.incarnation = Incarnation(1);
    launch.epoch = Epoch(1);
    launch.interactive = true;
    launch.members = {Node(0, "cn0", 2), Node(1, "bn0", 4)};
    launch.step.nspace = "msa.7.1.0";
    launch.step.cwd = "/";
    wire::App app;
    app.argv = {"./prog"};
    app.ntasks = static_cast<std::uint32_t>(rank_member.size());
    launch.step.apps = {app};
    launch.step.rank_member = std::move(rank_member);
    launch.step.kill_policy = policy;
    head = std::make_unique<Head>(launch, *this);
    head->Start();
  }
  void BeginRunning(std::vector<std::uint32_t> rank_member,
                    wire::KillPolicy policy = wire::KillPolicy::kMpi) {
    const auto ranks = rank_member;
    Begin(std::move(rank_member), policy);
    Ready("msa.7.1.0");
    Started("msa.7.1.0", ranks);
    said.clear();
  }

  template <class M>
  void From(std::uint32_t member, const M& message, std::uint64_t id = 0) {
    head->OnMember(member, {M::kType, 0, id, wire::Encode(message)});
    Check();
  }
  void Ready(const std::string& nspace) {
    From(0, NamespaceReady{nspace, {}});
    From(1, NamespaceReady{nspace, {}});
  }
  void Started(const std::string& nspace, const std::vector<std::uint32_t>& rank_member) {
    for (const std::uint32_t member : std::set<std::uint32_t>(rank_member.begin(), rank_member.end()))
      From(member, TasksStarted{
                       nspace,
                       static_cast<std::uint32_t>(std::count(rank_member.begin(), rank_member.end(), member)),
                       {}});
  }
  void End(std::uint32_t member, std::uint32_t rank, std::int32_t code,
           const std::string& nspace = "msa.7.1.0") {
    TaskEnded ended;
    ended.nspace = nspace;
    ended.end = {Rank(rank), 0, member == 0 ? "cn0" : "bn0", code, 0, false};
    From(member, ended);
  }
  template <class M>
  void FromController(const M& message) {
    head->OnController({M::kType, 0, 0, wire::Encode(message)});
    Check();
  }
  template <class M>
  void FromClient(std::uint64_t session, const M& message) {
    head->OnSession(session, {M::kType, 0, session, wire::Encode(message)});
    Check();
  }

  // noded: the client of the session has gone.
  void SessionOver(std::uint64_t session) {
    head->OnSession(session, {0x04ff, 0, session, {}});
    Check();
  }

  template <class M>
  std::vector<M> Told(std::uint32_t member) const {
    std::vector<M> out;
    for (const Said& one : said)
      if (one.member == member && one.type == M::kType) out.push_back(*wire::Decode<M>(one.payload));
    return out;
  }
  template <class M>
  std::vector<M> ToldController() const {
    std::vector<M> out;
    for (const auto& [type, payload] : controller)
      if (type == M::kType) out.push_back(*wire::Decode<M>(payload));
    return out;
  }
  template <class M>
  std::vector<M> ToldClient(std::uint64_t session) const {
    std::vector<M> out;
    for (const Said& one : client)
      if (one.id == session && one.type == M::kType) out.push_back(*wire::Decode<M>(one.payload));
    return out;
  }
  // What the owner would read.
  std::string Notices() {
    FromClient(99, wire::AttachOpen{true, 0, true});
    std::string out;
    for (const auto& notice : ToldClient<wire::Notice>(99)) out += notice.text + "\n";
    return out;
  }

  void Advance(Millis by) {
    const SteadyTime until = now + by;
    for (;;) {
      auto next = timers.end();
      for (auto it = timers.begin(); it != timers.end(); ++it)
        if (it->second.first <= until && (next == timers.end() || it->second.first < next->second.first))
          next = it;
      if (next == timers.end()) break;
      now = std::max(now, next->second.first);
      const auto callback = std::move(next->second.second);
      timers.erase(next);
      callback();
      Check();
    }
    now = until;
  }
  void Check() {
    const Status status = head->CheckInvariants();
    EXPECT_TRUE(status.ok()) << status.message();
  }

  void ToMember(std::uint32_t index, std::uint16_t type, std::uint64_t id, std::string payload) override {
    said.push_back({index, type, id, std::move(payload)});
  }
  void ToController(std::uint16_t type, std::string payload) override {
    controller.emplace_back(type, std::move(payload));
  }
  void ToSession(std::uint64_t session, std::uint16_t type, std::string payload) override {
    client.push_back({0, type, session, std::move(payload)});
  }
  void EndSession(std::uint64_t session) override { ended_sessions.push_back(session); }
  TimerId After(Millis delay, std::function<void()> callback) override {
    timers[++next_timer] = {now + delay, std::move(callback)};
    return TimerId{next_timer};
  }
  void Cancel(TimerId timer) override { timers.erase(static_cast<std::uint64_t>(timer)); }
  Instant WallTime() override { return FromUnixMillis(1'000'000); }
  SteadyTime SteadyTimeNow() override { return now; }
  void SaveExitRecord(const std::string& payload) override { record = payload; }
  void MembersKnown(Epoch, const std::vector<wire::Member>&, const std::string&) override {}
  bool IsJoined(std::uint32_t member) override { return joined.contains(member); }
  void JobOver() override { over = true; }
  void Log(const std::string&) override {}
  std::string NewSecret() override { return std::string(64, 'a'); }
  Result<std::string> ListenLink(std::uint64_t link, const LinkTicket& ticket) override {
    listening[link] = ticket;
    return fmt::format("unix:/x{}.{}", ticket.asker, ticket.request);
  }
  Status OpenLink(std::uint64_t link, const LinkTicket&, const std::string& address) override {
    opened[link] = address;
    return Status::Ok();
  }
  void ToLink(std::uint64_t link, std::uint16_t type, std::uint64_t id, std::string payload) override {
    linked.push_back({static_cast<std::uint32_t>(link), type, id, std::move(payload)});
  }
  void CloseLink(std::uint64_t link) override { closed.insert(link); }

  std::map<std::uint64_t, LinkTicket> listening;
  std::map<std::uint64_t, std::string> opened;
  std::vector<Said> linked;  // `member` is the link
  std::set<std::uint64_t> closed;

  wire::LaunchJob launch;
  std::unique_ptr<Head> head;
  std::vector<Said> said;
  std::vector<std::pair<std::uint16_t, std::string>> controller;
  std::vector<Said> client;
  std::vector<std::uint64_t> ended_sessions;
  std::map<std::uint64_t, std::pair<SteadyTime, std::function<void()>>> timers;
  std::uint64_t next_timer = 0;
  SteadyTime now{};
  std::string record;
  std::set<std::uint32_t> joined = {0, 1};
  bool over = false;
};

}  // namespace msa::jobd
