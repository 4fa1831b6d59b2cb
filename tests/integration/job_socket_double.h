#pragma once
// A job daemon's MSA_JOB_SOCKET for tests of libmsampi: answers as it is told and keeps what it is asked.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "msa/base/unique_fd.h"
#include "msa/base/wire.h"
#include "msa/jobd/task_messages.h"

namespace msa::support {

class JobSocketDouble {
 public:
  // nullopt: not now; Answer() gives it later. Called on the double's thread.
  using Judge = std::function<std::optional<wire::SpawnVerdict>(const wire::SpawnAsk&)>;

  JobSocketDouble(std::string path, Judge judge);
  ~JobSocketDouble();
  JobSocketDouble(const JobSocketDouble&) = delete;
  JobSocketDouble& operator=(const JobSocketDouble&) = delete;

  // Everything may be started: counts as asked.
  static wire::SpawnVerdict Grant(const wire::SpawnAsk& ask, std::vector<std::uint32_t> counts = {});
  static wire::SpawnVerdict Refuse(wire::SpawnRefusal kind, std::string reason);

  struct Record {
    std::vector<wire::TaskHello> hellos;
    std::vector<wire::SpawnAsk> asks;
    std::vector<std::string> withdrawn;
    std::vector<std::string> disconnected;
    std::size_t connections = 0;  // now
  };
  Record record() const;
  void ForgetRecord();  // all but the open connections
  // Verdict for the oldest ask that was not judged.
  void Answer(const wire::SpawnVerdict& verdict);
  // What greetings say; 0: the namespace is not the job's.
  void set_world_size(std::uint32_t size) { world_size_ = size; }
  // Closes each connection instead of greeting it.
  void set_deaf(bool deaf) { deaf_ = deaf; }
  const std::string& path() const noexcept { return path_; }

 private:
  struct Client {
    UniqueFd fd;
    wire::FrameReader reader;
  };
  struct Pending {
    int fd;
    std::uint64_t id;
  };
  void Run();
  bool Read(Client& client);
  bool Handle(Client& client, const wire::Frame& frame);

  const std::string path_;
  const Judge judge_;
  UniqueFd listener_;
  UniqueFd wake_;
  std::atomic<std::uint32_t> world_size_{1};
  std::atomic<bool> deaf_{false};
  mutable std::mutex mutex_;
  Record record_;
  std::vector<Pending> pending_;
  std::map<int, Client> clients_;  // the double's thread alone
  std::thread thread_;
};

}  // namespace msa::support
