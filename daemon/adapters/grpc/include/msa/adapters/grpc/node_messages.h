#pragma once
// What a node daemon and the controller tell each other (proto/msa/v1/node.proto), as plain values: users of
// this header do not see protobuf. The meaning of each field stands in the .proto.

#include <cstdint>
#include <string>
#include <vector>

#include "msa/base/ids.h"
#include "msa/base/wire.h"

namespace msa::node_control {

struct NodeDescription {
  std::string name;
  std::uint32_t cores = 0;          // what the scheduler may use
  std::uint32_t machine_cores = 0;  // what hwloc found
  Bytes memory;
  bool synthetic = false;
  std::uint32_t packages = 0;
  std::uint32_t numa_nodes = 0;
  std::uint32_t gpus = 0;
  std::string cpu_model;
  Bytes nam;
};

struct JobdState {
  JobId job;
  Incarnation incarnation;
  std::uint32_t member_index = 0;
  bool is_head = false;
  bool ended = false;
};

// ---- node daemon -> controller

struct RegisterNode {
  std::string daemon_version;
  std::uint32_t protocol_version = 0;  // wire::kProtocolVersion
  NodeDescription description;
  std::string attach_address;  // "unix:PATH"
  std::string jobd_address;    // %J stands for "<job>.<incarnation>"
  std::vector<JobdState> jobds;
  std::uint32_t pid = 0;
};

struct Heartbeat {
  double load = 0;
  std::uint32_t jobd_warm = 0;
  Bytes memory_free;
  std::int64_t clock_ms = 0;  // Unix milliseconds
};

struct FromJobd {
  JobId job;
  Incarnation incarnation;
  wire::Frame frame;
};

struct JobdGone {
  JobId job;
  Incarnation incarnation;
  std::string reason;
  bool clean = false;
};

struct FromNamd {
  wire::Frame frame;
};

struct NamdGone {
  std::string reason;
};

struct FromSlurm {
  wire::Frame frame;
};

// ---- controller -> node daemon

struct Registered {
  Millis heartbeat_interval{1000};
  std::string system_name;
  std::vector<JobdState> keep;  // quit the others
  bool slurm = false;           // Slurm schedules
};

struct StartJob {
  JobId job;
  Incarnation incarnation;
  UserIdentity user;
  wire::Frame frame;  // LaunchJob
};

struct ToJobd {
  JobId job;
  Incarnation incarnation;
  wire::Frame frame;
};

struct QuitJob {
  JobId job;
  Incarnation incarnation;
  std::string reason;
};

struct ToNamd {
  wire::Frame frame;
};

struct ToSlurm {
  wire::Frame frame;
};

}  // namespace msa::node_control
