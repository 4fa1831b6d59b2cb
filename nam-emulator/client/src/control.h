#pragma once
// Requests (0x07xx) to the controller: through the job daemon in a job's task, else through a namd of this
// host. One connection per process, opened at the first request and again after it broke. Any thread.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "msa/base/mutex.h"
#include "msa/base/nam_messages.h"

#include "frame_socket.h"

namespace msa::nam {

// Where the process stands, from its environment.
struct Surroundings {
  std::string job_socket;  // empty: no task of a job
  std::string name_space;
  std::uint32_t rank = 0;
  std::string directory;  // of the system, outside a job
  bool directory_is_default = false;

  static Surroundings OfThisProcess();
};
// Paths of the namds' sockets of a system. kUnavailable: none.
Result<std::vector<std::string>> FindNamdSockets(const Surroundings& surroundings);

class Control {
 public:
  Control();
  // This process's. A forked child gets its own.
  static Control& Get();

  NamClientId client() const { return client_; }
  // To be called before a namd gives this process anything that no connection of its own ends: sees to it
  // that somebody tells when the process is gone. A job daemon or namd that cannot be reached is told later.
  void Introduce(SteadyTime deadline) MSA_EXCLUDES(mu_);

  // The connection that is open: by it, outside a job, leases are held. Its descriptor, -1: none is open; and
  // its number, which no later one has.
  struct Connection {
    int fd = -1;
    std::uint64_t number = 0;
  };
  Connection Present();

  // Repeats until the deadline what was not answered; so `request` must be harmless to repeat. kUnavailable:
  // nobody could be asked, or the answer was so for kPatience.
  template <class Reply, class Request>
  Result<Reply> Ask(const Request& request, SteadyTime deadline) {
    MSA_ASSIGN_OR_RETURN(const wire::Frame frame,
                         Exchange(Request::kType, wire::Encode(request), Reply::kType, deadline));
    return wire::Decode<Reply>(frame.payload);
  }

 private:
  Result<wire::Frame> Exchange(std::uint16_t type, const std::string& payload, std::uint16_t reply,
                               SteadyTime deadline);
  Result<wire::Frame> Once(std::uint16_t type, const std::string& payload, SteadyTime deadline);
  Status Connect(SteadyTime deadline) MSA_REQUIRES(mu_);
  Status Greet(FrameSocket& socket, const Surroundings& surroundings, SteadyTime deadline);
  // One wait for anything to arrive; `mu_` is free meanwhile.
  void Await(SteadyTime until) MSA_REQUIRES(mu_);

  const NamClientId client_;
  Mutex mu_;
  CondVar arrived_;
  std::shared_ptr<FrameSocket> socket_ MSA_GUARDED_BY(mu_);
  std::uint64_t connections_ MSA_GUARDED_BY(mu_) = 0;
  bool reading_ MSA_GUARDED_BY(mu_) = false;
  std::uint64_t next_id_ MSA_GUARDED_BY(mu_) = 0;
  std::map<std::uint64_t, std::optional<wire::Frame>> waiting_ MSA_GUARDED_BY(mu_);
};

// 64 random bits, never 0.
std::uint64_t RandomBits();
// Of a request that may be repeated.
std::string RandomToken();
// MSA_NAM_TIMEOUT in seconds, else 30 s.
Millis DefaultTimeout();

}  // namespace msa::nam
