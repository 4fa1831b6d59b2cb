#include "msa/job/job_spec.h"

#include <functional>

#include <gtest/gtest.h>

#include "harness.h"

namespace msa {
namespace {

using job_test::Harness;
using job_test::Small;

Status Complete(const std::function<void(JobSpec&)>& change) {
  JobSpec spec = Harness::Spec("cluster", 1);
  change(spec);
  return CompleteSpec(spec, Small());
}

void ExpectRefused(const std::function<void(JobSpec&)>& change, std::string_view text) {
  const Status status = Complete(change);
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
  EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
}

TEST(JobSpec, IsNamedAfterItsFirstProgram) {
  JobSpec spec = Harness::Spec("booster", 3);
  spec.components[0].argv[0] = "/opt/x/hello";
  ASSERT_TRUE(CompleteSpec(spec, Small()).ok());
  EXPECT_EQ(spec.name, "hello");
  EXPECT_EQ(spec.components[0].resources.cpus_per_task, 1u);
}

TEST(JobSpec, LimitsAreHeldWithNumbers) {
  ExpectRefused([](JobSpec& s) { s.name.assign(256, 'x'); }, "256 bytes, the limit is 255");
  ExpectRefused([](JobSpec& s) { s.env = SharedStrings::List(2, "A=" + std::string(600'000, 'x')); },
                "1048576");
  ExpectRefused([](JobSpec& s) { s.components[0].env.assign(2, "A=" + std::string(600'000, 'x')); },
                "1048576");
  ExpectRefused([](JobSpec& s) { s.components[0].argv.push_back(std::string(kMaxArgumentBytes, 'x')); },
                "1048576");
  ExpectRefused([](JobSpec& s) { s.components.resize(1025, s.components[0]); }, "1025 components");
  ExpectRefused([](JobSpec& s) { s.cwd = "/" + std::string(5000, 'x'); }, "4095");
}

TEST(JobSpec, WhatNoProgramCanGetIsRefused) {
  ExpectRefused([](JobSpec& s) { s.components.clear(); }, "no component");
  ExpectRefused([](JobSpec& s) { s.components[0].argv.clear(); }, "names no program");
  ExpectRefused([](JobSpec& s) { s.env.push_back("NOEQUALS"); }, "NOEQUALS");
  ExpectRefused([](JobSpec& s) { s.components[0].argv[0] = std::string("a\0b", 3); }, "zero byte");
  ExpectRefused([](JobSpec& s) { s.cwd = "relative"; }, "'relative'");
  ExpectRefused([](JobSpec& s) { s.components[0].cwd = "x"; }, "component 0");
  ExpectRefused([](JobSpec& s) { s.stdio.out = "%q"; }, "%q");
}

TEST(JobSpec, ANameIsPlainTextInUtf8) {
  ExpectRefused([](JobSpec& s) { s.name = "a\xff\xfe"; }, "'a\\xff\\xfe' is not plain text");
  ExpectRefused([](JobSpec& s) { s.name = "two\nlines"; }, "'two\\x0alines'");
  for (const char* bad : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xc2\x85", "\x7f"})
    ExpectRefused([bad](JobSpec& s) { s.name = bad; }, "is not plain text");
  for (const char* good : {"a b", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac", "\xf0\x9f\x9a\x80"})
    EXPECT_TRUE(Complete([good](JobSpec& s) { s.name = good; }).ok()) << good;
}

TEST(JobSpec, AProgramWhoseNameIsNoTextStillGivesAName) {
  JobSpec spec = Harness::Spec("cluster", 1);
  spec.components[0].argv[0] =
      "/x/\xff"
      "a\xc3\xbc";
  ASSERT_TRUE(CompleteSpec(spec, Small()).ok());
  EXPECT_EQ(spec.name, "?a\xc3\xbc");
}

TEST(JobSpec, WhatCanNeverBePlacedIsOutOfRange) {
  EXPECT_EQ(Complete([](JobSpec& s) {
              s.components[0].resources.min_nodes = 12;
              s.components[0].resources.ntasks = 12;
            }).code(),
            Code::kOutOfRange);
  EXPECT_EQ(Complete([](JobSpec& s) { s.components[0].resources.module = "clutser"; }).code(),
            Code::kNotFound);
}

}  // namespace
}  // namespace msa
