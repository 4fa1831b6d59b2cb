#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string>

#include "msa/base/ids.h"

namespace msa::node {

// One launch of a job.
struct JobKey {
  JobId job;
  Incarnation incarnation;
  friend auto operator<=>(const JobKey&, const JobKey&) = default;
};

// Where things of one node lie in the system's directory. Plain string arithmetic.
class NodePaths {
 public:
  // Whom the node daemon serves: its own user, or, as root, all of them.
  enum class Users { kOne, kAll };
  NodePaths(std::string dir, std::string node, Users users = Users::kOne);

  const std::string& system() const noexcept { return dir_; }  // what MSA_DIR names
  const std::string& base() const noexcept { return base_; }   // DIR/n/<node>
  std::string lock() const { return base_ + "/noded.lock"; }
  std::string attach_socket() const { return base_ + "/noded.sock"; }  // gRPC, for msactl
  std::string jobd_socket() const { return base_ + "/jobd.sock"; }     // local wire format, for job daemons
  std::string nam_link() const { return base_ + "/nam-link.sock"; }    // local wire format, for msa-namd
  std::string namd_socket() const { return base_ + "/namd.sock"; }     // made by msa-namd, for its clients
  std::string topology_xml() const { return base_ + "/hwloc.xml"; }
  std::string jobd_log() const { return dir_ + "/log/jobd-" + node_ + ".log"; }
  std::string log_directory() const { return dir_ + "/log"; }
  std::string run_directory(std::uint64_t seq) const;  // of one job daemon: w<seq>
  std::string record(std::uint64_t seq) const;         // what noded knows of it: w<seq>.jobd
  // Where job daemons of this user make their sockets for each other: the base, or u<uid>, which is his.
  std::string peer_directory(uid_t uid) const;
  std::string peer_socket(uid_t uid, const JobKey& key) const;  // j<job>.<inc>
  std::string peer_address_pattern() const;
  // Shared memory files of MPI programs: a directory for this user and system, one in it for each node and
  // job.
  std::string shm_root(uid_t uid) const;                    // /dev/shm/msa-<uid>-<hash8 of DIR>
  std::string shm_node(uid_t uid) const;                    // .../<node>
  std::string shm_job(uid_t uid, const JobKey& key) const;  // .../<node>/<job>.<inc>

 private:
  std::string dir_;
  std::string node_;
  std::string base_;
  Users users_;
};

}  // namespace msa::node
