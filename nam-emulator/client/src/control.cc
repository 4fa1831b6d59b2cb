#include "control.h"

#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "msa/base/messages.h"

#include "gate.h"

namespace msa::nam {
namespace {

// A daemon that is restarted answers again within a second or two; a system without one never does.
constexpr auto kPatience = std::chrono::seconds(5);
// Most namds that are started again answer within a tenth of a second, and almost all within a second: they
// are looked for often until then.
constexpr auto kSoon = std::chrono::seconds(1);
constexpr auto kSoonPause = Millis(20);
constexpr auto kLongestPause = Millis(200);
// Relays do not repeat what was lost with a daemon on the way.
constexpr auto kRepeat = std::chrono::seconds(1);
// Of the machine's own system: root's, for every user.
constexpr char kSystemDirectory[] = "/run/msa";

// What tasks say to their job daemon (0x06xx): the fields that a process which uses regions needs.
struct TaskHello {
  static constexpr std::uint16_t kType = 0x0601;
  std::uint32_t version = wire::kProtocolVersion;
  std::string name_space;
  std::uint32_t rank = 0;
  template <class A>
  void Fields(A& a) {
    a(version, name_space, rank);
  }
};
struct TaskWelcome {
  static constexpr std::uint16_t kType = 0x0602;
  std::uint32_t version = 0;
  template <class A>
  void Fields(A& a) {
    a(version);
  }
};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::atomic<Control*> the_control{nullptr};

void InChild() noexcept {
  CloseInheritedSockets();
  ForgetInheritedGates();
  the_control.store(nullptr);
}

Status Refusal(const wire::Frame& frame) {
  MSA_ASSIGN_OR_RETURN(wire::NamFailed failed, wire::Decode<wire::NamFailed>(frame.payload));
  const auto code = static_cast<Code>(failed.code);
  return Status(failed.code == 0 || failed.code > 16 ? Code::kInternal : code, std::move(failed.message));
}

}  // namespace

std::uint64_t RandomBits() {
  std::uint64_t bits = 0;
  while (bits == 0)
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits) bits = 0;
  return bits;
}

std::string RandomToken() { return fmt::format("{:016x}{:016x}", RandomBits(), RandomBits()); }

Millis DefaultTimeout() {
  const std::string text = Environment("MSA_NAM_TIMEOUT");
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  const bool valid = !text.empty() && *end == '\0' && seconds >= 0 && seconds <= 1e6;
  return valid ? Millis(static_cast<std::int64_t>(seconds * 1000)) : Millis(30'000);
}

// ------------------------------------------------------------------------------------ where to connect

Surroundings Surroundings::OfThisProcess() {
  Surroundings out;
  out.job_socket = Environment("MSA_JOB_SOCKET");
  out.name_space = Environment("PMIX_NAMESPACE");
  const std::string rank = Environment("PMIX_RANK");
  out.rank = static_cast<std::uint32_t>(
      std::strtoul((rank.empty() ? Environment("MSA_RANK") : rank).c_str(), nullptr, 10));
  out.directory = Environment("MSA_DIR");
  if (!out.directory.empty()) return out;
  out.directory_is_default = true;
  const std::string runtime = Environment("XDG_RUNTIME_DIR");
  out.directory = runtime.starts_with('/') ? runtime + "/msa" : fmt::format("/tmp/msa-{}", geteuid());
  // As msactl has it: without one of his own, a user's system is the machine's, which root has made.
  struct stat info {};
  if (lstat((out.directory + "/n").c_str(), &info) != 0 && stat(kSystemDirectory, &info) == 0 &&
      info.st_uid == 0) {
    out.directory = kSystemDirectory;
    out.directory_is_default = false;
  }
  return out;
}

Result<std::vector<std::string>> FindNamdSockets(const Surroundings& surroundings) {
  const std::string& dir = surroundings.directory;
  struct stat info {};
  if (lstat(dir.c_str(), &info) != 0)
    return Error(Code::kUnavailable,
                 "no msa system at '{}'; set MSA_DIR to its directory, or run this as a task of a job", dir);
  // The default one lies where others may create things.
  if (surroundings.directory_is_default && info.st_uid != geteuid())
    return Error(Code::kPermissionDenied,
                 "directory '{}' belongs to uid {}, not to {}; name another one in MSA_DIR", dir, info.st_uid,
                 geteuid());
  std::vector<std::string> sockets;
  glob_t found{};
  if (glob((dir + "/n/*/namd.sock").c_str(), 0, nullptr, &found) == 0)
    sockets.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (sockets.empty())
    return Error(Code::kUnavailable,
                 "no NAM daemon of the system at '{}' serves this host (there is no {}/n/*/namd.sock); see "
                 "'msactl node list'",
                 dir, dir);
  return sockets;
}

// ---------------------------------------------------------------------------------------- one connection

Control::Control() : client_(RandomBits()) {}

Control::Connection Control::Present() {
  const MutexLock lock(mu_);
  return {socket_ ? socket_->fd() : -1, connections_};
}

Control& Control::Get() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { pthread_atfork(&LockSocketsForFork, &UnlockSocketsAfterFork, &InChild); });
  Control* control = the_control.load();
  if (control != nullptr) return *control;
  auto* fresh = new Control;  // never destroyed: threads may outlive static objects
  if (the_control.compare_exchange_strong(control, fresh)) return *fresh;
  delete fresh;
  return *control;
}

