// Network attached memory through the controller: who may ask by which way, what comes back, and what ends
// with jobs, nodes and daemons.
#include <gmock/gmock.h>

#include "harness.h"

namespace msa::job_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSystem = 0x77;

SystemTopology WithNam(Bytes capacity) {
  SystemTopology t = Small();
  t.modules.push_back({ModuleId(3), "nam", "nam"});
  t.nodes.push_back({.name = "nam0", .module = ModuleId(3), .cores = 1, .nam = capacity, .synthetic = true});
  t.nam_job_quota = Bytes(capacity.value / 2);
  return t;
}

// Supplementary groups by uid.
using GroupTable = std::map<std::uint32_t, std::vector<std::uint32_t>>;

ControllerOptions Options(const GroupTable& groups) {
  ControllerOptions options;
  options.groups_of = [&groups](const UserIdentity& user) {
    const auto it = groups.find(user.uid);
    return it == groups.end() ? std::vector<std::uint32_t>() : it->second;
  };
  options.nam_system = kSystem;
  options.nam_key = std::string(32, 'k');
  options.sign_lease = [](std::string_view lease) { return "signed:" + std::to_string(lease.size()); };
  return options;
}

class ControllerNam : public ::testing::Test {
 protected:
  explicit ControllerNam(Bytes capacity_ = Bytes(kMiB)) : capacity(capacity_) {
    h.RegisterAll();
    Up();
  }

  void Up() {
    wire::NamdHello hello;
    hello.capacity = capacity;
    hello.socket = "/d/n/nam0/namd.sock";
    for (const auto& [key, state] : extents)
      hello.extents.push_back({key.first, key.second, state, Bytes(64)});
    h.On(event::NamdUp{"nam0", h.sessions["nam0"], hello});
    Serve();
  }
  // The namd does what it was told.
  void Serve() {
    for (bool more = true; more;) {
      more = false;
      for (const auto& e : h.Sent<effect::SendToNamd>()) {
        if (e.type == wire::NamExtentAllocate::kType) {
          const auto m = *wire::Decode<wire::NamExtentAllocate>(e.payload);
          if (!done.insert(m.request).second) continue;
          extents[{m.uuid, m.generation}] = wire::NamExtentState::kPending;
          Tell(wire::NamExtentDone{m.request, 0, ""});
          more = true;
        } else if (e.type == wire::NamExtentCommit::kType) {
          const auto m = *wire::Decode<wire::NamExtentCommit>(e.payload);
          const auto it = extents.find({m.uuid, m.generation});
          if (it != extents.end()) it->second = wire::NamExtentState::kCommitted;
        } else if (e.type == wire::NamExtentFree::kType) {
          const auto m = *wire::Decode<wire::NamExtentFree>(e.payload);
          if (!done.insert(m.request).second) continue;
          extents.erase({m.uuid, m.generation});
          Tell(wire::NamExtentDone{m.request, 0, ""});
          more = true;
        }
        if (more) break;
      }
    }
  }
  void Tell(NamdMessage message) {
    h.On(event::FromNamd{"nam0", h.sessions["nam0"], std::move(message), RegionUuid{3, ++random}, ""});
  }
  template <class M>
  std::vector<M> ToNamd() {
    std::vector<M> out;
    for (const auto& e : h.Sent<effect::SendToNamd>())
      if (e.type == M::kType) out.push_back(*wire::Decode<M>(e.payload));
    return out;
  }

