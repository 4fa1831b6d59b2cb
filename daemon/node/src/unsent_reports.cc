#include "unsent_reports.h"

namespace msa::node {

void UnsentReports::Add(const JobKey& key, wire::Frame frame) {
  if (bundles_.empty() || bundles_.back().first != key || bundles_.back().second.size() >= kMaxFrames ||
      bytes_ + frame.payload.size() > kMaxBytes) {
    bundles_.emplace_back(key, std::vector<wire::Frame>());
    bytes_ = 0;
  }
  bytes_ += frame.payload.size();
  bundles_.back().second.push_back(std::move(frame));
}

}  // namespace msa::node
