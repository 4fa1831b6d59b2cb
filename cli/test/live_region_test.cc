#include "region/live_region.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_regions.h"

namespace msa::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

// libmsanam as far as msactl uses it, in memory.
struct FakeLibrary {
  std::vector<std::byte> memory = std::vector<std::byte>(64);
  std::vector<int> answers;  // of the next calls; then 0
  int attached = 0;          // open handles
  int attaches = 0;
  int locks = 0;
  std::string text;
  std::uint32_t timeout = 0;

  int Next() {
    if (answers.empty()) return MSA_NAM_OK;
    const int out = answers.front();
    answers.erase(answers.begin());
    text = out == MSA_NAM_OK ? "" : "what namd said";
    return out;
  }
};
FakeLibrary* fake = nullptr;

NamLibrary Functions() {
  NamLibrary out;
  out.error_name = [](int) { return "MSA_NAM_ERR"; };
  out.error_text = [] { return fake->text.c_str(); };
  out.attach = [](const void* lease, size_t bytes, msa_nam_region_t* region) {
    EXPECT_EQ(std::string(static_cast<const char*>(lease), bytes), "blob");
    const int error = fake->Next();
    if (error != 0) return error;
    ++fake->attached;
    ++fake->attaches;
    *region = reinterpret_cast<msa_nam_region_t>(fake);
    return 0;
  };
  out.close = [](msa_nam_region_t) {
    --fake->attached;
    fake->locks = 0;
    return 0;
  };
  out.set_timeout = [](msa_nam_region_t, uint32_t ms) {
    fake->timeout = ms;
    return 0;
  };
  out.put = [](msa_nam_region_t, uint32_t, uint64_t offset, const void* from, uint64_t bytes) {
    const int error = fake->Next();
    if (error == 0) std::memcpy(fake->memory.data() + offset, from, bytes);
    return error;
  };
  out.get = [](msa_nam_region_t, uint32_t, uint64_t offset, void* to, uint64_t bytes) {
    const int error = fake->Next();
    if (error == 0) std::memcpy(to, fake->memory.data() + offset, bytes);
    return error;
  };
  out.lock = [](msa_nam_region_t, uint32_t, enum msa_nam_lock_mode) {
    const int error = fake->Next();
    if (error == 0) ++fake->locks;
    return error;
  };
  out.unlock = [](msa_nam_region_t, uint32_t) {
    --fake->locks;
    return 0;
  };
  return out;
}

class Live : public testing::Test {
 protected:
  Live() {
    fake = &library_;
    info_.uuid = {1, 2};
    info_.generation = Generation(1);
    info_.name = "fields";
  }
  ~Live() override { fake = nullptr; }

  std::unique_ptr<RegionIo> Open() {
    LiveOptions options;
    options.patience = 10s;
    options.stop = [this] { return stop_; };
    options.now = [this] { return now_; };
    options.pause = [this](Millis pause) { now_ += pause; };
    auto out = LiveRegion::Open(
        Functions(), [this] { return Lease(); }, options);
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out.ok() ? *std::move(out) : nullptr;
  }
  Result<RegionLease> Lease() {
    if (!refusals_.empty()) {
      const Status out = refusals_.front();
      refusals_.erase(refusals_.begin());
      return out;
    }
    ++leases_;
    return RegionLease{info_, "blob", std::shared_ptr<void>(this, [this](void*) { --leases_; })};
  }
  Status Write(RegionIo& region) { return region.Write(0, 3, std::as_bytes(std::span("hello", 5))); }

  FakeLibrary library_;
  wire::NamRegionInfo info_;
  std::vector<Status> refusals_;
  int leases_ = 0;  // alive
  bool stop_ = false;
  SteadyTime now_{};
};

TEST_F(Live, PutsAndGetsAndGivesItsLeaseBack) {
  {
    const auto region = Open();
    EXPECT_TRUE(Write(*region).ok());
    std::array<std::byte, 5> got{};
    EXPECT_TRUE(region->Read(0, 3, got).ok());
    EXPECT_EQ(std::memcmp(got.data(), "hello", 5), 0);
    EXPECT_EQ(library_.timeout, 5000U) << "no call outlasts a look at Ctrl-C";
    EXPECT_EQ(leases_, 1);
  }
  EXPECT_EQ(library_.attached, 0);
  EXPECT_EQ(leases_, 0);
}

TEST_F(Live, AsksForANewLeaseWhenItsOwnHasEnded) {
  const auto region = Open();
  library_.answers = {MSA_NAM_ERR_STALE};
  EXPECT_TRUE(Write(*region).ok());
  EXPECT_EQ(library_.attaches, 2);
  EXPECT_EQ(library_.attached, 1);
  EXPECT_EQ(leases_, 1) << "the old one was given back";
  EXPECT_EQ(static_cast<char>(library_.memory[3]), 'h');
}

