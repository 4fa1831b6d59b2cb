#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/eventually.h"
#include "msa/support/mini_cluster.h"

namespace msa::e2e {

using namespace std::chrono_literals;
using support::Command;
using support::Eventually;
using support::Json;
using support::MiniCluster;
using support::Outcome;
using support::Process;
using support::ProgramPath;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Lines of a text, without their ends.
inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

inline std::vector<std::string> Sorted(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

// One local system of the default topology (cn[0-1] of 4 cores, bn[0-1] of 8, dn0 of 4, nam0) for all tests
// of a suite. After each test every slot is free and nothing of a job is left.
class SharedCluster : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = MiniCluster::Start();
    ASSERT_TRUE(started.ok()) << started.status().message();
    cluster_ = *std::move(started);
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override { ASSERT_NE(cluster_, nullptr) << "the local system did not start"; }
  void TearDown() override {
    if (cluster_ == nullptr) return;
    std::vector<std::string> left;
    const bool clean = Eventually(30s, "nothing of a job is left", [&] {
      left = cluster_->Leftovers();
      return left.empty() && cluster_->SlotsUsed() == 0;
    });
    EXPECT_TRUE(clean) << testing::PrintToString(left) << " slots used: " << cluster_->SlotsUsed();
  }

  static Outcome Run(std::vector<std::string> arguments, std::chrono::milliseconds timeout = 120s) {
    return cluster_->Run(std::move(arguments), timeout);
  }
  // Fields of `job show ID -f json`.
  static Json Job(const std::string& id) { return cluster_->Query({"job", "show", id}); }
  static bool JobIsIn(const std::string& id, const std::string& state) {
    return Job(id)["state"].text() == state;
  }
  // Submits in the background; the job's id.
  static std::string Detach(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "--detach"});
    const Outcome outcome = Run(std::move(arguments));
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    const auto lines = Lines(outcome.out);
    return lines.empty() ? "" : lines[0].substr(lines[0].rfind(' ') + 1);
  }

  static inline std::unique_ptr<MiniCluster> cluster_;
};

}  // namespace msa::e2e
