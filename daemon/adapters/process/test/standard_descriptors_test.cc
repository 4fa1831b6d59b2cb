#include "msa/adapters/process/standard_descriptors.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

namespace msa {
namespace {

bool IsDevNull(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISCHR(info.st_mode) && info.st_rdev == ::makedev(1, 3);
}

TEST(StandardDescriptors, ThatAreClosedBecomeDevNull) {
  EXPECT_EXIT(
      {
        ::close(0);
        ::close(1);
        SecureStandardDescriptors();
        ::_exit(IsDevNull(0) && IsDevNull(1) && !IsDevNull(2) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(StandardDescriptors, ThatAreOpenStayAsTheyAre) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (::pipe(ends) != 0 || ::dup2(ends[0], 0) != 0) ::_exit(2);
        SecureStandardDescriptors();
        struct stat info {};
        ::_exit(::fstat(0, &info) == 0 && S_ISFIFO(info.st_mode) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace msa