TEST_F(Live, WaitsForANodeOrAControllerThatComesBack) {
  const auto region = Open();
  library_.answers = {MSA_NAM_ERR_UNAVAILABLE, MSA_NAM_ERR_UNAVAILABLE, MSA_NAM_OK, MSA_NAM_ERR_TIMEOUT};
  refusals_ = {Status(Code::kUnavailable, "node 'nam0' is away"),
               Status(Code::kUnavailable, "the controller")};
  EXPECT_TRUE(Write(*region).ok());
  EXPECT_EQ(static_cast<char>(library_.memory[3]), 'h');
}

TEST_F(Live, GivesUpWithTheReasonWhenItsPatienceEnds) {
  const auto region = Open();
  library_.answers = {MSA_NAM_ERR_UNAVAILABLE};
  refusals_.assign(1000, Status(Code::kUnavailable, "node 'nam0' is away"));
  const Status status = Write(*region);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("given up after 10 s"), HasSubstr("node 'nam0' is away")));
  EXPECT_GE(now_.time_since_epoch(), 10s);
  EXPECT_LE(now_.time_since_epoch(), 11s);
}

TEST_F(Live, StopsWaitingAtCtrlC) {
  const auto region = Open();
  library_.answers = {MSA_NAM_ERR_UNAVAILABLE};
  stop_ = true;
  EXPECT_EQ(Write(*region).code(), Code::kCancelled);
}

TEST_F(Live, DoesNotGoOnInAnotherRegionOfThatName) {
  const auto region = Open();
  library_.answers = {MSA_NAM_ERR_STALE};
  info_.generation = Generation(2);
  const Status status = Write(*region);
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_THAT(status.message(), HasSubstr("was resized or restored meanwhile"));
  EXPECT_EQ(static_cast<char>(library_.memory[3]), '\0');
}

TEST_F(Live, SaysThatTheRegionWasRemovedThoughAnotherHasItsName) {
  const auto region = Open();
  library_.answers = {MSA_NAM_ERR_STALE};
  info_.uuid = {7, 7};
  const Status status = Write(*region);
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("was removed meanwhile"), HasSubstr("another one has its name")));
  EXPECT_EQ(static_cast<char>(library_.memory[3]), '\0');
}

TEST_F(Live, SaysThatTheRegionWasRemovedWhereNoneHasItsName) {
  const auto region = Open();
  library_.answers = {MSA_NAM_ERR_STALE};
  refusals_ = {Status(Code::kNotFound, "no region 'fields'")};
  const Status status = Write(*region);
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_THAT(status.message(), HasSubstr("'fields' was removed meanwhile"));
}

TEST_F(Live, DoesNotTryAgainWhatCannotSucceed) {
  const auto region = Open();
  for (const auto& [error, code] : {std::pair{MSA_NAM_ERR_DENIED, Code::kPermissionDenied},
                                    {MSA_NAM_ERR_LOST, Code::kDataLoss},
                                    {MSA_NAM_ERR_RANGE, Code::kOutOfRange},
                                    {MSA_NAM_ERR_INTERNAL, Code::kInternal}}) {
    library_.answers = {error};
    const Status status = Write(*region);
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("region 'fields': put"), HasSubstr("what namd said")));
  }
  EXPECT_EQ(library_.attaches, 1);
}

TEST_F(Live, WaitsForALockAndSaysWhenItWasLost) {
  const auto region = Open();
  library_.answers = {MSA_NAM_ERR_TIMEOUT, MSA_NAM_ERR_TIMEOUT};
  EXPECT_TRUE(region->Take(0, RegionIo::Lock::kShared).ok());
  EXPECT_EQ(library_.attaches, 1) << "the same lease";
  EXPECT_TRUE(region->Free(0).ok());
  EXPECT_EQ(library_.locks, 0);
  ASSERT_TRUE(region->Take(0, RegionIo::Lock::kShared).ok());
  library_.answers = {MSA_NAM_ERR_STALE};
  const Status lost = Write(*region);
  EXPECT_EQ(lost.code(), Code::kAborted);
  EXPECT_THAT(lost.message(), HasSubstr("the lock was lost"));
  EXPECT_TRUE(region->Free(0).ok()) << "nothing is left to free";
  EXPECT_TRUE(region->Take(0, RegionIo::Lock::kExclusive).ok());
  EXPECT_TRUE(Write(*region).ok());
}

}  // namespace
}  // namespace msa::cli
