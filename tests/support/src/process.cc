#include "msa/support/process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

extern char** environ;

namespace msa::support {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::vector<std::string> EnvironmentOf(const Command& command) {
  std::vector<std::string> result;
  for (char** entry = environ; !command.empty_env && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string key = text.substr(0, text.find('='));
    const bool removed = std::find(command.unset.begin(), command.unset.end(), key) != command.unset.end();
    if (!removed && !command.env.contains(key)) result.push_back(text);
  }
  for (const auto& [key, value] : command.env) result.push_back(key + "=" + value);
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

// Between fork and exec, in a test program with one thread.
[[noreturn]] void ExecChild(const Command& command, std::vector<char*>& argv, std::vector<char*>& env) {
  ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  for (const auto& [resource, value] : command.limits) {
    const rlimit limit{value, value};
    if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) ::_exit(126);
  }
  if (!command.cwd.empty() && ::chdir(command.cwd.c_str()) != 0) ::_exit(126);
  if (command.uid != 0 &&
      (::setgroups(0, nullptr) != 0 || ::setgid(command.uid) != 0 || ::setuid(command.uid) != 0))
    ::_exit(126);
  ::execvpe(argv[0], argv.data(), env.data());
  ::_exit(127);
}

bool ReadSome(UniqueFd& fd, std::string& into) {
  char buffer[65536];
  const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
  if (n > 0) {
    into.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  if (n == 0 || (errno != EAGAIN && errno != EINTR)) fd.reset();
  return false;
}

}  // namespace

std::string Outcome::Text() const {
  return fmt::format("exit code {}{} after {} ms\n--- stdout\n{}\n--- stderr\n{}\n---", code,
                     timed_out ? " (timed out)" : "", wall.count(), out.substr(0, 8000), err.substr(0, 8000));
}

Process::Process(Command command) : command_(std::move(command)), unwritten_(command_.input) { Start(); }

Process::~Process() {
  if (pid_ > 0 && !reaped_) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Process::Start() {
  Pipe in = MakePipe();
  Pipe out = MakePipe();
  Pipe err = MakePipe();
  std::vector<std::string> env = EnvironmentOf(command_);
  std::vector<char*> env_pointers = Pointers(env);
  std::vector<char*> argv = Pointers(command_.argv);
  begin_ = Clock::now();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(in.read.get(), 0);
    ::dup2(out.write.get(), 1);
    ::dup2(err.write.get(), 2);
    ExecChild(command_, argv, env_pointers);
  }
  in_ = std::move(in.write);
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  for (const int fd : {in_.get(), out_.get(), err_.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  ::signal(SIGPIPE, SIG_IGN);
  if (unwritten_.empty() && !command_.keep_input_open) in_.reset();
}

void Process::Pump(Millis limit) {
  pollfd fds[3] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {-1, POLLOUT, 0}};
  if (in_ && !unwritten_.empty()) fds[2].fd = in_.get();
  ::poll(fds, 3, static_cast<int>(std::max<std::int64_t>(0, limit.count())));
  if (out_ && fds[0].revents != 0) ReadSome(out_, outcome_.out);
  if (err_ && fds[1].revents != 0) ReadSome(err_, outcome_.err);
  if (in_ && fds[2].revents != 0) {
    const ssize_t n = ::write(in_.get(), unwritten_.data(), unwritten_.size());
    if (n > 0) unwritten_.erase(0, static_cast<std::size_t>(n));
    if (n < 0 && errno != EAGAIN) in_.reset();
  }
  if (unwritten_.empty() && !command_.keep_input_open) in_.reset();
}

bool Process::ReadUntil(const std::function<bool()>& fact, Millis limit) {
  const auto deadline = Clock::now() + limit;
  while (!fact()) {
    if ((!out_ && !err_) || Clock::now() >= deadline) return fact();
    Pump(Millis(20));
  }
  return true;
}

bool Process::ReadUntilText(const std::string& text, Millis limit) {
  return ReadUntil(
      [&] {
        return outcome_.out.find(text) != std::string::npos || outcome_.err.find(text) != std::string::npos;
      },
      limit);
}

void Process::Write(const std::string& text) {
  unwritten_ += text;
  while (in_ && !unwritten_.empty()) Pump(Millis(20));
}

void Process::CloseInput() {
  command_.keep_input_open = false;
  if (unwritten_.empty()) in_.reset();
}

void Process::Signal(int signal) {
  if (!reaped_) ::kill(pid_, signal);
}

bool Process::TryReap() {
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
  reaped_ = true;
  outcome_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  outcome_.wall = std::chrono::duration_cast<Millis>(Clock::now() - begin_);
  return true;
}

Outcome Process::Wait() {
  const auto deadline = begin_ + command_.timeout;
  while (!TryReap()) {
    if (Clock::now() >= deadline && !outcome_.timed_out) {
      outcome_.timed_out = true;
      ::kill(-pid_, SIGKILL);
    }
    Pump(Millis(out_ || err_ ? 5 : 1));
    if (!out_ && !err_) ::poll(nullptr, 0, 1);
  }
  // What was in the pipes at its end; a descendant that holds them open is not waited for.
  for (UniqueFd* fd : {&out_, &err_})
    while (*fd && ReadSome(*fd, fd == &out_ ? outcome_.out : outcome_.err)) {
    }
  return outcome_;
}

Outcome RunCommand(Command command) { return Process(std::move(command)).Wait(); }

}  // namespace msa::support
