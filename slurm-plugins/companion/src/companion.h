#pragma once
// One ask for a companion job, from CompanionAsk to the end of the job. Pure: events in, what to do out
// through Outlet; time enters as an argument. One call to Slurm is under way at any time.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "msa/base/clock.h"
#include "msa/base/companion_messages.h"

#include "calls.h"

namespace msa::companion {

using Message = std::variant<wire::CompanionPending, wire::CompanionGranted, wire::CompanionRefused,
                             wire::CompanionKept, wire::CompanionEnded>;

class Outlet {
 public:
  virtual ~Outlet() = default;
  // Answered by Companion::OnReply, whenever.
  virtual void Ask(const Call& call) = 0;
  virtual void Send(const Message& message) = 0;
  // Nothing is left in Slurm; no other call follows.
  virtual void Finish() = 0;
};

struct Moment {
  SteadyTime steady;
  std::uint64_t unix_s = 0;
};

class Companion {
 public:
  explicit Companion(Outlet& outlet) : outlet_(outlet) {}

  // Once, first.
  void OnAsk(wire::CompanionAsk ask, Moment now);
  // One at a time is remembered: a later one replaces one that was not begun.
  void OnShrink(wire::CompanionShrink shrink, Moment now);
  void OnRelease(Moment now);
  // Nobody listens any more: Send is not called again.
  void OnClosed(Moment now);
  void OnReply(Reply reply, Moment now);
  // slurmctld says that something is up with the job.
  void OnNotice(Moment now);
  void OnTime(Moment now);

  // When OnTime is due; nullopt: not before another event.
  std::optional<SteadyTime> due() const;
  // A call to Slurm is under way.
  bool busy() const { return under_way_.has_value(); }

 private:
  enum class Answered { kNo, kGranted, kRefused };

  void Next(Moment now);
  void NextOfAsk(Moment now);
  void NextOfHeld(Moment now);
  void NextOfLeaving(Moment now);
  void Begin(Call call);
  void Wait(Moment now, Millis span) { not_before_ = now.steady + span; }

  void OnParent(Reply reply, Moment now);
  void OnPartition(Reply reply, Moment now);
  void OnMine(Reply reply, Moment now);
  void OnSubmitted(Reply reply, Moment now);
  void OnLooked(Reply reply, Moment now);
  void OnCancelled(Reply reply, Moment now);
  void OnKept(Reply reply, Moment now);
  void OnEndSet(Moment now);
  // True: slurmctld is away, the same is tried again.
  bool Away(const Reply& reply, Moment now);

  void OnPending(const JobFacts& facts, Moment now);
  void OnRunning(JobFacts facts, Moment now);
  void OnOver(const JobFacts& facts);
  void Grant(const JobFacts& facts, Moment now);
  // What is asked for now did not come, or cannot: other members of the set, else a refusal.
  void GiveUp(Code code, std::string why, Moment now);
  void Refuse(Code code, std::string message);
  void Leave(wire::CompanionRefused refusal);
  void SendRefusal();
  void Send(const Message& message);
  // At most, of what was asked for, in the whole partition.
  std::uint64_t PartitionSlots() const;
  Submit MakeSubmit(Moment now) const;
  std::string What() const;
  std::string WaitedFor() const;
  // What the program, or its user, can do.
  std::string Remedy(std::string_view reason) const;

  Outlet& outlet_;
  wire::CompanionAsk ask_;
  std::optional<Call> under_way_;
  SteadyTime not_before_{};
  Answered answered_ = Answered::kNo;
  bool finished_ = false;
  bool closed_ = false;

  std::optional<ParentFacts> parent_;
  bool parent_aged_ = false;  // known from before a wait
  std::optional<PartitionFacts> partition_;
  // slurmctld may have a job of ours whose id we do not know: looked for so many times. Twice after a lost
  // answer, since it may do later what it was asked before.
  int doubts_ = 0;
  JobId job_;
  JobFacts last_;
  std::uint32_t slots_ = 0;  // granted
  bool trimmed_ = false;
  bool end_set_ = false;
  bool shrunk_ = false;  // and not yet told

  bool range_ = false;  // any of the set is asked for, not its largest
  SteadyTime limit_{};  // of waiting, for what is asked for now
  bool completing_seen_ = false;
  Millis poll_{0};
  SteadyTime config_since_{};  // waits for kConfigReason
  std::string too_large_;      // so long that it cannot start: the partition's size is asked for
  bool sized_ = false;         // the member that fits the partition was tried
  bool away_told_ = false;
  std::string away_text_;
  std::string told_reason_;
  JobId told_job_;

  bool leaving_ = false;     // whatever is left in Slurm goes
  bool again_ = false;       // and then others of the set are asked for
  bool want_ended_ = false;  // and then CompanionEnded is sent
  std::optional<wire::CompanionRefused> refusal_;
  std::optional<wire::CompanionShrink> shrink_;
  bool look_now_ = false;
  std::uint64_t now_s_ = 0;  // of the last event
};

}  // namespace msa::companion
