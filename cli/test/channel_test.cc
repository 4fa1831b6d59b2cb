#include <gmock/gmock.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "client/channel_internal.h"
#include "commands/command.h"

namespace msa::cli {
namespace {

using ::testing::HasSubstr;

TEST(Channel, NoAnswerIsAnUnreachableDaemonAndAWaitThatRanOutIsNot) {
  const Status silent =
      ToStatus({grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}, "the controller");
  EXPECT_EQ(ExitCodeOf(silent.code()), 8);
  EXPECT_THAT(silent.message(), HasSubstr("the controller does not answer; see 'msactl cluster status'"));
  const Status waited =
      ToStatus({grpc::StatusCode::DEADLINE_EXCEEDED, "not started within 1 s"}, "the controller");
  EXPECT_EQ(ExitCodeOf(waited.code()), 6);
  EXPECT_EQ(waited.message(), "not started within 1 s");
}

}  // namespace
}  // namespace msa::cli
