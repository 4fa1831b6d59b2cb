// RegionService of the real msa-controllerd, with the book and the store behind it. The NAM node is a double.
#include <future>

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "msa/v1/nam.grpc.pb.h"

#include "controller_process.h"
#include "fake_namd.h"

namespace msa {
namespace {

using test::ControllerProcess;
using test::Eventually;
using test::FakeNamd;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

constexpr Millis kLimit{30'000};
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class RegionsTest : public ::testing::Test {
 protected:
  RegionsTest() {
    EXPECT_TRUE(WriteFileAtomically(controller_.File("topology.toml"),
                                    "[system]\nname = \"test\"\n"
                                    "[nam]\nuser_quota = \"3M\"\n"
                                    "[[module]]\nname = \"cluster\"\nid = 0\n"
                                    "[[module.node]]\nnames = \"cn0\"\ncores = 4\n"
                                    "[[module]]\nname = \"nam\"\nid = 1\nkind = \"nam\"\n"
                                    "[[module.node]]\nnames = \"nam0\"\ncores = 1\nnam = \"4M\"\n")
                    .ok());
  }
  void Start() {
    controller_.Start();
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    regions_ = v1::RegionService::NewStub(
        grpc::CreateCustomChannel(controller_.Address(), grpc::InsecureChannelCredentials(), arguments));
  }
  void StartWithNamd() {
    Start();
    ComeUp();
  }
  void ComeUp(FakeNamd::Disk disk = FakeNamd::Disk()) {
    namd_ = std::make_unique<FakeNamd>("nam0", controller_.Address(), Bytes(4 * kMiB), std::move(disk));
    ASSERT_TRUE(Eventually(kLimit, [&] { return !namd_->Told<wire::NamdWelcome>().empty(); }));
  }

  template <class Request, class Reply>
  using Method = grpc::Status (v1::RegionService::Stub::*)(grpc::ClientContext*, const Request&, Reply*);
  template <class Request, class Reply>
  grpc::Status Call(Method<Request, Reply> method, const Request& request, Reply* reply = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    Reply unused;
    return ((*regions_).*method)(&context, request, reply != nullptr ? reply : &unused);
  }

  static v1::CreateRegionRequest Creation(const std::string& name, std::uint64_t bytes) {
    v1::CreateRegionRequest request;
    request.set_token("token of " + name);
    request.set_name(name);
    request.add_segments()->set_bytes(bytes);
    return request;
  }
  grpc::Status Create(const std::string& name, std::uint64_t bytes = 4096,
                      v1::CreateRegionReply* reply = nullptr) {
    return Call(&v1::RegionService::Stub::Create, Creation(name, bytes), reply);
  }
  grpc::Status Remove(const std::string& name, bool force = false) {
    v1::RemoveRegionRequest request;
    request.set_region(name);
    request.set_force(force);
    return Call(&v1::RegionService::Stub::Remove, request);
  }
  std::vector<v1::NamRegion> List(const std::string& name = "") {
    v1::ListRegionsRequest request;
    request.set_region(name);
    v1::ListRegionsReply reply;
    (void)Call(&v1::RegionService::Stub::List, request, &reply);
    return {reply.regions().begin(), reply.regions().end()};
  }
  bool IsIn(const std::string& name, v1::NamRegionState state) {
    const auto found = List(name);
    return found.size() == 1 && found[0].state() == state;
  }

  // An rpc that holds a lease while it is open.
  struct Opened {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::OpenRegionReply>> stream;
    v1::OpenRegionReply first;
    bool granted = false;
    grpc::Status End() {
      v1::OpenRegionReply more;
      while (stream->Read(&more)) ADD_FAILURE() << "a second reply";
      return stream->Finish();
    }
  };
  std::unique_ptr<Opened> Open(const std::string& name, std::uint32_t rights = 3) {
    auto opened = std::make_unique<Opened>();
    opened->context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1::OpenRegionRequest request;
    request.set_region(name);
    request.set_rights(rights);
    opened->stream = regions_->Open(&opened->context, request);
    opened->granted = opened->stream->Read(&opened->first);
    return opened;
  }
  grpc::Status OpenFails(const std::string& name, std::uint32_t rights = 3) {
    const auto opened = Open(name, rights);
    EXPECT_FALSE(opened->granted);
    return opened->stream->Finish();
  }
  std::uint64_t UsedBytes() {
    v1::RegionUsageReply reply;
    EXPECT_TRUE(Call(&v1::RegionService::Stub::Usage, v1::RegionUsageRequest(), &reply).ok());
    return reply.nodes_size() == 1 ? reply.nodes(0).used() : 0;
  }

  ControllerProcess controller_;
  std::unique_ptr<v1::RegionService::Stub> regions_;
  std::unique_ptr<FakeNamd> namd_;
};

TEST_F(RegionsTest, ACreationIsAnsweredWhenItsMemoryIsThereAndOutlivesTheController) {
  StartWithNamd();
  namd_->Hold();
  v1::CreateRegionReply reply;
  auto creating = std::async(std::launch::async, [&] { return Create("field", 4096, &reply); });
  ASSERT_TRUE(Eventually(kLimit, [&] { return !namd_->Told<wire::NamExtentAllocate>().empty(); }));
  EXPECT_EQ(creating.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_TRUE(namd_->Told<wire::NamExtentCommit>().empty());
  namd_->Release();
  const grpc::Status status = creating.get();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.region().name(), "field");
  EXPECT_EQ(reply.region().segments(0).node(), "nam0");
  EXPECT_EQ(reply.region().uid(), ::geteuid());
  ASSERT_TRUE(Eventually(kLimit, [&] { return namd_->Told<wire::NamExtentCommit>().size() == 1; }));
  const FakeNamd::Disk disk = namd_->disk();
  ASSERT_EQ(disk.extents.size(), 1u);
  controller_.Kill();
  namd_.reset();
  Start();
  EXPECT_TRUE(IsIn("field", v1::NAM_AWAY));
  ComeUp(disk);
  ASSERT_TRUE(Eventually(kLimit, [&] { return IsIn("field", v1::NAM_READY); }));
  EXPECT_EQ(List("field").at(0).uuid(), reply.region().uuid());
  EXPECT_THAT(namd_->Told<wire::NamdWelcome>().at(0).extents, SizeIs(1));
}

TEST_F(RegionsTest, MemoryThatTheNodeRefusesFailsTheCreationAndLeavesNothing) {
  StartWithNamd();
  namd_->Fail(Code::kResourceExhausted, "/dev/shm is full");
  const grpc::Status status = Create("field");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("nam0"), HasSubstr("/dev/shm is full")));
  EXPECT_TRUE(List().empty());
  EXPECT_EQ(UsedBytes(), 0u);
  namd_->Fail(Code::kOk);
  const grpc::Status again = Create("field");
  EXPECT_TRUE(again.ok()) << again.error_message();
}

TEST_F(RegionsTest, WhatCannotBeIsRefusedWithItsReason) {
  Start();
  grpc::Status status = Create("early");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  ComeUp();
  status = Create("large", 3 * kMiB + 1);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("3M"), HasSubstr("quota"))) << status.error_message();
  EXPECT_EQ(Create("no/name").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Call(&v1::RegionService::Stub::Create, v1::CreateRegionRequest()).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Remove("nothing").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(OpenFails("nothing").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(OpenFails("nothing", 99).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(namd_->Told<wire::NamExtentAllocate>().empty()) << "memory was asked for before the checks";
}

TEST_F(RegionsTest, ARepeatedTokenMakesNoSecondRegion) {
  StartWithNamd();
  v1::CreateRegionReply first, second;
  ASSERT_TRUE(Create("field", 4096, &first).ok());
  ASSERT_TRUE(Create("field", 4096, &second).ok());
  EXPECT_EQ(first.region().uuid(), second.region().uuid());
  EXPECT_THAT(namd_->Told<wire::NamExtentAllocate>(), SizeIs(1));
  v1::CreateRegionRequest other = Creation("field", 4096);
  other.set_token("another");
  EXPECT_EQ(Call(&v1::RegionService::Stub::Create, other).error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(RegionsTest, AnOpenRegionIsRemovedByForceAloneAndItsHolderIsTold) {
  StartWithNamd();
  ASSERT_TRUE(Create("field").ok());
  const auto opened = Open("field");
  ASSERT_TRUE(opened->granted);
  EXPECT_FALSE(opened->first.lease().empty());
  const grpc::Status refused = Remove("field");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("msactl of pid " + std::to_string(::getpid())));
  ASSERT_THAT(List("field").at(0).holders(), SizeIs(1));
  namd_->Hold();
  ASSERT_TRUE(Remove("field", true).ok());
  const grpc::Status ended = opened->End();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(ended.error_message(), HasSubstr("'field'"));
  ASSERT_TRUE(Eventually(kLimit, [&] { return !namd_->Told<wire::NamRevoke>().empty(); }));
  EXPECT_THAT(namd_->Told<wire::NamRevoke>()[0].leases, SizeIs(1));
  // The memory counts until the node has given it back.
  ASSERT_TRUE(Eventually(kLimit, [&] { return !namd_->Told<wire::NamExtentFree>().empty(); }));
  EXPECT_GT(UsedBytes(), 0u);
  namd_->Release();
  ASSERT_TRUE(Eventually(kLimit, [&] { return UsedBytes() == 0; }));
  EXPECT_TRUE(List().empty());
}

TEST_F(RegionsTest, ALeaseEndsWithItsCall) {
  StartWithNamd();
  ASSERT_TRUE(Create("field").ok());
  // The creation's own.
  ASSERT_TRUE(Eventually(kLimit, [&] { return namd_->Told<wire::NamRevoke>().size() == 1; }));
  const auto opened = Open("field");
  ASSERT_TRUE(opened->granted);
  opened->context.TryCancel();
  EXPECT_EQ(opened->End().error_code(), grpc::StatusCode::CANCELLED);
  ASSERT_TRUE(Eventually(kLimit, [&] { return namd_->Told<wire::NamRevoke>().size() == 2; }));
  const grpc::Status removed = Remove("field");
  EXPECT_TRUE(removed.ok()) << removed.error_message();
}

TEST_F(RegionsTest, ACallThatLeavesBeforeItsCreationIsDoneHoldsNothing) {
  StartWithNamd();
  namd_->Hold();
  {
    grpc::ClientContext context;
    v1::CreateRegionReply reply;
    auto creating = std::async(std::launch::async,
                               [&] { return regions_->Create(&context, Creation("field", 4096), &reply); });
    ASSERT_TRUE(Eventually(kLimit, [&] { return !namd_->Told<wire::NamExtentAllocate>().empty(); }));
    context.TryCancel();
    EXPECT_EQ(creating.get().error_code(), grpc::StatusCode::CANCELLED);
  }
  namd_->Release();
  // A persistent region that was asked for may be there; nobody holds it.
  ASSERT_TRUE(Eventually(kLimit, [&] { return List().empty() || IsIn("field", v1::NAM_READY); }));
  for (const v1::NamRegion& region : List("field")) EXPECT_THAT(region.holders(), SizeIs(0));
  const grpc::Status again = Create("field");
  EXPECT_TRUE(again.ok()) << again.error_message();
  EXPECT_TRUE(Remove("field").ok());
}

TEST_F(RegionsTest, ANodeThatIsAwayTakesItsRegionsWithItUntilItIsBack) {
  StartWithNamd();
  ASSERT_TRUE(Create("field").ok());
  namd_->Die();
  ASSERT_TRUE(Eventually(kLimit, [&] { return IsIn("field", v1::NAM_AWAY); }));
  EXPECT_EQ(OpenFails("field").error_code(), grpc::StatusCode::UNAVAILABLE);
  v1::CheckRegionsReply checked;
  ASSERT_TRUE(Call(&v1::RegionService::Stub::Check, v1::CheckRegionsRequest(), &checked).ok());
  ASSERT_EQ(checked.away_size(), 1);
  EXPECT_EQ(checked.away(0), "nam0");
  namd_->Return();
  ASSERT_TRUE(Eventually(kLimit, [&] { return IsIn("field", v1::NAM_READY); }));
  EXPECT_TRUE(Open("field")->granted);
}

TEST_F(RegionsTest, ADamagedRegionIsNotOpened) {
  StartWithNamd();
  ASSERT_TRUE(Create("field").ok());
  const auto [uuid, generation] = namd_->disk().extents.begin()->first;
  namd_->Say(wire::NamExtentDamaged{uuid, generation, "cut to 0 bytes"});
  ASSERT_TRUE(Eventually(kLimit, [&] { return IsIn("field", v1::NAM_DAMAGED); }));
  EXPECT_EQ(OpenFails("field").error_code(), grpc::StatusCode::DATA_LOSS);
  controller_.Kill();
  Start();
  EXPECT_TRUE(Eventually(kLimit, [&] { return IsIn("field", v1::NAM_DAMAGED); })) << "forgotten by a restart";
}

TEST_F(RegionsTest, AResizeMakesANewLayoutAndFreesTheOld) {
  StartWithNamd();
  ASSERT_TRUE(Create("field").ok());
  v1::ResizeRegionRequest request;
  request.set_region("field");
  request.add_segments(8192);
  {
    const auto opened = Open("field");
    ASSERT_TRUE(opened->granted);
    EXPECT_EQ(Call(&v1::RegionService::Stub::Resize, request).error_code(),
              grpc::StatusCode::FAILED_PRECONDITION);
    opened->context.TryCancel();
    (void)opened->stream->Finish();
  }
  ASSERT_TRUE(Eventually(kLimit, [&] { return List("field").at(0).holders_size() == 0; }));
  const grpc::Status resized = Call(&v1::RegionService::Stub::Resize, request);
  ASSERT_TRUE(resized.ok()) << resized.error_message();
  const auto allocations = namd_->Told<wire::NamExtentAllocate>();
  ASSERT_EQ(allocations.size(), 2u);
  EXPECT_EQ(allocations[1].copy_from, allocations[0].generation);
  EXPECT_EQ(List("field").at(0).bytes(), 8192u);
  EXPECT_GT(List("field").at(0).generation(), 1u);
  ASSERT_TRUE(Eventually(kLimit, [&] { return namd_->disk().extents.size() == 1; }));
  EXPECT_EQ(namd_->disk().extents.begin()->first.second, allocations[1].generation);
}

TEST_F(RegionsTest, ExtentsThatNoRegionKnowsAreFoundAndFreedWhenThatIsAsked) {
  Start();
  FakeNamd::Disk disk;
  disk.extents[{RegionUuid{7, 7}, Generation(1)}] = {wire::NamExtentState::kCommitted, Bytes(64)};
  disk.extents[{RegionUuid{7, 8}, Generation(1)}] = {wire::NamExtentState::kPending, Bytes(64)};
  ComeUp(disk);
  v1::CheckRegionsRequest request;
  v1::CheckRegionsReply reply;
  ASSERT_TRUE(Call(&v1::RegionService::Stub::Check, request, &reply).ok());
  ASSERT_EQ(reply.findings_size(), 1) << reply.ShortDebugString();
  EXPECT_EQ(reply.findings(0).node(), "nam0");
  EXPECT_FALSE(reply.findings(0).repaired());
  EXPECT_TRUE(namd_->Told<wire::NamExtentFree>().empty());
  request.set_repair(true);
  reply.Clear();
  ASSERT_TRUE(Call(&v1::RegionService::Stub::Check, request, &reply).ok());
  ASSERT_EQ(reply.findings_size(), 1);
  EXPECT_TRUE(reply.findings(0).repaired());
  ASSERT_TRUE(Eventually(kLimit, [&] {
    return namd_->disk().extents.count({RegionUuid{7, 7}, Generation(1)}) == 0;
  }));
}

TEST_F(RegionsTest, AccessAndLifetimeAreChangedAndStayOverARestart) {
  StartWithNamd();
  ASSERT_TRUE(Create("field").ok());
  v1::SetRegionAccessRequest access;
  access.set_region("field");
  access.set_mode(0640);
  v1::NamAclEntry* entry = access.add_set();
  entry->set_id(4711);
  entry->set_rights(1);
  ASSERT_TRUE(Call(&v1::RegionService::Stub::SetAccess, access).ok());
  access.set_mode(01777);
  EXPECT_EQ(Call(&v1::RegionService::Stub::SetAccess, access).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  controller_.Kill();
  Start();
  const v1::NamRegion region = List("field").at(0);
  EXPECT_EQ(region.mode(), 0640u);
  ASSERT_EQ(region.acl_size(), 1);
  EXPECT_EQ(region.acl(0).id(), 4711u);
  EXPECT_EQ(region.lifetime(), v1::NAM_PERSISTENT);
}

TEST_F(RegionsTest, OpenCallsEndAsUnavailableWhenTheControllerLeaves) {
  StartWithNamd();
  ASSERT_TRUE(Create("field").ok());
  const auto opened = Open("field");
  ASSERT_TRUE(opened->granted);
  EXPECT_EQ(controller_.Terminate(), 0);
  EXPECT_EQ(opened->End().error_code(), grpc::StatusCode::UNAVAILABLE);
  Start();
  ASSERT_TRUE(Eventually(kLimit, [&] { return IsIn("field", v1::NAM_READY); }));
  EXPECT_THAT(List("field").at(0).holders(), SizeIs(0)) << "of a call that ended with the controller";
}

}  // namespace
}  // namespace msa
