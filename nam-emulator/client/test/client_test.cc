// What needs no daemon: errors, arguments, environment, and what a lease may say.

#include <msa_nam.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

#include "control.h"
#include "errors.h"
#include "extent.h"
#include "lease.h"

namespace msa::nam {
namespace {

using testing::HasSubstr;

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    if (value != nullptr)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~Environment() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Errors, EveryErrorHasItsName) {
  EXPECT_STREQ(msa_nam_error_name(MSA_NAM_OK), "MSA_NAM_OK");
  EXPECT_STREQ(msa_nam_error_name(MSA_NAM_ERR_RANGE), "MSA_NAM_ERR_RANGE");
  EXPECT_STREQ(msa_nam_error_name(MSA_NAM_ERR_UNKNOWN), "MSA_NAM_ERR_UNKNOWN");
  EXPECT_STREQ(msa_nam_error_name(MSA_NAM_ERR_INTERNAL), "MSA_NAM_ERR_INTERNAL");
  EXPECT_NE(msa_nam_error_name(-1), nullptr);
  EXPECT_NE(msa_nam_error_name(14), nullptr);
}

TEST(Errors, CodesOfDaemonsBecomeTheInterfacesErrors) {
  const std::pair<Code, int> expected[] = {
      {Code::kInvalidArgument, MSA_NAM_ERR_ARG},      {Code::kNotFound, MSA_NAM_ERR_NOT_FOUND},
      {Code::kPermissionDenied, MSA_NAM_ERR_DENIED},  {Code::kUnauthenticated, MSA_NAM_ERR_DENIED},
      {Code::kOutOfRange, MSA_NAM_ERR_RANGE},         {Code::kResourceExhausted, MSA_NAM_ERR_NO_SPACE},
      {Code::kAlreadyExists, MSA_NAM_ERR_EXISTS},     {Code::kFailedPrecondition, MSA_NAM_ERR_STALE},
      {Code::kDeadlineExceeded, MSA_NAM_ERR_TIMEOUT}, {Code::kUnavailable, MSA_NAM_ERR_UNAVAILABLE},
      {Code::kUnknown, MSA_NAM_ERR_UNKNOWN},          {Code::kDataLoss, MSA_NAM_ERR_LOST},
      {Code::kInternal, MSA_NAM_ERR_INTERNAL}};
  for (const auto& [code, error] : expected)
    EXPECT_EQ(Finish("f", Status(code, "why")), error) << CodeName(code);
  EXPECT_EQ(Finish("f", Status(Code::kFailedPrecondition, "why"), Precondition::kBusy), MSA_NAM_ERR_BUSY);
  EXPECT_STREQ(msa_nam_error_text(), "f: why");
  EXPECT_EQ(Finish("g", Status::Ok()), 0);
}

TEST(Arguments, NullPointersAreErrorsWithAText) {
  std::int64_t number = 0;
  int done = 0;
  size_t bytes = 0;
  const void* blob = nullptr;
  msa_nam_region_t region = nullptr;
  msa_nam_request_t request = nullptr;
  struct msa_nam_stat stat;
  struct msa_nam_segment_stat segment_stat;
  const msa_nam_create_options options{};
  const msa_nam_strided shape{};
  const msa_nam_piece piece{};
  const int results[] = {
      msa_nam_create(nullptr, &region),
      msa_nam_create(&options, nullptr),
      msa_nam_open(nullptr, MSA_NAM_READ, &region),
      msa_nam_open("a", MSA_NAM_READ, nullptr),
      msa_nam_get_lease(nullptr, &blob, &bytes),
      msa_nam_attach(nullptr, 4, &region),
      msa_nam_attach("blob", 4, nullptr),
      msa_nam_close(nullptr),
      msa_nam_delete(nullptr, 0),
      msa_nam_set_lifetime(nullptr, MSA_NAM_LEASE),
      msa_nam_set_timeout(nullptr, 1),
      msa_nam_stat(nullptr, &stat),
      msa_nam_segment_stat(nullptr, 0, &segment_stat),
      msa_nam_put(nullptr, 0, 0, &number, 8),
      msa_nam_get(nullptr, 0, 0, &number, 8),
      msa_nam_put_strided(nullptr, 0, &shape, &number),
      msa_nam_get_strided(nullptr, 0, &shape, &number),
      msa_nam_putv(nullptr, 0, &piece, 1),
      msa_nam_getv(nullptr, 0, &piece, 1),
      msa_nam_iputv(nullptr, 0, &piece, 1, &request),
      msa_nam_igetv(nullptr, 0, &piece, 1, nullptr),
      msa_nam_test(nullptr, &done),
      msa_nam_wait(nullptr),
      msa_nam_flush(nullptr, 0),
      msa_nam_accumulate(nullptr, 0, 0, MSA_NAM_SUM, MSA_NAM_INT64, &number, 1),
      msa_nam_get_accumulate(nullptr, 0, 0, MSA_NAM_SUM, MSA_NAM_INT64, &number, &number, 1),
      msa_nam_compare_swap(nullptr, 0, 0, MSA_NAM_INT64, &number, &number, &number),
      msa_nam_fetch_add(nullptr, 0, 0, 1, &number),
      msa_nam_swap(nullptr, 0, 0, 1, &number),
      msa_nam_lock(nullptr, 0, MSA_NAM_SHARED),
      msa_nam_try_lock(nullptr, 0, MSA_NAM_SHARED),
      msa_nam_unlock(nullptr, 0)};
  int at = 0;
  for (const int result : results) EXPECT_EQ(result, MSA_NAM_ERR_ARG) << at++;
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("null pointer"));
}

