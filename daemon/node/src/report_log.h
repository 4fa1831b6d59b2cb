#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "msa/base/wire.h"

#include "jobd_manager.h"

namespace msa::node {

// What the job daemons told the controller and may have been lost when a session broke: nothing on the way is
// acknowledged but by the end of the job, so all of it is told again after each registration. Every such
// message is idempotent. Grants that were answered are forgotten, since asking again would ask for another;
// what programs ask about memory is not kept at all, they ask again. Pure.
class ReportLog {
 public:
  // A job's log keeps the newest messages within these; the exit record is always kept.
  static constexpr std::size_t kMaxFrames = 512;
  static constexpr std::size_t kMaxBytes = std::size_t{512} << 10;
  static constexpr std::size_t kMaxTasksGone = kMaxFrames / 2;  // NamTaskGone among them

  void Add(const JobKey& key, const wire::Frame& frame);
  // The controller's message to the job passes: an answer to a GrantAsk ends its repetition.
  void OnCommand(const JobKey& key, const wire::Frame& frame);
  void SetGone(GoneJob gone);
  // The controller needs nothing more of this job.
  void Forget(const JobKey& key);

  struct Entry {
    std::deque<wire::Frame> frames;
    std::size_t bytes = 0;
    std::optional<GoneJob> gone;
  };
  const std::map<JobKey, Entry>& entries() const noexcept { return entries_; }

 private:
  static void LimitTasksGone(Entry& entry);
  std::map<JobKey, Entry> entries_;
};

}  // namespace msa::node
