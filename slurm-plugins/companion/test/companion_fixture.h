#pragma once
// A Companion whose calls a test answers, and whose messages it takes one by one.

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "companion.h"

namespace msa::companion {
using wire::CompanionEnded;
using wire::CompanionGranted;
using wire::CompanionKept;
using wire::CompanionPending;
using wire::CompanionRefused;

inline constexpr std::uint64_t kUnix = 1'700'000'000;

inline wire::SlurmNodeCores Node(std::string name, std::uint16_t cores) {
  wire::SlurmNodeCores node{.node = std::move(name), .cores = {}};
  for (std::uint16_t i = 0; i < cores; ++i) node.cores.push_back(i);
  return node;
}

inline JobFacts Pending(std::uint64_t job, std::string reason, std::string detail = "") {
  JobFacts facts{.job = JobId(job), .pending = true};
  facts.state = "PENDING";
  facts.reason = std::move(reason);
  facts.detail = std::move(detail);
  return facts;
}

inline JobFacts Running(std::uint64_t job, std::vector<wire::SlurmNodeCores> nodes) {
  JobFacts facts{.job = JobId(job)};
  facts.state = "RUNNING";
  facts.nodes = std::move(nodes);
  facts.end = kUnix + 600;
  return facts;
}

inline JobFacts Over(std::uint64_t job, std::string state) {
  JobFacts facts{.job = JobId(job), .over = true};
  facts.state = std::move(state);
  return facts;
}

class CompanionMachine : public testing::Test, public Outlet {
 protected:
  void Ask(const Call& call) override {
    EXPECT_FALSE(call_) << "one call at a time";
    EXPECT_FALSE(finished_);
    call_ = call;
  }
  void Send(const Message& message) override { sent_.push_back(message); }
  void Finish() override {
    EXPECT_FALSE(call_);
    finished_ = true;
  }

  void Begin(wire::CompanionAsk ask) { companion_.OnAsk(std::move(ask), now_); }
  static wire::CompanionAsk AskFor(std::uint32_t slots, std::int64_t wait_ms = 10'000,
                                   std::vector<std::uint32_t> alternatives = {}) {
    wire::CompanionAsk ask;
    ask.parent = JobId(7);
    ask.request = 3;
    ask.partition = "booster";
    ask.slots = slots;
    ask.wait_ms = wait_ms;
    ask.alternatives = std::move(alternatives);
    return ask;
  }

  void Pass(Millis span) {
    now_.steady += span;
    now_.unix_s += static_cast<std::uint64_t>(span.count() / 1000);
    companion_.OnTime(now_);
  }
  // Lets time go on to when it is next wanted.
  void PassUntilDue() {
    const auto due = companion_.due();
    ASSERT_TRUE(due);
    if (*due > now_.steady) now_.steady = *due;
    companion_.OnTime(now_);
  }
  template <class C>
  C Called() {
    if (!call_ && !finished_) PassUntilDue();
    if (!call_ || !std::holds_alternative<C>(*call_)) {
      ADD_FAILURE() << "expected another call than " << (call_ ? static_cast<int>(call_->index()) : -1);
      return {};
    }
    return std::get<C>(*call_);
  }
  void Reply(companion::Reply reply) {
    ASSERT_TRUE(call_);
    call_.reset();
    companion_.OnReply(std::move(reply), now_);
  }
  void ReplyWith(Answer answer) { Reply(companion::Reply(std::move(answer))); }
  void Away() { Reply(Error(Code::kUnavailable, "nobody listens")); }

  // Answers the question for the parent and the submission.
  void Submitted(std::uint64_t job, std::uint64_t parent_end = 0) {
    Called<AskParent>();
    ReplyWith(Parent(parent_end));
    Called<Submit>();
    ReplyWith(JobFacts{.job = JobId(job), .pending = true});
  }
  static ParentFacts Parent(std::uint64_t end = 0) {
    return {.account = "physics",
            .qos = "fast",
            .partition = "cluster",
            .state = "RUNNING",
            .running = true,
            .end = end,
            .restarts = 0};
  }

  template <class M>
  M Sent() {
    if (sent_.empty() || !std::holds_alternative<M>(sent_.front())) {
      ADD_FAILURE() << "expected another message than "
                    << (sent_.empty() ? -1 : static_cast<int>(sent_.front().index()));
      return {};
    }
    M message = std::get<M>(sent_.front());
    sent_.pop_front();
    return message;
  }
  void Granted(std::uint64_t job = 20) {
    Submitted(job);
    Called<Look>();
    ReplyWith(Running(job, {Node("bn0", 8), Node("bn1", 8)}));
    Sent<CompanionGranted>();
  }
  void Cancelled(std::uint64_t job) {
    EXPECT_EQ(Called<Cancel>().job, JobId(job));
    ReplyWith({});
  }

  Moment now_{.steady = SteadyTime() + Millis(1'000'000), .unix_s = kUnix};
  std::optional<Call> call_;
  std::deque<Message> sent_;
  bool finished_ = false;
  Companion companion_{*this};
};

}  // namespace msa::companion