TEST(Arguments, WhatNoControllerWouldTakeIsRefusedAtOnce) {
  msa_nam_region_t region = nullptr;
  const msa_nam_segment segment{64, 1, 0};
  const auto create = [&](auto change) {
    msa_nam_create_options options{};
    options.segments = &segment;
    options.segment_count = 1;
    change(options);
    return msa_nam_create(&options, &region);
  };
  for (const char* name : {"", ".hidden", "a b", "a/b", "msa-nam:0"})
    EXPECT_EQ(create([&](auto& o) { o.name = name; }), MSA_NAM_ERR_ARG) << name;
  const std::string longest(128, 'a');
  EXPECT_EQ(create([&](auto& o) { o.name = longest.c_str(); }), MSA_NAM_ERR_ARG);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("127"));
  EXPECT_EQ(create([](auto& o) { o.segment_count = 0; }), MSA_NAM_ERR_ARG);
  EXPECT_EQ(create([](auto& o) { o.segment_count = 65537; }), MSA_NAM_ERR_ARG);
  EXPECT_EQ(create([](auto& o) { o.segments = nullptr; }), MSA_NAM_ERR_ARG);
  EXPECT_EQ(create([](auto& o) { o.mode = 0700; }), MSA_NAM_ERR_ARG);
  EXPECT_EQ(msa_nam_open("a", MSA_NAM_WRITE, &region), MSA_NAM_ERR_ARG);
  EXPECT_EQ(msa_nam_open("a", 8, &region), MSA_NAM_ERR_ARG);
  const Environment transport("MSA_NAM_TRANSPORT", "pigeon");
  EXPECT_EQ(msa_nam_open("a", MSA_NAM_READ, &region), MSA_NAM_ERR_ARG);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("pigeon"));
  EXPECT_EQ(region, nullptr);
}

TEST(Surroundings, ADirectoryWithoutASystemIsUnavailableAndSaysWhatToDo) {
  const Environment job("MSA_JOB_SOCKET", nullptr);
  const Environment dir("MSA_DIR", "/nonexistent/system");
  const Environment timeout("MSA_NAM_TIMEOUT", "1");
  msa_nam_region_t region = nullptr;
  EXPECT_EQ(msa_nam_open("a", MSA_NAM_READ, &region), MSA_NAM_ERR_UNAVAILABLE);
  EXPECT_THAT(msa_nam_error_text(), HasSubstr("MSA_DIR"));
}

