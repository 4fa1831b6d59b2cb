#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/status.h"
#include "msa/base/wire.h"

#include "node_paths.h"

namespace msa::node {

// What a restarted node daemon must know of a job daemon that the one before it started. Kept in w<seq>.jobd
// beside the job daemon's directory, where only the node daemon's user reads it.
struct JobdRecord {
  static constexpr std::uint16_t kType = 0;
  std::uint64_t seq = 0;
  std::string cookie;
  std::uint32_t pid = 0;            // 0: about to be started
  std::uint64_t process_start = 0;  // clock ticks since boot: with pid, the process's identity
  UserIdentity user;
  JobId job;  // 0: warm
  Incarnation incarnation;
  std::uint32_t member_index = 0;
  bool is_head = false;
  std::string launch;       // payload of LaunchJob, to be given again if it did not arrive
  std::string boot_id;      // pids mean nothing after a reboot
  bool exit_acked = false;  // the controller needs its exit record no more; told to it twice it says so again
  template <class A>
  void Fields(A& a) {
    a(seq, cookie, pid, process_start, user.uid, user.gid, job, incarnation, member_index, is_head, launch,
      boot_id, exit_acked);
  }
  JobKey key() const { return {job, incarnation}; }
};

// The leading fields of LaunchJob: all that the node daemon reads of it.
struct LaunchHeader {
  static constexpr std::uint16_t kType = 0x0201;
  JobId job;
  Incarnation incarnation;
  Epoch epoch;
  std::string secret;
  UserIdentity user;
  std::string user_name;
  std::string job_name;
  std::uint32_t self_index = 0;
  std::uint32_t head_index = 0;
  template <class A>
  void Fields(A& a) {
    a(job, incarnation, epoch, secret, user.uid, user.gid, user_name, job_name, self_index, head_index);
  }
};

// Adds a version to the record's file, where the last one counts: a tenth of the cost of replacing a file
// (not synced: it is worth nothing after a reboot).
Status SaveRecord(const NodePaths& paths, const JobdRecord& record);
// All readable records of the node by seq; broken ones are removed, with their directory. `highest` is the
// highest number that any record or directory has.
struct FoundRecords {
  std::vector<JobdRecord> records;
  std::vector<std::uint64_t> orphaned;  // directories without a record
  std::uint64_t highest = 0;
};
Result<FoundRecords> LoadRecords(const NodePaths& paths);

// Start time of a process in clock ticks since boot, 0 if there is none.
std::uint64_t ProcessStart(std::uint32_t pid);
// Of this boot of the kernel.
std::string BootId();
inline constexpr std::size_t kCookieCharacters = 64;
// 32 random bytes in hex. kInternal: no randomness.
Result<std::string> MakeCookie();

}  // namespace msa::node