  static wire::NamCreate Create(const std::string& name, std::uint64_t bytes,
                                wire::NamLifetime lifetime = wire::NamLifetime::kPersistent) {
    wire::NamCreate m;
    m.token = name;
    m.name = name;
    m.lifetime = lifetime;
    m.segments = {{Bytes(bytes), 1}};
    return m;
  }
  // A task of `job`; its answer.
  template <class M>
  wire::NamToTask FromTask(JobId job, const M& message, std::uint64_t client = 5) {
    wire::NamFromTask m{9, NamClientId(client), "rank 0", M::kType, 77, wire::Encode(message)};
    return FromTaskRaw(job, std::move(m));
  }
  wire::NamToTask FromTaskRaw(JobId job, wire::NamFromTask m) {
    h.Clear();
    h.On(event::FromJobd{h.HeadNode(job), job, h.Record(job).incarnation, std::move(m),
                         RegionUuid{4, ++random}});
    Serve();
    const auto answers = h.ToJobd<wire::NamToTask>();
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? wire::NamToTask{} : answers[0];
  }
  template <class M>
  effect::NamReply Call(M message, UserIdentity user = kAda, std::uint64_t call = 1) {
    h.Clear();
    NamCaller caller;
    caller.user = user;
    caller.user_name = user == kAda ? "ada" : "bob";
    caller.holder.call = call;
    caller.operator_ = user.uid == 0;
    h.On(event::NamCall{caller, NamRequest(std::move(message)), RegionUuid{5, ++random}, 88});
    Serve();
    const auto replies = h.Sent<effect::NamReply>();
    EXPECT_EQ(replies.size(), 1u);
    return replies.empty() ? effect::NamReply{} : replies[0];
  }
  JobId Run(std::uint64_t allotment = 0, std::vector<wire::NamRegionBinding> regions = {}) {
    JobSpec spec = Harness::Spec("cluster", 1);
    spec.nam = Bytes(allotment);
    spec.nam_regions = std::move(regions);
    return h.MustRun(std::move(spec));
  }
  static wire::NamFailed Failed(const wire::NamToTask& answer) {
    EXPECT_EQ(answer.type, wire::NamFailed::kType);
    const auto failed = wire::Decode<wire::NamFailed>(answer.payload);
    return failed.ok() ? *failed : wire::NamFailed{};
  }

  const Bytes capacity;
  GroupTable groups;
  Harness h{Options(groups), WithNam(capacity)};
  std::map<std::pair<RegionUuid, Generation>, wire::NamExtentState> extents;
  std::set<std::uint64_t> done;
  std::uint64_t random = 0;
};

TEST_F(ControllerNam, ATaskGetsASignedLeaseBackByItsConnectionAndFrame) {
  const JobId job = Run(1000);
  const wire::NamToTask answer = FromTask(job, Create("win", 1000, wire::NamLifetime::kLease));
  EXPECT_EQ(answer.connection, 9u);
  EXPECT_EQ(answer.id, 77u);
  ASSERT_EQ(answer.type, wire::NamGranted::kType);
  const auto granted = *wire::Decode<wire::NamGranted>(answer.payload);
  const auto blob = *wire::Decode<wire::SignedNamLease>(granted.blob);
  EXPECT_EQ(blob.signature, "signed:" + std::to_string(blob.lease.size()));
  wire::NamLease lease;
  wire::Decoder decoder(blob.lease);
  lease.Fields(decoder);
  ASSERT_TRUE(decoder.ok());
  EXPECT_EQ(lease.system, kSystem);
  EXPECT_EQ(lease.uid, kAda.uid);
  EXPECT_EQ(lease.job, job);
  EXPECT_EQ(lease.lease, granted.lease);
  EXPECT_EQ(lease.extents.at(0).socket, "/d/n/nam0/namd.sock");
  EXPECT_EQ(h.store().regions(), 1u);
}

TEST_F(ControllerNam, TheWelcomeCarriesKeyAndSystem) {
  const auto welcomes = ToNamd<wire::NamdWelcome>();
  ASSERT_EQ(welcomes.size(), 1u);
  EXPECT_EQ(welcomes[0].system, kSystem);
  EXPECT_EQ(welcomes[0].key, std::string(32, 'k'));
}

TEST_F(ControllerNam, ANamdOfAnotherSystemIsToldToQuit) {
  h.Clear();
  wire::NamdHello hello;
  hello.system = kSystem + 1;
  h.On(event::NamdUp{"nam0", h.sessions["nam0"], hello});
  ASSERT_EQ(ToNamd<wire::NamdQuit>().size(), 1u);
  EXPECT_THAT(ToNamd<wire::NamdQuit>()[0].reason, HasSubstr("another system"));
  h.Clear();
  Tell(wire::NamFromLocal{1, 1000, 1000, {}, 4711, wire::NamList::kType, 5, wire::Encode(wire::NamList{})});
  EXPECT_TRUE(ToNamd<wire::NamToLocal>().empty()) << "its session is over";
}

