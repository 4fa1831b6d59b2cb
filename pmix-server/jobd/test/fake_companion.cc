// Stands in for msa-companion: grants a job whose number is the ask's request, and tells its end when it is
// released. Asked for no partition it dies; the second time (`again`) it goes on. Left alone it cancels the
// job: a file "cancelled.<job>" in MSA_TEST_DIRECTORY, if that is set.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>

#include "msa/base/companion_messages.h"

namespace {

using namespace msa;

template <class M>
void Send(int fd, const M& message) {
  const std::string bytes = wire::Pack(message);
  (void)!::write(fd, bytes.data(), bytes.size());
}

void OnFrame(int fd, const wire::Frame& frame, JobId& job) {
  if (frame.type == wire::CompanionAsk::kType) {
    const auto ask = wire::Decode<wire::CompanionAsk>(frame.payload);
    if (!ask.ok() || (ask->partition.empty() && !ask->again)) ::_exit(3);
    job = JobId(ask->request);
    wire::CompanionGranted granted;
    granted.job = job;
    Send(fd, granted);
  } else if (frame.type == wire::CompanionRelease::kType) {
    wire::CompanionEnded ended;
    ended.job = job;
    Send(fd, ended);
    ::_exit(0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--fd") return 2;
  const int fd = ::atoi(argv[2]);
  wire::FrameReader reader;
  JobId job;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) {
    reader.Append(std::string_view(buffer, static_cast<std::size_t>(n)));
    for (;;) {
      auto frame = reader.Next();
      if (!frame.ok()) return 1;
      if (!*frame) break;
      OnFrame(fd, **frame, job);
    }
  }
  if (const char* directory = ::getenv("MSA_TEST_DIRECTORY"); directory != nullptr && job.value != 0) {
    ::poll(nullptr, 0, 200);  // what slurmctld takes to answer
    const std::string path = std::string(directory) + "/cancelled." + std::to_string(job.value);
    ::close(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  return 0;
}