Status Control::Greet(FrameSocket& socket, const Surroundings& surroundings, SteadyTime deadline) {
  const TaskHello hello{.name_space = surroundings.name_space, .rank = surroundings.rank};
  MSA_RETURN_IF_ERROR(socket.Send(wire::Pack(hello, 1), deadline));
  for (;;) {
    MSA_ASSIGN_OR_RETURN(const wire::Frame frame, socket.Receive(deadline));
    if (frame.type != TaskWelcome::kType) continue;
    MSA_ASSIGN_OR_RETURN(const TaskWelcome welcome, wire::Decode<TaskWelcome>(frame.payload));
    if (welcome.version != hello.version)
      return Error(Code::kFailedPrecondition,
                   "job daemon speaks version {} of the protocol, this library {}; use one msa throughout",
                   welcome.version, hello.version);
    break;
  }
  return Status::Ok();
}

void Control::Introduce(SteadyTime deadline) {
  const MutexLock lock(mu_);
  if (socket_) {
    pollfd one{socket_->fd(), 0, 0};
    if (poll(&one, 1, 0) == 0) return;
    socket_->Shutdown();
    socket_.reset();
  }
  (void)Connect(deadline).ok();
}

Status Control::Connect(SteadyTime deadline) {
  const Surroundings surroundings = Surroundings::OfThisProcess();
  const wire::NamClientHello hello{.client = client_, .pid = static_cast<std::uint32_t>(getpid())};
  if (!surroundings.job_socket.empty()) {
    MSA_ASSIGN_OR_RETURN(auto socket, FrameSocket::Connect(surroundings.job_socket, deadline));
    Status greeted = Greet(*socket, surroundings, deadline);
    if (greeted.ok()) greeted = socket->Send(wire::Pack(hello), deadline);
    if (!greeted.ok()) return greeted.WithContext("job daemon at " + surroundings.job_socket);
    socket_ = std::move(socket);
    ++connections_;
    return Status::Ok();
  }
  const auto paths = FindNamdSockets(surroundings);
  // Where there never was one, waiting is of no use.
  if (!paths.ok() && connections_ == 0) return Status(Code::kAborted, paths.status().message());
  if (!paths.ok()) return paths.status();
  Status last;
  for (const std::string& path : *paths) {
    auto socket = FrameSocket::Connect(path, deadline);
    last = socket.ok() ? (*socket)->Send(wire::Pack(hello), deadline) : socket.status();
    if (!last.ok()) continue;
    socket_ = std::move(*socket);
    ++connections_;
    return Status::Ok();
  }
  return last;
}

void Control::Await(SteadyTime until) {
  if (reading_) {
    arrived_.WaitUntil(mu_, until);
    return;
  }
  reading_ = true;
  const std::shared_ptr<FrameSocket> socket = socket_;
  mu_.unlock();
  Result<wire::Frame> frame = socket->Receive(until);
  mu_.lock();
  reading_ = false;
  if (frame.ok()) {
    const auto it = waiting_.find(frame->id);
    // Of a request given up, else.
    if (it != waiting_.end()) it->second = std::move(*frame);
  } else if (frame.status().code() != Code::kDeadlineExceeded && socket_ == socket) {
    socket_.reset();
  }
  arrived_.NotifyAll();
}

Result<wire::Frame> Control::Once(std::uint16_t type, const std::string& payload, SteadyTime deadline) {
  const MutexLock lock(mu_);
  const std::uint64_t id = ++next_id_;
  if (!socket_) MSA_RETURN_IF_ERROR(Connect(deadline));
  const std::uint64_t connection = connections_;
  if (const Status sent = socket_->Send(wire::Pack(type, id, payload), deadline); !sent.ok()) {
    socket_->Shutdown();
    socket_.reset();
    return sent;
  }
  waiting_.emplace(id, std::nullopt);
  while (!waiting_.at(id) && socket_ && connections_ == connection && SteadyNow() < deadline) Await(deadline);
  std::optional<wire::Frame> answer = std::move(waiting_.at(id));
  waiting_.erase(id);
  if (answer) return std::move(*answer);
  if (socket_ && connections_ == connection)
    return Status(Code::kDeadlineExceeded, "the controller has not answered in time; see 'msactl status'");
  return Status(Code::kUnavailable, "the connection has ended before the answer came");
}

Result<wire::Frame> Control::Exchange(std::uint16_t type, const std::string& payload, std::uint16_t reply,
                                      SteadyTime deadline) {
  const SteadyTime begin = SteadyNow();
  const SteadyTime patience = std::min(deadline, begin + kPatience);
  bool repeated = false;
  for (auto pause = Millis(5);; repeated = true) {
    const SteadyTime until = std::min(deadline, SteadyNow() + kRepeat);
    Result<wire::Frame> answer = Once(type, payload, until);
    Status failed = answer.status();
    if (failed.ok()) {
      if (answer->type == reply) return answer;
      failed = answer->type == wire::NamFailed::kType
                   ? Refusal(*answer)
                   : Error(Code::kInternal, "answer of type {:#06x}, expected {:#06x}", answer->type, reply);
    }
    // It was removed by the request whose answer was lost.
    if (repeated && type == wire::NamRemove::kType && failed.code() == Code::kNotFound && answer.ok())
      return wire::Frame{.type = wire::NamDone::kType, .payload = wire::Encode(wire::NamDone{})};
    const SteadyTime now = SteadyNow();
    const bool lost = failed.code() == Code::kDeadlineExceeded && !answer.ok();
    // A socket that is not there yet: its daemon is being started.
    const bool away =
        failed.code() == Code::kUnavailable || (failed.code() == Code::kNotFound && !answer.ok());
    if (!(lost && now < deadline) && !(away && now < patience)) {
      if (failed.code() == Code::kNotFound && !answer.ok())
        return Status(Code::kUnavailable, failed.message());
      return failed;
    }
    if (away) std::this_thread::sleep_for(std::min<SteadyTime::duration>(pause, patience - now));
    pause = std::min(pause * 2, now - begin < kSoon ? kSoonPause : kLongestPause);
  }
}

}  // namespace msa::nam