TEST_F(ControllerNam, AProcessOutsideJobsHasItsOwnUsersRightsOnly) {
  wire::NamCreate create;
  create.name = "mine";
  create.mode = 0600;
  create.lifetime = wire::NamLifetime::kPersistent;
  create.segments = {{Bytes(64), 1}};
  Tell(wire::NamFromLocal{1, 1000, 1000, {}, 4711, wire::NamCreate::kType, 5, wire::Encode(create)});
  Serve();
  ASSERT_EQ(h.store().regions(), 1u);
  h.Clear();
  const std::string remove = wire::Encode(wire::NamRemove{"mine", true});
  Tell(wire::NamFromLocal{2, 2000, 2000, {}, 4712, wire::NamRemove::kType, 6, remove});
  ASSERT_EQ(ToNamd<wire::NamToLocal>().size(), 1u);
  EXPECT_EQ(ToNamd<wire::NamToLocal>()[0].type, wire::NamFailed::kType);
  EXPECT_EQ(wire::Decode<wire::NamFailed>(ToNamd<wire::NamToLocal>()[0].payload)->code,
            static_cast<std::uint8_t>(Code::kPermissionDenied));
  h.Clear();
  h.On(event::FromNamd{
      .node = "nam0",
      .session = h.sessions["nam0"] + 1,
      .message = wire::NamFromLocal{1, 1000, 1000, {}, 4711, wire::NamRemove::kType, 7, remove}});
  EXPECT_TRUE(ToNamd<wire::NamToLocal>().empty()) << "a message of another session";
  EXPECT_EQ(h.store().regions(), 1u);
}

TEST_F(ControllerNam, AMalformedRequestIsAnsweredAndNotDropped) {
  const JobId job = Run();
  const auto failed = Failed(FromTaskRaw(job, {9, NamClientId(5), "", wire::NamCreate::kType, 77, "xx"}));
  EXPECT_EQ(failed.code, static_cast<std::uint8_t>(Code::kInvalidArgument));
  EXPECT_THAT(Failed(FromTaskRaw(job, {9, NamClientId(5), "", 0x0799, 77, ""})).message, HasSubstr("0x0799"));
  EXPECT_THAT(Failed(FromTaskRaw(job, {9, NamClientId(), "", wire::NamList::kType, 77, ""})).message,
              HasSubstr("NamClientHello"));
  EXPECT_THAT(Failed(FromTaskRaw(job, {9, NamClientId(5), "", wire::NamOpen::kType, 77,
                                       std::string(wire::kMaxNamPayload + 1, 'x')}))
                  .message,
              HasSubstr("limit is 4194304"));
  h.Clear();
  Tell(wire::NamFromLocal{1, 1000, 1000, {}, 4711, wire::NamOpen::kType, 6, "x"});
  ASSERT_EQ(ToNamd<wire::NamToLocal>().size(), 1u);
  EXPECT_EQ(ToNamd<wire::NamToLocal>()[0].type, wire::NamFailed::kType);
  EXPECT_EQ(ToNamd<wire::NamToLocal>()[0].id, 6u);
}

TEST_F(ControllerNam, AProcessOutsideJobsAsksAsTheKernelsUidThroughItsNamd) {
  h.Clear();
  Tell(wire::NamFromLocal{1,
                          1000,
                          1000,
                          {44},
                          4711,
                          wire::NamCreate::kType,
                          5,
                          wire::Encode(Create("a", 64, wire::NamLifetime::kLease))});
  Serve();
  const auto answers = ToNamd<wire::NamToLocal>();
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_EQ(answers[0].type, wire::NamGranted::kType);
  const auto shown = Call(wire::NamList{"a", ""});
  const auto& region = std::get<wire::NamListing>(shown.body).regions.at(0);
  EXPECT_EQ(region.holders.at(0).who, "pid 4711 on nam0");
  EXPECT_EQ(region.uid, 1000u);
  Tell(wire::NamLocalGone{1});
  Serve();
  EXPECT_EQ(h.store().regions(), 0u);
  EXPECT_EQ(h.store().leases(), 0u);
  EXPECT_TRUE(extents.empty());
}

