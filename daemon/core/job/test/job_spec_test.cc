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
  ExpectRefused([](JobSpec& s) { s.env.assign(2, "A=" + std::string(600'000, 'x')); }, "1048576");
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
