// Regions while the controller's state cannot be written: who only uses what is there goes on, who wants
// something kept is refused, and nothing is lost when there is room again.
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/base/nam_messages.h"
#include "msa/support/run_until.h"

#include "shell.h"
#include "shell_support.h"

namespace msa {
namespace {

using testing::HasSubstr;

class FullStore : public JobStore {
 public:
  Result<StoredState> LoadAll() override { return StoredState{}; }
  Status Commit(const std::vector<StoreChange>& changes) override {
    if (full) return Status(Code::kResourceExhausted, "disk is full");
    for (const StoreChange& change : changes) {
      if (std::holds_alternative<nam_effect::PutLease>(change)) leases += 1;
      if (std::holds_alternative<nam_effect::PutRegion>(change)) regions += 1;
      if (std::holds_alternative<nam_effect::DeleteRegion>(change)) deleted += 1;
    }
    return Status::Ok();
  }
  std::int64_t SizeBytes() const override { return 0; }

  bool full = false;
  int leases = 0;   // written
  int regions = 0;  // written
  int deleted = 0;  // regions
};

class Namd : public NodeLink {
 public:
  void Send(const node_control::Registered&) override {}
  void Send(node_control::StartJob) override {}
  void Send(node_control::ToJobd) override {}
  void Send(const node_control::QuitJob&) override {}
  void Send(node_control::ToNamd command) override { frames.push_back(std::move(command.frame)); }
  void Send(node_control::ToSlurm) override {}
  void Close(Status) override {}

  // The last message of this kind; nullopt: none.
  template <class M>
  std::optional<M> Last() const {
    for (auto it = frames.rbegin(); it != frames.rend(); ++it) {
      if (it->type != M::kType) continue;
      auto message = wire::Decode<M>(it->payload);
      if (message.ok()) return std::move(*message);
    }
    return std::nullopt;
  }
  std::vector<wire::Frame> frames;
};

class ShellNamTest : public ::testing::Test {
 protected:
  ShellNamTest()
      : loop_(std::move(*EventLoop::Create())),
        controller_(OneNode("nam", {.name = "nam0", .cores = 1, .nam = Bytes(1 << 20)}), {}),
        shell_(*loop_, controller_, store_,
               {.system_name = "test", .commit_retry = Millis(5), .check_room = [this] { return room_; }}) {
    EXPECT_TRUE(shell_.Start().ok());
    shell_.AddLink("nam0", 1, namd_);
    shell_.Handle(event::NodeRegistered{.node = "nam0", .session = 1, .facts = {.cores = 1}});
    shell_.Handle(event::NamdUp{"nam0", 1, {.capacity = Bytes(1 << 20), .socket = "/s"}});
    std::optional<Status> made;
    Call(Create("fields"), &made);
    Allocated();
    EXPECT_TRUE(made && made->ok());
  }

