#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace msa::cli {

// Where things of a local system lie. Plain string arithmetic; `dir` is canonical (CanonicalDirectory).
class LocalPaths {
 public:
  explicit LocalPaths(std::string dir) : dir_(std::move(dir)) {}

  const std::string& dir() const noexcept { return dir_; }
  std::string controller_socket() const { return dir_ + "/controller.sock"; }
  std::string state_db() const { return dir_ + "/state.db"; }
  std::string topology() const { return dir_ + "/topology.toml"; }  // the copy in use
  std::string supervisor_lock() const { return dir_ + "/supervisor.lock"; }
  std::string daemon_table() const { return dir_ + "/daemons"; }  // what the supervisor has started
  std::string nam() const { return dir_ + "/nam"; }  // memory of regions, a directory for each NAM node
  std::string log_directory() const { return dir_ + "/log"; }
  // Of "supervisor", "controller", "noded-cn0", "namd-nam0" or "jobd-cn0".
  std::string log(const std::string& daemon) const { return dir_ + "/log/" + daemon + ".log"; }
  std::string nodes() const { return dir_ + "/n"; }
  std::string node(const std::string& name) const { return dir_ + "/n/" + name; }
  // Files of MPI programs in shared memory, as the node daemons name it.
  std::string shm(uid_t uid) const;

 private:
  std::string dir_;
};

}  // namespace msa::cli
