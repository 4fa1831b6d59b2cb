#include "backend/slurm_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "msa/adapters/process/child_process.h"
#include "msa/base/unique_fd.h"

namespace msa::cli {
namespace {

// A million jobs of one kilobyte.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

std::string SearchPath() {
  const char* path = ::getenv("PATH");
  return path == nullptr || *path == '\0' ? kDefaultPath : path;
}

// kDeadlineExceeded: nothing is there to be read by then.
Status AwaitInput(int fd, const SlurmCall& call, SteadyTime give_up) {
  for (;;) {
    const Millis left = std::chrono::ceil<Millis>(give_up - SteadyNow());
    pollfd entry{fd, POLLIN, 0};
    const int n = left <= Millis(0) ? 0 : ::poll(&entry, 1, static_cast<int>(left.count()));
    if (n > 0) return Status::Ok();
    if (n < 0 && errno == EINTR) continue;
    return Error(Code::kDeadlineExceeded, "'{}' has not answered within {} ms", call.words[0],
                 call.patience->count());
  }
}

Result<std::string> ReadToEnd(int fd, const SlurmCall& call) {
  const std::string& name = call.words[0];
  const SteadyTime begin = SteadyNow();
  bool told = !call.on_first_line;
  std::string out;
  std::array<char, 64 * 1024> buffer;
  for (;;) {
    if (call.patience) MSA_RETURN_IF_ERROR(AwaitInput(fd, call, begin + *call.patience));
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, fmt::format("read what '{}' prints", name));
    if (n == 0) return out;
    if (out.size() + static_cast<std::size_t>(n) > kMostBytes)
      return Error(Code::kResourceExhausted, "'{}' prints more than {} bytes; name the jobs that you want",
                   name, kMostBytes);
    out.append(buffer.data(), static_cast<std::size_t>(n));
    const std::size_t end = out.find('\n');
    if (told || end == std::string::npos) continue;
    MSA_RETURN_IF_ERROR(call.on_first_line(std::string_view(out).substr(0, end)));
    told = true;
  }
}

std::string ReadFile(int fd) {
  std::string out(64 * 1024, '\0');
  const ssize_t size = ::pread(fd, out.data(), out.size(), 0);
  out.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return out;
}

int WaitFor(const ProcessHandle& process) {
  for (;;) {
    pollfd entry{process.pidfd.get(), POLLIN, 0};
    ::poll(&entry, 1, -1);
    if (const std::optional<int> status = ReapChild(process.pid))
      return WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
  }
}

}  // namespace

Result<std::string> FindSlurmCommand(const BackendChoice& choice, const std::string& name) {
  const std::string path = SearchPath();
  for (std::string_view rest = path;;) {
    const std::size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (::access(file.c_str(), X_OK) == 0) return file;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return Error(Code::kNotFound,
               "{}: '{}' was not found in PATH ({}); install Slurm's commands (Debian: slurm-client), add "
               "their folder "
               "to PATH, or use --backend msa",
               choice.because, name, path);
}

std::vector<std::string> ListingEnvironment(const std::vector<std::string>& env, Times times) {
  std::vector<std::string> out;
  for (const std::string& line : env) {
    bool changes = false;
    for (const std::string_view prefix : {"SLURM_TIME_FORMAT=", "SLURM_BITSTR_LEN=", "SLURM_CLUSTERS=",
                                          "SQUEUE_", "SINFO_", "SCONTROL_", "SCANCEL_", "SACCT_"})
      changes = changes || line.starts_with(prefix);
    if (!changes) out.push_back(line);
  }
  if (times == Times::kSeconds) out.emplace_back("SLURM_TIME_FORMAT=%s");
  out.emplace_back("SLURM_BITSTR_LEN=0");
  return out;
}

Result<SlurmAnswer> RunSlurm(const BackendChoice& choice, const SlurmCall& call) {
  const std::string& name = call.words[0];
  SpawnSpec spec;
  spec.argv = call.words;
  MSA_ASSIGN_OR_RETURN(spec.argv[0], FindSlurmCommand(choice, name));
  spec.env = call.as_typed ? CurrentEnvironment() : ListingEnvironment(CurrentEnvironment(), call.times);
  spec.cwd.clear();  // where we are
  spec.new_session = false;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "make a pipe");
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  UniqueFd errors;
  spec.in = call.in;
  spec.out = theirs.get();
  spec.err = STDERR_FILENO;
  if (call.errors == Errors::kKept) {
    errors = UniqueFd(::memfd_create("errors", MFD_CLOEXEC));
    if (!errors) return ErrnoError(errno, "make a file in memory");
    spec.err = errors.get();
  }
  MSA_ASSIGN_OR_RETURN(const ProcessHandle process, Spawn(spec));
  theirs.reset();
  SlurmAnswer answer;
  Result<std::string> text = ReadToEnd(ours.get(), call);
  if (!text.ok()) SignalProcess(process, SIGTERM);
  answer.exit_code = WaitFor(process);
  if (!text.ok()) return text.status();
  answer.out = *std::move(text);
  if (errors) answer.err = ReadFile(errors.get());
  return answer;
}

Status BecomeSlurm(const BackendChoice& choice, const std::vector<std::string>& words, Input input) {
  MSA_ASSIGN_OR_RETURN(const std::string path, FindSlurmCommand(choice, words[0]));
  if (input == Input::kSilent) {
    // The command itself keeps the end open into which nobody writes.
    int ends[2];
    if (::pipe(ends) != 0) return ErrnoError(errno, "make a pipe");
    const UniqueFd read_end(ends[0]);
    if (::dup2(read_end.get(), STDIN_FILENO) < 0) return ErrnoError(errno, "replace standard input");
  }
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  return ErrnoError(errno, fmt::format("run '{}'", path));
}

}  // namespace msa::cli