  static wire::NamCreate Create(const std::string& name) {
    wire::NamCreate create;
    create.name = name;
    create.lifetime = wire::NamLifetime::kPersistent;
    create.segments = {{Bytes(64), 8}};
    return create;
  }
  void Call(NamRequest request, std::optional<Status>* told, NamReplyBody* body = nullptr) {
    event::NamCall call;
    call.caller.user = {1000, 100};
    call.caller.user_name = "ada";
    call.caller.holder.call = 7;
    call.request = std::move(request);
    call.random = {1, ++random_};
    shell_.CallNam(std::move(call), [told, body](const Status& status, const NamReplyBody& reply) {
      *told = status;
      if (body != nullptr) *body = reply;
    });
  }
  Status Told(NamRequest request, NamReplyBody* body = nullptr) {
    std::optional<Status> told;
    Call(std::move(request), &told, body);
    EXPECT_TRUE(told.has_value()) << "no answer";
    return told.value_or(Status(Code::kInternal, "no answer"));
  }
  // What namd is told to free at once.
  std::optional<wire::NamExtentFree> Remove(std::optional<Status>* told) {
    Call(wire::NamRemove{"fields", false}, told);
    return namd_->Last<wire::NamExtentFree>();
  }
  void FromNamd(NamdMessage message) {
    shell_.Handle(event::FromNamd{"nam0", 1, std::move(message), {2, ++random_}, "ada"});
  }
  void Allocated() {
    const auto asked = namd_->Last<wire::NamExtentAllocate>();
    ASSERT_TRUE(asked.has_value());
    FromNamd(wire::NamExtentDone{asked->request, 0, ""});
  }
  // Of a process outside any job: the type of the answer.
  template <class M>
  std::optional<wire::NamToLocal> OfProcess(const M& request) {
    namd_->frames.clear();
    FromNamd(wire::NamFromLocal{.connection = 5,
                                .uid = 1000,
                                .gid = 100,
                                .pid = 4711,
                                .type = M::kType,
                                .id = 9,
                                .payload = wire::Encode(request)});
    return namd_->Last<wire::NamToLocal>();
  }
  bool SettleUntil(const std::function<bool()>& condition) {
    return support::RunUntil(*loop_, Millis(5'000), condition);
  }

  std::unique_ptr<EventLoop> loop_;
  FullStore store_;
  Status room_;
  std::shared_ptr<Namd> namd_ = std::make_shared<Namd>();
  Controller controller_;
  Shell shell_;
  std::uint64_t random_ = 0;
};

TEST_F(ShellNamTest, AFullDiskKeepsNobodyFromUsingTheRegionsThatAreThere) {
  store_.full = true;
  const int before = store_.leases;
  for (int i = 0; i < 2; ++i) {  // the one that finds the disk full, and one that comes later
    NamReplyBody body;
    EXPECT_TRUE(Told(wire::NamOpen{"", "fields"}, &body).ok());
    ASSERT_TRUE(std::holds_alternative<NamLeaseReply>(body));
    EXPECT_TRUE(Told(wire::NamClose{std::get<NamLeaseReply>(body).granted.lease}).ok());
    EXPECT_TRUE(Told(wire::NamOpen{"", "fields"}).ok());
  }
  NamReplyBody listing;
  EXPECT_TRUE(Told(wire::NamList{}, &listing).ok());
  EXPECT_EQ(std::get<wire::NamListing>(listing).regions.size(), 1u);
  EXPECT_TRUE(Told(wire::NamUsageAsk{}).ok());
  EXPECT_EQ(store_.leases, before);
  store_.full = false;
  EXPECT_TRUE(SettleUntil([&] { return store_.leases > before; })) << "the leases were never written";
  EXPECT_TRUE(controller_.CheckInvariants().ok());
}

TEST_F(ShellNamTest, AFullDiskRefusesWhatIsToBeKeptAndChangesNothing) {
  store_.full = true;
  ASSERT_TRUE(Told(wire::NamOpen{"", "fields"}).ok());
  const std::vector<NamRequest> requests = {Create("more"),
                                            wire::NamSetAccess{.region = "fields", .mode = 0644}};
  for (const NamRequest& request : requests) {
    const Status status = Told(request);
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    EXPECT_THAT(status.message(),
                testing::AllOf(HasSubstr("nothing was changed"), HasSubstr("disk is full")));
  }
  const int regions = store_.regions;
  store_.full = false;
  std::optional<Status> made;
  ASSERT_TRUE(SettleUntil([&] {
    made.reset();
    Call(Create("more"), &made);
    return !made;  // not refused: it waits for its memory
  }));
  Allocated();
  EXPECT_TRUE(made && made->ok());
  EXPECT_EQ(store_.regions, regions + 1);
  NamReplyBody listing;
  EXPECT_TRUE(Told(wire::NamList{}, &listing).ok());
  EXPECT_EQ(std::get<wire::NamListing>(listing).regions.size(), 2u);
  EXPECT_TRUE(controller_.CheckInvariants().ok());
}

TEST_F(ShellNamTest, AFullDiskKeepsNobodyFromRemovingARegionWhichMayMakeRoom) {
  store_.full = true;
  std::optional<Status> told;
  const auto freed = Remove(&told);  // finds the disk full
  ASSERT_TRUE(freed.has_value()) << "the memory waits for room that it would make";
  store_.full = false;
  FromNamd(wire::NamExtentDone{freed->request, 0, ""});
  ASSERT_TRUE(SettleUntil([&] { return told.has_value(); }));
  EXPECT_TRUE(told->ok()) << told->ToString();
  EXPECT_EQ(store_.deleted, 1);
  EXPECT_TRUE(controller_.CheckInvariants().ok());
}

TEST_F(ShellNamTest, ARemovalThatMakesNoRoomIsToldSo) {
  store_.full = true;
  ASSERT_TRUE(Told(wire::NamOpen{"", "fields"}).ok());
  std::optional<Status> told;
  const auto freed = Remove(&told);
  ASSERT_TRUE(freed.has_value());
  FromNamd(wire::NamExtentDone{freed->request, 0, ""});
  ASSERT_TRUE(SettleUntil([&] { return told.has_value(); }));
  EXPECT_EQ(told->code(), Code::kResourceExhausted);
  EXPECT_THAT(told->message(), HasSubstr("is carried out"));
  store_.full = false;
  EXPECT_TRUE(SettleUntil([&] { return store_.deleted == 1; }));
}

TEST_F(ShellNamTest, WhatIsToBeKeptIsRefusedBeforeTheDiskIsFullAltogether) {
  room_ = Status(Code::kResourceExhausted, "8 KiB are free");
  const Status status = Told(Create("more"));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("nothing was changed"), HasSubstr("8 KiB")));
  const auto refused = OfProcess(Create("more"));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->type, wire::NamFailed::kType);
  EXPECT_TRUE(Told(wire::NamOpen{"", "fields"}).ok());
  EXPECT_EQ(store_.regions, 1);
}

TEST_F(ShellNamTest, AFullDiskAnswersProcessesAtOnce) {
  store_.full = true;
  const auto opened = OfProcess(wire::NamOpen{"", "fields"});
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->type, wire::NamGranted::kType);
  const auto refused = OfProcess(Create("more"));
  ASSERT_TRUE(refused.has_value()) << "it would wait for the disk";
  EXPECT_EQ(refused->connection, 5u);
  EXPECT_EQ(refused->id, 9u);
  ASSERT_EQ(refused->type, wire::NamFailed::kType);
  const auto failed = wire::Decode<wire::NamFailed>(refused->payload);
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(static_cast<Code>(failed->code), Code::kResourceExhausted);
  EXPECT_THAT(failed->message, HasSubstr("disk is full"));
}

