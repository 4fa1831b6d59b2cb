#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "msa/adapters/process/child_process.h"
#include "msa/adapters/process/event_loop.h"
#include "msa/adapters/process/fork_server.h"

namespace msa::node {

// The process from which the job daemons of the node daemon's own user are forked: msa-jobd with all done
// that does not depend on the job. It has one thread and no job's data. It may die at any time: what it had
// not reported is told, and the next order starts another. One thread, the loop's.
class Zygote {
 public:
  struct Options {
    std::vector<std::string> argv;  // how to start it, without "--zygote 0"
    std::string log;                // its stdout and stderr, and those of the job daemons
    Millis min_backoff{100};        // after one that ended without having forked, doubling
    Millis max_backoff{30'000};
  };
  struct Handlers {
    std::function<void(std::uint64_t number, pid_t pid)> on_forked;
    std::function<void(std::uint64_t number, const std::string& why)> on_refused;  // by the kernel
    std::function<void(std::uint64_t number)>
        on_lost;                      // the zygote ended; whether it had forked is not known
    std::function<void()> on_reaped;  // its process is gone
  };
  Zygote(EventLoop& loop, Options options, Handlers handlers);
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  // Forks a job daemon that is given `words`, its directory and cookie; a handler follows. kUnavailable: not
  // now, start it otherwise.
  Status Order(std::uint64_t number, std::vector<std::string> words);
  // Takes the reports that have arrived: afterwards every child of this process that the zygote has made is
  // known. Handlers run.
  void Drain();
  // Of the zygote; 0: none is there. It is a child of this process.
  pid_t pid() const noexcept { return process_.pid; }
  // Its process was collected.
  void OnReaped();
  // It does not answer.
  void Kill();
  // It leaves, and none is started any more.
  void Stop();

 private:
  Status Start();
  void Ended(const std::string& why);

  EventLoop& loop_;
  Options options_;
  Handlers handlers_;
  ProcessHandle process_;
  UniqueFd socket_;
  std::set<std::uint64_t> outstanding_;
  bool has_forked_ = false;  // this one
  bool stopped_ = false;
  std::uint32_t failures_ = 0;  // zygotes in a row that have not forked
  SteadyTime backoff_until_{};
};

}  // namespace msa::node
