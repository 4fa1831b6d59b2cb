#pragma once
// One pass over the queue: who starts now, who holds a reservation.

#include <string>
#include <unordered_map>
#include <vector>

#include "placer.h"
#include "profile.h"

namespace msa {

class Planner {
 public:
  // The arguments outlive the planner.
  Planner(const ClusterView& view, const std::vector<PendingJob>& pending, Instant now,
          const SchedulerOptions& options);

  Plan Run();

  Profile& profile() { return profile_; }
  const Placer& placer() const { return placer_; }

 private:
  struct Blocked {
    const PendingJob* job = nullptr;
    Waiting waiting;
    bool reserved = false;
    bool hopeless = false;  // not even on all usable nodes
  };

  struct Lack {
    std::string reason;
    bool hopeless = false;
  };

  bool TryStart(const PendingJob& job, Plan& plan);
  void Block(const PendingJob& job, const std::string& key);
  void Hold(Blocked& blocked);
  Lack LackFor(const PendingJob& job) const;
  enum class Shared { kNo, kYes };  // tasks need no core of their own
  std::string LackOf(const ComponentRequest& component, const FreeSet& free, Shared shared) const;
  std::string NamLack(const JobRequest& request, const FreeSet& free) const;
  std::string GatewayLack(const JobRequest& request, const FreeSet& free) const;
  std::string NotReady(const ComponentRequest& component) const;

  const ClusterView& view_;
  const std::vector<PendingJob>& pending_;
  Instant now_;
  SchedulerOptions options_;
  CoreLayout layout_;
  Placer placer_;
  FreeSet everything_;
  Profile profile_;
  std::vector<Blocked> blocked_;
  std::unordered_map<std::string, Lack> lack_by_key_;  // of requests that did not start in this pass
  std::size_t reservations_ = 0;
  JobId first_reserved_;
};

}  // namespace msa
