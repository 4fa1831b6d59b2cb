#include "msa/base/status.h"

#include <cerrno>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace msa {
namespace {

TEST(Status, IsOkByDefault) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.ToString(), "OK");
}

TEST(Status, GainsContextFromCallersAndKeepsItsCode) {
  const Status inner = Error(Code::kNotFound, "module '{}' does not exist", "boster");
  const Status outer = inner.WithContext("component 1").WithContext("job 'a'");
  EXPECT_EQ(outer.code(), Code::kNotFound);
  EXPECT_EQ(outer.message(), "job 'a': component 1: module 'boster' does not exist");
  EXPECT_EQ(outer.ToString(), "NOT_FOUND: job 'a': component 1: module 'boster' does not exist");
}

TEST(Status, OkStaysOkUnderContext) { EXPECT_TRUE(Status::Ok().WithContext("anything").ok()); }

TEST(Status, CodesEqualThoseOfGrpc) {
  // https://grpc.github.io/grpc/core/md_doc_statuscodes.html
  EXPECT_EQ(static_cast<int>(Code::kCancelled), 1);
  EXPECT_EQ(static_cast<int>(Code::kInvalidArgument), 3);
  EXPECT_EQ(static_cast<int>(Code::kNotFound), 5);
  EXPECT_EQ(static_cast<int>(Code::kResourceExhausted), 8);
  EXPECT_EQ(static_cast<int>(Code::kOutOfRange), 11);
  EXPECT_EQ(static_cast<int>(Code::kUnavailable), 14);
  EXPECT_EQ(static_cast<int>(Code::kUnauthenticated), 16);
  EXPECT_EQ(CodeName(Code::kUnauthenticated), "UNAUTHENTICATED");
  EXPECT_EQ(CodeName(Code::kOutOfRange), "OUT_OF_RANGE");
}

TEST(Status, NamesACodeThatItDoesNotKnow) { EXPECT_EQ(CodeName(static_cast<Code>(200)), "UNKNOWN"); }

struct ErrnoCase {
  int error_number;
  Code code;
};

class ErrnoErrorTest : public testing::TestWithParam<ErrnoCase> {};

TEST_P(ErrnoErrorTest, MapsTheKernelsErrorToACodeAndSaysIt) {
  const Status status = ErrnoError(GetParam().error_number, "open '/x'");
  EXPECT_EQ(status.code(), GetParam().code);
  EXPECT_TRUE(status.message().starts_with("open '/x': ")) << status.message();
  EXPECT_GT(status.message().size(), std::string("open '/x': ").size());
}

INSTANTIATE_TEST_SUITE_P(
    Kernel, ErrnoErrorTest,
    testing::Values(ErrnoCase{ENOENT, Code::kNotFound}, ErrnoCase{EACCES, Code::kPermissionDenied},
                    ErrnoCase{EPERM, Code::kPermissionDenied}, ErrnoCase{EEXIST, Code::kAlreadyExists},
                    ErrnoCase{ENOSPC, Code::kResourceExhausted}, ErrnoCase{EMFILE, Code::kResourceExhausted},
                    ErrnoCase{ECONNREFUSED, Code::kUnavailable}, ErrnoCase{EPIPE, Code::kUnavailable},
                    ErrnoCase{ETIMEDOUT, Code::kDeadlineExceeded}, ErrnoCase{EIO, Code::kInternal}));

Result<int> Half(int value) {
  if (value % 2 != 0) return Error(Code::kInvalidArgument, "{} is odd; expected an even number", value);
  return value / 2;
}

Result<int> Quarter(int value) {
  MSA_ASSIGN_OR_RETURN(const int half, Half(value));
  return Half(half);
}

Status CheckQuarter(int value) {
  MSA_RETURN_IF_ERROR(Quarter(value).status());
  return Status::Ok();
}

TEST(Result, HoldsAValueOrTheReasonOfItsAbsence) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_TRUE(Quarter(8).status().ok());
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd; expected an even number");
  EXPECT_EQ(CheckQuarter(6).code(), Code::kInvalidArgument);
  EXPECT_TRUE(CheckQuarter(4).ok());
}

TEST(Result, CarriesMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = std::move(*result);
  EXPECT_EQ(*taken, 7);
}

}  // namespace
}  // namespace msa