TEST_F(ControllerNam, AnRpcsLeasesEndWithIt) {
  const auto made = Call(Create("a", 64));
  ASSERT_TRUE(made.status.ok()) << made.status.ToString();
  EXPECT_FALSE(std::get<NamLeaseReply>(made.body).granted.blob.empty());
  EXPECT_EQ(h.store().leases(), 1u);
  h.On(event::NamCallEnded{1});
  EXPECT_EQ(h.store().leases(), 0u);
  EXPECT_EQ(h.store().regions(), 1u);
  EXPECT_EQ(Call(wire::NamOpen{"", "nothing"}).status.code(), Code::kNotFound);
}

TEST_F(ControllerNam, AJobThatEndsTakesItsWindowsWithItHoweverItEnds) {
  const JobId first = Run(2000);
  FromTask(first, Create("win", 1000, wire::NamLifetime::kLease));
  FromTask(first, Create("kept", 0));
  h.End(first);
  Serve();
  EXPECT_EQ(h.store().leases(), 0u);
  EXPECT_EQ(h.store().regions(), 1u);
  const JobId second = Run(1000);
  FromTask(second, Create("win", 1000, wire::NamLifetime::kLease));
  h.On(event::Cancel{.caller = kAda, .job = second, .now = true, .reply = 1});
  h.Live(Millis(20000));
  Serve();
  EXPECT_EQ(h.State(second), JobState::kCancelled);
  EXPECT_EQ(h.store().regions(), 1u);
  EXPECT_EQ(extents.size(), 1u);
}

TEST_F(ControllerNam, ATaskThatIsGoneHoldsNoLeaseAndTheNamdsHearOfIt) {
  const JobId job = Run(1000);
  FromTask(job, Create("win", 100, wire::NamLifetime::kLease), 42);
  h.Clear();
  h.FromHead(job, wire::NamTaskGone{9, NamClientId(42)});
  ASSERT_EQ(ToNamd<wire::NamRevoke>().size(), 1u);
  EXPECT_EQ(ToNamd<wire::NamRevoke>()[0].clients, std::vector<NamClientId>{NamClientId(42)});
  EXPECT_EQ(h.store().leases(), 0u);
  EXPECT_EQ(h.store().regions(), 1u) << "the window is the job's";
}

TEST_F(ControllerNam, ProcessesOnALostNodeAreGone) {
  JobSpec spec = Harness::Spec("cluster", 2, 2);
  spec.mode = wire::JobMode::kAlloc;
  spec.components[0].argv.clear();
  spec.nam = Bytes(1000);
  const JobId job = h.MustRun(std::move(spec), true);
  const std::string other = h.HeadNode(job) == "cn0" ? "cn1" : "cn0";
  h.On(event::FromJobd{other, job, Incarnation(1),
                       wire::NamFromTask{1, NamClientId(42), "", wire::NamCreate::kType, 1,
                                         wire::Encode(Create("win", 64, wire::NamLifetime::kLease))},
                       RegionUuid{6, 6}});
  Serve();
  EXPECT_EQ(h.store().leases(), 1u);
  h.Clear();
  h.On(event::JobdGone{other, job, Incarnation(1), "killed"});
  EXPECT_EQ(h.store().leases(), 0u);
  ASSERT_FALSE(ToNamd<wire::NamRevoke>().empty());
  EXPECT_EQ(ToNamd<wire::NamRevoke>()[0].clients, std::vector<NamClientId>{NamClientId(42)});
}

TEST_F(ControllerNam, ALostNodeSessionMeansItsMemoryIsAwayUntilItsNamdSaysHello) {
  ASSERT_TRUE(Call(Create("a", 64)).status.ok());
  h.On(event::NodeLost{"nam0", h.sessions["nam0"]});
  EXPECT_EQ(Call(wire::NamOpen{"", "a"}).status.code(), Code::kUnavailable);
  h.Register("nam0");
  EXPECT_EQ(Call(wire::NamOpen{"", "a"}).status.code(), Code::kUnavailable);
  Up();
  EXPECT_TRUE(Call(wire::NamOpen{"", "a"}).status.ok());
  h.Register("nam0");
  EXPECT_EQ(Call(wire::NamOpen{"", "a"}).status.code(), Code::kUnavailable) << "registered anew";
}