TEST(Surroundings, TheDefaultDirectoryIsTheRuntimeOneElseTheUsersOwn) {
  const Environment dir("MSA_DIR", nullptr);
  {
    const Environment runtime("XDG_RUNTIME_DIR", "/run/user/7");
    EXPECT_EQ(Surroundings::OfThisProcess().directory, "/run/user/7/msa");
  }
  const Environment runtime("XDG_RUNTIME_DIR", nullptr);
  EXPECT_EQ(Surroundings::OfThisProcess().directory, fmt::format("/tmp/msa-{}", geteuid()));
  EXPECT_TRUE(Surroundings::OfThisProcess().directory_is_default);
}

TEST(Surroundings, SocketsOfAllNamdsOfThisHostAreFound) {
  const support::ScratchDirectory dir;
  Surroundings here;
  here.directory = dir.path();
  EXPECT_EQ(FindNamdSockets(here).status().code(), Code::kUnavailable);
  for (const char* node : {"nam0", "nam1"}) {
    const std::string socket = dir / fmt::format("n/{}/namd.sock", node);
    std::filesystem::create_directories(std::filesystem::path(socket).parent_path());
    ASSERT_EQ(mknod(socket.c_str(), S_IFREG | 0600, 0), 0);
  }
  const auto sockets = FindNamdSockets(here);
  ASSERT_TRUE(sockets.ok());
  EXPECT_EQ(sockets->size(), 2u);
}

TEST(Surroundings, TheTimeoutIsInSecondsAndNonsenseIsIgnored) {
  for (const auto& [text, millis] :
       {std::pair{"2", 2000}, {"0.25", 250}, {"0", 0}, {"-1", 30000}, {"soon", 30000}, {"", 30000}}) {
    const Environment timeout("MSA_NAM_TIMEOUT", text);
    EXPECT_EQ(DefaultTimeout().count(), millis) << text;
  }
}

wire::NamLease SomeLease() {
  wire::NamLease lease;
  lease.uuid = {1, 2};
  lease.generation = Generation(1);
  lease.rights = NamRights::kAll;
  lease.extents.push_back({.node = "nam0"});
  lease.segments.push_back({.bytes = Bytes(64)});
  return lease;
}
std::string Blob(const wire::NamLease& lease) {
  return wire::Encode(wire::SignedNamLease{wire::Encode(lease), "signature"});
}

TEST(Leases, AreReadOrRefusedWhateverTheBytes) {
  const std::string good = Blob(SomeLease());
  EXPECT_TRUE(Lease::Parse(good, Lease::Origin::kController).ok());
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    const auto parsed = Lease::Parse(good.substr(0, cut), Lease::Origin::kController);
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument) << cut;
    }
  }
  wire::NamLease wrong = SomeLease();
  wrong.segments[0].extent = 1;
  EXPECT_EQ(Lease::Parse(Blob(wrong), Lease::Origin::kController).status().code(), Code::kInvalidArgument);
  wrong = SomeLease();
  wrong.segments[0].slot = 1u << 16;
  EXPECT_EQ(Lease::Parse(Blob(wrong), Lease::Origin::kController).status().code(), Code::kInvalidArgument);
  wrong = SomeLease();
  wrong.version = 99;
  EXPECT_EQ(Lease::Parse(Blob(wrong), Lease::Origin::kController).status().code(), Code::kInvalidArgument);
  msa_nam_region_t region = nullptr;
  EXPECT_EQ(msa_nam_attach("no lease", 8, &region), MSA_NAM_ERR_ARG);
}

TEST(Types, HaveTheSizesOfTheirCTypes) {
  EXPECT_EQ(msa_nam_type_bytes(MSA_NAM_INT8), 1u);
  EXPECT_EQ(msa_nam_type_bytes(MSA_NAM_LONG_DOUBLE), 16u);
  EXPECT_EQ(msa_nam_type_bytes(MSA_NAM_LONG_DOUBLE_INT), 32u);
  EXPECT_EQ(msa_nam_type_bytes(static_cast<msa_nam_type>(21)), 0u);
}

}  // namespace
}  // namespace msa::nam
