#include "slurm_task.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "msa/adapters/process/unix_socket.h"
#include "msa/base/wire.h"

namespace msa::jobd {
namespace {

// The exit code of a task whose join failed, as the plugin's failure in task_init has it.
constexpr int kJoinFailed = 1;

[[noreturn]] void Fail(const std::string& text) {
  dprintf(STDERR_FILENO, "error: %s\n", text.c_str());
  _exit(kJoinFailed);
}

void SendJoin(int socket, const wire::SlurmTaskJoin& join) {
  const std::string bytes = wire::Pack(join);
  const int descriptors[2] = {STDOUT_FILENO, STDERR_FILENO};
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) Fail("send the join");
}

wire::SlurmTaskReady ReceiveReady(int socket, int& descriptor) {
  wire::FrameReader reader(wire::kMaxSlurmPayload);
  for (;;) {
    auto frame = reader.Next();
    if (!frame.ok()) Fail(frame.status().message());
    if (*frame) {
      auto ready = wire::Decode<wire::SlurmTaskReady>((*frame)->payload);
      if (!ready.ok()) Fail(ready.status().message());
      return *ready;
    }
    pollfd readable{socket, POLLIN, 0};
    ::poll(&readable, 1, -1);
    char buffer[65536];
    iovec piece{buffer, sizeof buffer};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) Fail("the job daemon has closed the connection");
    if (cmsghdr* const header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS)
      memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    reader.Append({buffer, static_cast<std::size_t>(n)});
  }
}

void Put(const std::string& line) {
  const std::size_t at = line.find('=');
  ::setenv(line.substr(0, at).c_str(), line.c_str() + at + 1, 1);
}

}  // namespace

void BeSlurmTask(wire::SlurmTaskJoin join, const SlurmTaskWorld& world) {
  // What srun gives every task; Open MPI looks at some of it.
  std::vector<std::string> env = world.env;
  for (const char* name : {"SLURM_JOB_ID", "SLURM_JOBID"})
    env.push_back(fmt::format("{}={}", name, join.job));
  const bool is_script = join.step.value >= 0xfffffff0;
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"})
    if (!is_script) env.push_back(fmt::format("{}={}", name, join.step));
  for (const char* name : {"SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"})
    env.push_back(std::string(name) + "=bn0,cn0");
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"})
    env.push_back(fmt::format("{}={}", name, join.ntasks));
  env.push_back(fmt::format("SLURM_PROCID={}", join.rank));
  env.push_back(fmt::format("SLURM_LOCALID={}", join.local_id));
  for (const std::string& line : env) {
    Put(line);
    for (const char* name : wire::kSlurmJoinVariables)
      if (line.starts_with(std::string(name) + "=")) join.environment.push_back(line);
  }
  auto socket = ConnectUnix(world.job_socket);
  if (!socket.ok()) Fail(socket.status().message());
  SendJoin(socket->get(), join);
  if (!world.joined_file.empty())
    ::close(::open(world.joined_file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  int descriptor = -1;
  const wire::SlurmTaskReady ready = ReceiveReady(socket->get(), descriptor);
  if (!ready.refusal.empty()) Fail(ready.refusal);
  for (const std::string& name : ready.unset) ::unsetenv(name.c_str());
  for (const std::string& line : ready.set) Put(line);
  if (ready.fd >= 0 && ::dup2(descriptor, ready.fd) < 0) Fail("dup2");
  socket->reset();
  std::vector<char*> argv;
  for (std::string& word : join.argv) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  Fail("exec " + join.argv[0]);
}

}  // namespace msa::jobd