TEST_F(ControllerNam, ARestartServesTheOldNamesAndLosesNothing) {
  const JobId job = Run(1000);
  FromTask(job, Create("win", 500, wire::NamLifetime::kLease));
  const auto before = Call(Create("kept", 64));
  h.Restart();
  h.RegisterAll();
  Up();
  EXPECT_EQ(h.store().regions(), 2u);
  EXPECT_EQ(h.store().leases(), 1u) << "the rpc's ended";
  const auto after = Call(wire::NamOpen{"", NamPortName(std::get<NamLeaseReply>(before.body).lease.uuid)});
  ASSERT_TRUE(after.status.ok()) << after.status.ToString();
  const auto usage = std::get<wire::NamUsage>(Call(wire::NamUsageAsk{}, kRoot).body);
  ASSERT_EQ(usage.jobs.size(), 1u);
  EXPECT_EQ(usage.jobs[0].allotment, Bytes(1000));
  EXPECT_EQ(usage.jobs[0].used, Bytes(500));
}

TEST_F(ControllerNam, AJobWaitsForMemoryThatOthersWereGivenAndSaysSo) {
  const JobId first = Run(kMiB / 2);
  ASSERT_TRUE(Call(Create("kept", kMiB / 4)).status.ok());
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.nam = Bytes(kMiB / 2);
  const JobId second = h.MustSubmit(spec);
  EXPECT_EQ(h.State(second), JobState::kPending);
  EXPECT_EQ(h.Reason(second), "resources: --nam 512K: 256K of 768K are free");
  h.End(first);
  EXPECT_EQ(h.State(second), JobState::kStarting);
}

TEST_F(ControllerNam, ARegionThatGoesLetsAWaitingJobStart) {
  ASSERT_TRUE(Call(Create("kept", kMiB * 3 / 4)).status.ok());
  h.On(event::NamCallEnded{1});
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.nam = Bytes(kMiB / 2);
  const JobId job = h.MustSubmit(spec);
  EXPECT_THAT(h.Reason(job),
              AllOf(HasSubstr("--nam 512K: 256K of 256K are free"), HasSubstr("persistent regions")));
  EXPECT_TRUE(Call(wire::NamRemove{"kept", false}).status.ok());
  EXPECT_EQ(h.State(job), JobState::kStarting);
}

TEST_F(ControllerNam, MoreThanTheSystemOrTheJobQuotaHasIsRefusedWithNumbers) {
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.nam = Bytes(kMiB / 2 + 1);
  const auto beyond = h.Submit(Harness::Request(spec));
  EXPECT_EQ(beyond.status().code(), Code::kOutOfRange);
  EXPECT_THAT(beyond.status().message(),
              AllOf(HasSubstr("524289 bytes"), HasSubstr("one job may have 512K")));
}

TEST_F(ControllerNam, ABindingIsCheckedWhenTheJobIsSubmitted) {
  ASSERT_TRUE(Call(Create("data", 64), kBob).status.ok());
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.nam_regions = {{"data", NamRights::kRead}};
  EXPECT_EQ(h.Submit(Harness::Request(spec)).status().code(), Code::kPermissionDenied);
  spec.nam_regions = {{"nodata", NamRights::kRead}};
  EXPECT_EQ(h.Submit(Harness::Request(spec)).status().code(), Code::kNotFound);
  spec.nam_regions = {{"x y", NamRights::kRead}};
  EXPECT_EQ(h.Submit(Harness::Request(spec)).status().code(), Code::kInvalidArgument);
  spec.nam_regions = {{"data", NamRights::kMap}};
  EXPECT_EQ(h.Submit(Harness::Request(spec)).status().code(), Code::kInvalidArgument);
  spec.nam_regions = {{"data", NamRights::kRead}, {"data", NamRights::kRead}};
  EXPECT_THAT(h.Submit(Harness::Request(spec)).status().message(), HasSubstr("twice"));
}

TEST_F(ControllerNam, ASupplementaryGroupGivesTheRightToABinding) {
  wire::NamCreate shared = Create("data", 64);
  shared.mode = 0640;
  ASSERT_TRUE(Call(shared, kBob).status.ok());
  h.On(event::NamCallEnded{1});
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.nam_regions = {{"data", NamRights::kRead}};
  EXPECT_EQ(h.Submit(Harness::Request(spec)).status().code(), Code::kPermissionDenied);
  groups[kAda.uid] = {kBob.gid};
  const JobId job = Run(0, {{"data", NamRights::kRead}});
  const auto held = Call(wire::NamRemove{"data", false}, kBob);
  EXPECT_EQ(held.status.code(), Code::kFailedPrecondition) << "the job holds it";
  h.End(job);
}

