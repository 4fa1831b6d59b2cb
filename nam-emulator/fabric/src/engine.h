#pragma once
// FabricClient's engine: one endpoint, its operations, and who makes progress with them.
//
// No provider makes progress by itself. A caller that waits polls (the driver, holding the gate); others that
// wait meanwhile sleep until it tells them, and one of them takes over when it leaves. When nobody waits, a
// thread does it, from when a transfer is started that the transport could not take whole until all are done.

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "gate.h"
#include "link.h"
#include "port.h"

namespace msa::nam {

class Engine {
 public:
  static Result<std::shared_ptr<Engine>> Open(const PortOptions& options);
  ~Engine();

  Gate& gate() MSA_RETURN_CAPABILITY(gate_) { return gate_; }
  const Port& port() const noexcept { return port_; }
  // This process is a fork of the one that opened the engine: nothing of it may be touched.
  bool forked() const noexcept;

  // kInvalidArgument: no address that the provider understands.
  Result<std::shared_ptr<Link>> Connect(const std::string& address) MSA_REQUIRES(gate_);
  // No work and no call of the owner uses it any more.
  void Leave(Link& link) MSA_REQUIRES(gate_);

  void Start(const std::shared_ptr<Link>& link, Work& work) MSA_REQUIRES(gate_);
  // Takes an unfinished work away from the transport, so that its memory is free: if some of it is in flight,
  // by ending the connection, which breaks the link.
  void Abandon(Link& link, Work& work) MSA_REQUIRES(gate_);
  void Start(PendingCall& call, std::uint16_t type, const std::string& payload) MSA_REQUIRES(gate_);
  void Abandon(PendingCall& call) MSA_REQUIRES(gate_);

  // Makes progress, or waits for who makes it, until `finished` or the deadline.
  void Drive(const bool& finished, SteadyTime deadline) MSA_REQUIRES(gate_);
  // Looks once.
  void Nudge() MSA_REQUIRES(gate_);
  // Finds somebody who makes progress, if nobody does: one who waits, else the thread.
  void HandOver() MSA_REQUIRES(gate_);

 private:
  struct Driver {
    bool is_thread = false;  // gives way to anybody who wants to drive
    bool asleep = false;
  };
  struct Follower {
    const bool* finished = nullptr;
    std::condition_variable changed;
  };
  struct Known {
    fi_addr_t at = FI_ADDR_UNSPEC;
    std::uint32_t links = 0;
  };

  explicit Engine(Port port);
  Status Begin() MSA_REQUIRES(gate_);

  // engine_drive.cc
  void PollUntil(Driver& self, const bool& finished, SteadyTime deadline) MSA_REQUIRES(gate_);
  void Follow(const bool& finished, SteadyTime deadline) MSA_REQUIRES(gate_);
  void Sleep(Driver& self, SteadyTime deadline) MSA_REQUIRES(gate_);
  void TellFollowers() MSA_REQUIRES(gate_);
  void Kick();
  void RunThread();

  // engine.cc
  bool Poll() MSA_REQUIRES(gate_);
  void OnCompletion(Operation& operation, std::size_t bytes) MSA_REQUIRES(gate_);
  void OnError() MSA_REQUIRES(gate_);
  void OnTransferred(Operation& operation, const Status& status) MSA_REQUIRES(gate_);
  void OnSent(Operation& operation, const Status& status) MSA_REQUIRES(gate_);
  void OnArrival(std::string_view bytes) MSA_REQUIRES(gate_);
  void Post(Link& link) MSA_REQUIRES(gate_);
  bool PostWork(Link& link, Work& work) MSA_REQUIRES(gate_);
  bool PostMessage(Link& link, std::string& bytes, std::uint64_t question) MSA_REQUIRES(gate_);
  void PostReceive(Operation& operation) MSA_REQUIRES(gate_);
  void NoteBlocked(Link& link) MSA_REQUIRES(gate_);
  Operation& Take(Operation::Kind kind, Link& link) MSA_REQUIRES(gate_);
  void Give(Operation& operation) MSA_REQUIRES(gate_);
  void Finish(Work& work, Status status) MSA_REQUIRES(gate_);
  void Finish(PendingCall& call, Status status) MSA_REQUIRES(gate_);

  // engine_trouble.cc
  void Tick(SteadyTime now) MSA_REQUIRES(gate_);
  void TickLink(Link& link, SteadyTime now) MSA_REQUIRES(gate_);
  void Ask(Link& link, const CheckQuestion& question, Work* work) MSA_REQUIRES(gate_);
  void PostQuestions(Link& link, SteadyTime now) MSA_REQUIRES(gate_);
  void OnAnswer(std::uint64_t id, std::uint64_t instance, const std::string& payload) MSA_REQUIRES(gate_);
  bool Confirm(Link& link, std::uint64_t instance) MSA_REQUIRES(gate_);
  void Suspect(Link& link) MSA_REQUIRES(gate_);
  void Investigate(Link& link) MSA_REQUIRES(gate_);
  void Break(Link& link, Status why) MSA_REQUIRES(gate_);
  void FailCalls(Link& link, const Status& why) MSA_REQUIRES(gate_);
  void Cut(Link& link);
  int SleepMillis() const MSA_REQUIRES(gate_);

  Gate gate_;
  const unsigned generation_;  // of forks
  const std::uint64_t instance_;
  std::uint64_t next_id_;
  UniqueFd kick_;
  Driver* driver_ MSA_GUARDED_BY(gate_) = nullptr;
  int sleepers_ MSA_GUARDED_BY(gate_) = 0;
  std::list<Follower*> followers_ MSA_GUARDED_BY(gate_);
  std::uint32_t asynchronous_ MSA_GUARDED_BY(gate_) = 0;  // works unfinished
  std::condition_variable thread_wanted_;
  bool stop_ MSA_GUARDED_BY(gate_) = false;
  std::thread thread_;
  SteadyTime next_tick_ MSA_GUARDED_BY(gate_){};
  std::vector<std::unique_ptr<Operation>> operations_ MSA_GUARDED_BY(gate_);
  Operation* spare_ MSA_GUARDED_BY(gate_) = nullptr;
  std::vector<Operation*> unposted_receives_ MSA_GUARDED_BY(gate_);
  Reassembler reassembler_ MSA_GUARDED_BY(gate_);
  std::vector<std::shared_ptr<Link>> links_ MSA_GUARDED_BY(gate_);
  std::map<std::string, Known> known_ MSA_GUARDED_BY(gate_);
  std::unordered_map<std::uint64_t, PendingCall*> calls_ MSA_GUARDED_BY(gate_);
  Port port_;  // after what its operations point to: closed before
};

}  // namespace msa::nam
