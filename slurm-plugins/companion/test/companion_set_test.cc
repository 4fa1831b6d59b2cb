// Sets of sizes that a partition cannot hold as a whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "companion_fixture.h"

namespace msa::companion {
namespace {

TEST_F(CompanionMachine, TheLargestMemberThatFitsThePartitionIsTriedNext) {
  Begin(AskFor(20, 60'000, {18, 16, 14, 12, 10, 8, 6, 4, 2}));
  Submitted(20);
  while (!call_ || !std::holds_alternative<AskPartition>(*call_)) {
    Called<Look>();
    ReplyWith(Pending(20, "PartitionConfig"));
    if (!call_) PassUntilDue();
    ASSERT_FALSE(finished_);
  }
  PartitionFacts partition;
  for (const char* name : {"bn0", "bn1"}) {
    NodeFacts& node = partition.nodes.emplace_back();
    node.name = name;
    node.cores = 8;
  }
  ReplyWith(partition);
  Cancelled(20);
  EXPECT_EQ(Called<Submit>().size.tasks, 16u);
}

}  // namespace
}  // namespace msa::companion
