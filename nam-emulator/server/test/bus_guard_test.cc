#include "bus_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

namespace msa::namd {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBytes = 4 * kPage;

class BusGuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(BusGuard::Install().ok());
    BusGuard::Acknowledge();
    fd_.reset(::open((scratch_ / "extent").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(fd_.get(), kBytes), 0);
    base_ = static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0));
    ASSERT_NE(base_, MAP_FAILED);
  }
  void TearDown() override { ::munmap(base_, kBytes); }
  BusGuard Guard() const {
    struct stat st {};
    EXPECT_EQ(::fstat(fd_.get(), &st), 0);
    return BusGuard({base_, kBytes, kPage, st.st_ino});
  }
  static bool IsAwake() {
    pollfd wake{BusGuard::wake_fd(), POLLIN, 0};
    return ::poll(&wake, 1, 0) == 1;
  }
  static void Touch(char* at) { *static_cast<volatile char*>(at) = 'x'; }

  support::ScratchDirectory scratch_;
  UniqueFd fd_;
  char* base_ = nullptr;
};

TEST_F(BusGuardTest, OutlivesATruncatedFileAndSaysSo) {
  const BusGuard guard = Guard();
  Touch(base_ + 2 * kPage);
  EXPECT_FALSE(guard.damaged());
  EXPECT_FALSE(IsAwake());
  ASSERT_EQ(::ftruncate(fd_.get(), kPage), 0);
  Touch(base_);
  EXPECT_FALSE(guard.damaged()) << "that page is there";
  Touch(base_ + 2 * kPage + 17);
  EXPECT_TRUE(guard.damaged());
  EXPECT_TRUE(IsAwake());
  BusGuard::Acknowledge();
  EXPECT_FALSE(IsAwake());
}

TEST_F(BusGuardTest, GuardsEveryThread) {
  const BusGuard guard = Guard();
  ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
  std::thread first([&] { Touch(base_); });
  std::thread second([&] { Touch(base_ + 3 * kPage); });
  first.join();
  second.join();
  EXPECT_TRUE(guard.damaged());
}

TEST_F(BusGuardTest, GuardsOtherMappingsOfTheSameFile) {
  const BusGuard guard = Guard();
  void* const alias = ::mremap(base_, 0, kBytes, MREMAP_MAYMOVE);
  ASSERT_NE(alias, MAP_FAILED);
  ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
  Touch(static_cast<char*>(alias) + kPage);
  EXPECT_TRUE(guard.damaged());
  ::munmap(alias, kBytes);
}

TEST_F(BusGuardTest, GuardsAgainInASlotThatWasFreed) {
  { const BusGuard first = Guard(); }
  const BusGuard second = Guard();
  ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
  Touch(base_);
  EXPECT_TRUE(second.damaged());
}

using BusGuardDeathTest = BusGuardTest;

TEST_F(BusGuardDeathTest, LetsAnyOtherBusErrorBeFatal) {
  { const BusGuard before = Guard(); }
  ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
  EXPECT_EXIT(Touch(base_), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace msa::namd
