#include "spawn_task.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace msa::launch {
namespace {

static_assert(kChannelFd == kExecChannelFd);
constexpr int kFirstFree = kExecChannelFd + 1;  // above all descriptors that the trampoline is given

template <class T>
void AppendRaw(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void AppendText(std::string& out, const std::string& text) {
  out.append(text.c_str(), std::strlen(text.c_str()) + 1);
}

std::string EncodeSpec(const TaskSpec& spec, const SpawnContext& context) {
  std::string mask;
  if (!spec.cpus.empty()) {
    const std::size_t highest = *std::max_element(spec.cpus.begin(), spec.cpus.end());
    mask.resize((highest / 64 + 1) * 8);
    for (const std::uint16_t cpu : spec.cpus) mask[cpu / 8] = static_cast<char>(mask[cpu / 8] | 1 << cpu % 8);
  }
  std::string out;
  AppendRaw(out, ExecHeader{.magic = kExecMagic,
                            .index = context.index,
                            .parent = ::getpid(),
                            .limits = static_cast<std::uint32_t>(spec.limits.size()),
                            .mask_bytes = static_cast<std::uint32_t>(mask.size()),
                            .argc = static_cast<std::uint32_t>(spec.argv.size()),
                            .envc = static_cast<std::uint32_t>(spec.env.size()),
                            .channel = spec.channel ? 1U : 0U});
  for (const wire::ResourceLimit& limit : spec.limits)
    AppendRaw(out, ExecLimit{limit.resource, limit.soft, limit.hard});
  out += mask;
  AppendText(out, context.program);
  AppendText(out, spec.cwd);
  for (const std::string& argument : spec.argv) AppendText(out, argument);
  for (const std::string& entry : spec.env) AppendText(out, entry);
  return out;
}

// A memory file that holds `bytes`; empty and errno on failure.
UniqueFd MemoryFile(const std::string& bytes) {
  UniqueFd fd(::memfd_create("msa-exec", MFD_CLOEXEC));
  std::size_t at = 0;
  while (fd && at < bytes.size()) {
    const ssize_t n = ::write(fd.get(), bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return UniqueFd();
    at += static_cast<std::size_t>(n);
  }
  return fd;
}

// A duplicate that no dup2 of the child overwrites before it is used.
UniqueFd Raised(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree)); }

// The child's streams, and our ends of those that are pipes.
struct Streams {
  std::array<UniqueFd, 3> child;
  std::array<UniqueFd, 3> ours;
};

// 0 or errno.
int MakePipe(Streams& streams, int stream) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  UniqueFd& ours = stream == 0 ? writer : reader;
  UniqueFd& child = stream == 0 ? reader : writer;
  if (::fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) return errno;
  streams.child[stream] = Raised(child.get());
  if (!streams.child[stream]) return errno;
  streams.ours[stream] = std::move(ours);
  return 0;
}

int MakeStreams(const TaskSpec& spec, Streams& streams) {
  const std::array<int, 3> given{spec.in.get(), spec.out.get(), spec.err.get()};
  for (int stream = 0; stream < 3; ++stream) {
    if (given[stream] >= 0) {
      streams.child[stream] = Raised(given[stream]);
    } else if (stream == 0 && !spec.want_stdin) {
      const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (null) streams.child[0] = Raised(null.get());
    } else if (const int error = MakePipe(streams, stream)) {
      return error;
    }
    if (!streams.child[stream]) return errno;
  }
  return 0;
}

// The one owner of posix_spawn's two C objects.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int Move(int from, int to) { return ::posix_spawn_file_actions_adddup2(&actions_, from, to); }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

ProgramError Refused(const TaskSpec& spec, int error, const char* step) {
  const char* remedy = "see 'msactl doctor' and the job daemon's log";
  if (error == EAGAIN) remedy = "too many processes of this user: end some or raise 'ulimit -u'";
  if (error == ENOMEM || error == ENOSPC) remedy = "the node is out of memory: use fewer tasks per node";
  if (error == EMFILE || error == ENFILE)
    remedy = "too many open files: raise 'ulimit -n' or use fewer tasks per node";
  return {fmt::format("rank {} of '{}' cannot be started: {}: {}; {}", spec.rank.value, spec.argv[0], step,
                      ::strerror(error), remedy),
          125};
}

}  // namespace

SpawnOutcome SpawnTask(const TaskSpec& spec, const SpawnContext& context) {
  Streams streams;
  if (const int error = MakeStreams(spec, streams)) return {{}, Refused(spec, error, "make its streams")};
  const UniqueFd file = MemoryFile(EncodeSpec(spec, context));
  if (!file) return {{}, Refused(spec, errno, "hand over its arguments and environment")};
  const UniqueFd raised_file = Raised(file.get());
  const UniqueFd raised_status = Raised(context.status_fd);
  const UniqueFd raised_channel = spec.channel ? Raised(spec.channel.get()) : UniqueFd();
  if (!raised_file || !raised_status || (spec.channel && !raised_channel))
    return {{}, Refused(spec, errno, "hand over its arguments and environment")};

  SpawnSettings settings;
  int error = 0;
  for (int stream = 0; stream < 3 && error == 0; ++stream)
    error = settings.Move(streams.child[stream].get(), stream);
  if (error == 0) error = settings.Move(raised_file.get(), kExecSpecFd);
  if (error == 0) error = settings.Move(raised_status.get(), kExecStatusFd);
  if (error == 0 && raised_channel) error = settings.Move(raised_channel.get(), kExecChannelFd);
  char name[] = "msa-exec";
  char* const arguments[] = {name, nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = 0;
  if (error == 0)
    error = ::posix_spawn(&pid, context.trampoline.c_str(), settings.actions(), settings.attributes(),
                          arguments, environment);
  if (error != 0) return {{}, Refused(spec, error, "start a process")};
  // The child stays at least a zombie until it is collected: its number cannot have been reused.
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return {{pid, std::move(pidfd), std::move(streams.ours[0]), std::move(streams.ours[1]),
           std::move(streams.ours[2])},
          {}};
}

}  // namespace msa::launch