TEST_F(ShellNamTest, AFullDiskKeepsNoNamdFromComingBack) {
  store_.full = true;
  ASSERT_TRUE(Told(wire::NamOpen{"", "fields"}).ok());
  std::optional<Status> told;
  const auto freed = Remove(&told);
  ASSERT_TRUE(freed.has_value());
  // It was there still when this was said.
  namd_->frames.clear();
  shell_.Handle(event::NamdUp{
      "nam0",
      1,
      {.capacity = Bytes(1 << 20),
       .socket = "/s",
       .extents = {{freed->uuid, freed->generation, wire::NamExtentState::kCommitted, Bytes(64)}}}});
  EXPECT_TRUE(namd_->Last<wire::NamdWelcome>().has_value()) << "it serves nobody before its welcome";
  store_.full = false;
  ASSERT_TRUE(SettleUntil([&] { return namd_->Last<wire::NamExtentFree>().has_value(); }));
  FromNamd(wire::NamExtentDone{namd_->Last<wire::NamExtentFree>()->request, 0, ""});
  ASSERT_TRUE(SettleUntil([&] { return store_.deleted == 1; }));
  std::optional<Status> checked;
  NamReplyBody body;
  Call(wire::NamCheckAsk{}, &checked, &body);
  FromNamd(wire::NamScanned{.request = namd_->Last<wire::NamScan>()->request});
  ASSERT_TRUE(checked && checked->ok());
  EXPECT_EQ(std::get<wire::NamCheckResult>(body).findings.size(), 0u) << "an extent is left that nobody has";
}

TEST_F(ShellNamTest, AFullDiskKeepsFsckFromNothingButRepairs) {
  store_.full = true;
  ASSERT_TRUE(Told(wire::NamOpen{"", "fields"}).ok());
  std::optional<Status> told;
  Call(wire::NamCheckAsk{}, &told);
  const auto asked = namd_->Last<wire::NamScan>();
  ASSERT_TRUE(asked.has_value());
  EXPECT_FALSE(told.has_value());
  FromNamd(wire::NamScanned{.request = asked->request});
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->ok());
  EXPECT_FALSE(Told(wire::NamCheckAsk{true}).ok());
}

}  // namespace
}  // namespace msa
