#include "report_log.h"

#include <algorithm>
#include <utility>

#include "msa/base/messages.h"
#include "msa/base/nam_relay.h"

namespace msa::node {
namespace {

// GrantAsk and GrantAnswer begin with the request's number.
struct RequestNumber {
  static constexpr std::uint16_t kType = wire::GrantAsk::kType;
  std::uint64_t request = 0;
  template <class A>
  void Fields(A& a) {
    a(request);
  }
};

std::optional<std::uint64_t> RequestOf(const wire::Frame& frame) {
  const auto decoded = wire::Decode<RequestNumber>(frame.payload);
  return decoded.ok() ? std::optional(decoded->request) : std::nullopt;
}

// Heads and programs say these again by themselves; an old one after a newer one would be wrong.
bool IsSaidAgain(std::uint16_t type) {
  return type == wire::NamePublish::kType || type == wire::NameLookup::kType ||
         type == wire::LinkAsk::kType || type == wire::LinkReady::kType || type == wire::NamFromTask::kType ||
         type == wire::NamAllotmentAsk::kType;
}

}  // namespace

void ReportLog::Add(const JobKey& key, const wire::Frame& frame) {
  if (IsSaidAgain(frame.type)) return;
  Entry& entry = entries_[key];
  if (frame.type == wire::JobExit::kType)  // sent again at every reconnect
    std::erase_if(entry.frames, [&](const wire::Frame& f) {
      return f.type == wire::JobExit::kType && (entry.bytes -= f.payload.size(), true);
    });
  if (frame.type == wire::NamTaskGone::kType) LimitTasksGone(entry);
  entry.bytes += frame.payload.size();
  entry.frames.push_back(frame);
  for (auto it = entry.frames.begin();
       it != entry.frames.end() && (entry.frames.size() > kMaxFrames || entry.bytes > kMaxBytes);) {
    if (it->type == wire::JobExit::kType) {
      ++it;
      continue;
    }
    entry.bytes -= it->payload.size();
    it = entry.frames.erase(it);
  }
}

// Clients that are gone must not push out what is known of the job itself.
void ReportLog::LimitTasksGone(Entry& entry) {
  const auto is_gone = [](const wire::Frame& f) { return f.type == wire::NamTaskGone::kType; };
  if (static_cast<std::size_t>(std::count_if(entry.frames.begin(), entry.frames.end(), is_gone)) <
      kMaxTasksGone)
    return;
  const auto oldest = std::find_if(entry.frames.begin(), entry.frames.end(), is_gone);
  entry.bytes -= oldest->payload.size();
  entry.frames.erase(oldest);
}

void ReportLog::OnCommand(const JobKey& key, const wire::Frame& frame) {
  const auto it = entries_.find(key);
  if (it == entries_.end() || frame.type != wire::GrantAnswer::kType) return;
  const auto answered = RequestOf(frame);
  std::erase_if(it->second.frames, [&](const wire::Frame& f) {
    return f.type == wire::GrantAsk::kType && RequestOf(f) == answered &&
           (it->second.bytes -= f.payload.size(), true);
  });
}

void ReportLog::SetGone(GoneJob gone) {
  Entry& entry = entries_[gone.key];
  entry.gone = std::move(gone);
}

void ReportLog::Forget(const JobKey& key) { entries_.erase(key); }

}  // namespace msa::node
