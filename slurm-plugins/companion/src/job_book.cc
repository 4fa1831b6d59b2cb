#include "job_book.h"

#include <algorithm>
#include <iterator>

#include "companion_mark.h"

namespace msa::companion {
namespace {

std::vector<wire::SlurmJobsChanged> Cut(wire::SlurmJobsChanged all, std::size_t per_frame) {
  std::vector<wire::SlurmJobsChanged> frames;
  auto at = all.jobs.begin();
  do {
    const auto count = std::min<std::size_t>(per_frame, static_cast<std::size_t>(all.jobs.end() - at));
    auto& frame = frames.emplace_back();
    frame.complete = all.complete;
    frame.jobs.assign(std::make_move_iterator(at),
                      std::make_move_iterator(at + static_cast<std::ptrdiff_t>(count)));
    at += static_cast<std::ptrdiff_t>(count);
    frame.more = at != all.jobs.end();
  } while (at != all.jobs.end());
  frames.back().gone = std::move(all.gone);
  return frames;
}

}  // namespace

std::vector<wire::SlurmJobsChanged> JobBook::Update(std::vector<wire::SlurmJob> jobs, std::size_t per_frame) {
  wire::SlurmJobsChanged changed{.complete = complete_};
  std::map<JobId, wire::SlurmJob> next;
  for (wire::SlurmJob& job : jobs) {
    const auto before = jobs_.find(job.job);
    if (complete_ || before == jobs_.end() || before->second != job) changed.jobs.push_back(job);
    next.insert_or_assign(job.job, std::move(job));
  }
  for (const auto& [id, job] : jobs_)
    if (!complete_ && !next.contains(id)) changed.gone.push_back(id);
  jobs_ = std::move(next);
  if (!complete_ && changed.jobs.empty() && changed.gone.empty()) return {};
  complete_ = false;
  return Cut(std::move(changed), per_frame);
}

Result<std::vector<JobId>> JobBook::Orphans(const std::map<JobId, Incarnation>& over) const {
  if (complete_) return Error(Code::kUnavailable, "slurmctld has not listed its jobs");
  std::vector<JobId> orphans;
  for (const auto& [id, job] : jobs_) {
    if (job.over) continue;
    const auto mark = ParseMark(job.name, job.comment);
    if (!mark) continue;
    const auto parent = jobs_.find(mark->parent);
    const auto until = over.find(mark->parent);
    const bool lives = parent != jobs_.end() && !parent->second.over &&
                       parent->second.user.uid == job.user.uid && parent->second.restarts <= mark->restarts &&
                       (until == over.end() || mark->incarnation > until->second);
    if (!lives) orphans.push_back(id);
  }
  return orphans;
}

}  // namespace msa::companion
