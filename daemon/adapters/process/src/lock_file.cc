#include "msa/adapters/process/lock_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace msa {
namespace {

pid_t ReadPid(int fd) {
  std::array<char, 32> text{};
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  pid_t pid = 0;
  if (n > 0) std::from_chars(text.data(), text.data() + n, pid);
  return pid;
}

// A holder that was killed while it started a child is outlived by the child's copy of the lock, until that
// has exec'ed: the dead holder's lock is waited for. So is one without a name: a holder writes it at once,
// and an asker (LockHolder) goes at once.
bool Lock(int fd) {
  constexpr int kRounds = 200;
  constexpr int kRoundMillis = 5;
  for (int round = 0;; ++round) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    const int error = errno;
    const pid_t holder = ReadPid(fd);
    const bool passing = holder <= 0 || (::kill(holder, 0) != 0 && errno == ESRCH);
    errno = error;
    if (error != EWOULDBLOCK || !passing || round == kRounds) return false;
    ::poll(nullptr, 0, kRoundMillis);
  }
}

}  // namespace

Result<LockFile> LockFile::Acquire(const std::string& path, const std::string& what) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoError(errno, "open lock file '" + path + "'");
  if (!Lock(fd.get())) {
    if (errno != EWOULDBLOCK) return ErrnoError(errno, "lock file '" + path + "'");
    return Error(Code::kAlreadyExists, "{} is running already with pid {} (lock file '{}')", what,
                 ReadPid(fd.get()), path);
  }
  const std::string text = fmt::format("{}\n", ::getpid());
  // In this order there is a name in it at every moment.
  if (::pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return ErrnoError(errno, "write lock file '" + path + "'");
  if (::ftruncate(fd.get(), static_cast<off_t>(text.size())) != 0)
    return ErrnoError(errno, "truncate lock file '" + path + "'");
  return LockFile(std::move(fd));
}

pid_t LockHolder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  // A shared lock for a moment: two askers do not see each other as the holder.
  if (!fd || ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return 0;
  return ReadPid(fd.get());
}

}  // namespace msa
