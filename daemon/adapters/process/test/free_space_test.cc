#include "msa/adapters/process/free_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa {
namespace {

TEST(FreeSpaceTest, WhereNothingIsIsNotFoundByName) {
  const auto free = FreeSpace("/tmp/no-such-directory-of-msa/x");
  EXPECT_EQ(free.status().code(), Code::kNotFound);
  EXPECT_THAT(free.status().message(), ::testing::HasSubstr("/tmp/no-such-directory-of-msa/x"));
}

TEST(FreeSpaceTest, AFileSystemWithoutBlocksHasNone) {
  const auto free = FreeSpace("/proc");
  ASSERT_TRUE(free.ok());
  EXPECT_EQ(*free, Bytes(0));
}

TEST(FreeSpaceTest, ADiskHasBytesRatherThanBlocks) {
  const auto free = FreeSpace("/tmp");
  ASSERT_TRUE(free.ok());
  EXPECT_GT(free->value, std::uint64_t{64} << 20) << "the tests themselves need more";
}

}  // namespace
}  // namespace msa
