#include "slurm_task.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "msa/adapters/process/unix_socket.h"
#include "msa/base/descriptor_passing.h"
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
  const std::array<int, 2> descriptors{STDOUT_FILENO, STDERR_FILENO};
  if (SendWithDescriptors(socket, bytes, descriptors).bytes != bytes.size()) Fail("send the join");
}

wire::SlurmTaskReady ReceiveReady(int socket, UniqueFd& descriptor) {
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
    std::array<char, 65536> buffer;
    ReceivedBytes in = ReceiveWithDescriptors(socket, buffer);
    if (in.error == EAGAIN) continue;
    if (in.bytes == 0) Fail("the job daemon has closed the connection");
    if (!in.descriptors.empty()) descriptor = std::move(in.descriptors.front());
    reader.Append({buffer.data(), in.bytes});
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
  UniqueFd descriptor;
  const wire::SlurmTaskReady ready = ReceiveReady(socket->get(), descriptor);
  if (!ready.refusal.empty()) Fail(ready.refusal);
  for (const std::string& name : ready.unset) ::unsetenv(name.c_str());
  for (const std::string& line : ready.set) Put(line);
  if (ready.fd >= 0 && ::dup2(descriptor.get(), ready.fd) < 0) Fail("dup2");
  socket->reset();
  std::vector<char*> argv;
  for (std::string& word : join.argv) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  Fail("exec " + join.argv[0]);
}

}  // namespace msa::jobd