TEST_F(ControllerNam, ABoundRegionIsHeldByTheJobWhileItRuns) {
  ASSERT_TRUE(Call(Create("data", 64)).status.ok());
  h.On(event::NamCallEnded{1});
  const JobId job = Run(0, {{"data", NamRights::kRead}});
  EXPECT_EQ(Call(wire::NamRemove{"data", false}).status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(Failed(FromTask(job, wire::NamOpen{"", "data"})).code,
            static_cast<std::uint8_t>(Code::kPermissionDenied));
  h.End(job);
  EXPECT_TRUE(Call(wire::NamRemove{"data", false}).status.ok());
}

TEST_F(ControllerNam, AQueuedJobWhoseRegionIsRemovedFailsWithTheReasonAndTakesNothing) {
  const JobId first = Run(kMiB / 2);
  ASSERT_TRUE(Call(Create("data", kMiB / 4)).status.ok());
  h.On(event::NamCallEnded{1});
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.nam = Bytes(kMiB / 2);
  spec.nam_regions = {{"data", NamRights::kRead}};
  const JobId queued = h.MustSubmit(spec);
  ASSERT_EQ(h.State(queued), JobState::kPending);
  // With it there is room, and the job's turn comes.
  ASSERT_TRUE(Call(wire::NamRemove{"data", true}).status.ok());
  EXPECT_EQ(h.State(queued), JobState::kFailed);
  EXPECT_THAT(h.Record(queued).reason, AllOf(HasSubstr("--nam-region"), HasSubstr("'data'")));
  EXPECT_EQ(h.Record(queued).exit_code, 125);
  EXPECT_TRUE(h.Sent<effect::SendStartJob>().empty());
  h.End(first);
  EXPECT_TRUE(Call(Create("next", kMiB)).status.ok()) << "nothing is kept for it";
}

TEST_F(ControllerNam, ALargerAllotmentIsOnDiskBeforeItIsTold) {
  const JobId job = Run(1000);
  h.Clear();
  h.FromHead(job, wire::NamAllotmentAsk{3, Bytes(500)});
  const auto answers = h.ToJobd<wire::NamAllotment>();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].request, 3u);
  EXPECT_EQ(answers[0].allotment, Bytes(1500));
  EXPECT_EQ(h.Record(job).nam, Bytes(1500));
  h.Restart();
  EXPECT_EQ(h.Record(job).nam, Bytes(1500));
  h.RegisterAll();
  Up();
  h.FromHead(job, wire::NamAllotmentAsk{4, Bytes(kMiB)});
  EXPECT_THAT(h.ToJobd<wire::NamAllotment>().back().reason, HasSubstr("one job may have 512K"));
}

TEST_F(ControllerNam, ACreateNeedsOneCommitAndNoPass) {
  const JobId job = Run(1000);
  JobSpec waits = Harness::Spec("cluster", 8);
  h.MustSubmit(waits);
  FromTask(job, Create("win", 100, wire::NamLifetime::kLease));
  EXPECT_EQ(h.Sent<effect::NeedSchedulePass>().size(), 0u);
  EXPECT_EQ(h.Sent<effect::PutJob>().size(), 0u);
  EXPECT_EQ(h.Sent<nam_effect::PutRegion>().size(), 1u);
  EXPECT_EQ(h.Sent<nam_effect::PutLease>().size(), 1u);
}

class ControllerLargeNam : public ControllerNam {
 protected:
  ControllerLargeNam() : ControllerNam(Bytes(64 * kMiB)) {}
};

TEST_F(ControllerLargeNam, GivesALeaseOfTheMostSegmentsThatFitsIntoAMessage) {
  wire::NamCreate wide = Create("wide", 1);
  wide.segments.assign(wire::kMaxNamSegments, {Bytes(1), 1});
  const wire::NamToTask answer = FromTask(Run(32 * kMiB), wide);
  EXPECT_EQ(answer.type, wire::NamGranted::kType);
  EXPECT_LE(answer.payload.size(), wire::kMaxNamPayload);
}

}  // namespace
}  // namespace msa::job_test
