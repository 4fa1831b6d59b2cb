// msa-jobd: started by the node daemon, serves one job, leaves with it.
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/become_user.h"
#include "msa/adapters/process/fork_server.h"
#include "msa/adapters/process/standard_descriptors.h"

#include "jobd.h"

namespace msa::jobd {
namespace {

constexpr std::string_view kUsage =
    "usage: msa-jobd --node NAME --noded SOCKET --directory DIR --trampoline PATH --shm-directory DIR "
    "[--topology-xml FILE] [--system DIR] [--srun PATH] [--companion PATH] [--zygote FD]\n"
    "The job daemon of msa; the node daemon starts it. Its cookie stands in MSA_JOBD_COOKIE.\n"
    "Spawned processes in a job of Slurm are started by srun, from PATH or as --srun names it.\n"
    "It asks Slurm for more nodes by msa-companion, beside the trampoline or as --companion names it.\n"
    "With --zygote it serves no job: it forks job daemons as the socket FD orders, until that is closed.\n";

// libmsampi.so, which is built and installed beside the trampoline's directory.
std::string FindMpiLibrary(const std::string& trampoline) {
  const std::string bin = trampoline.substr(0, trampoline.rfind('/') + 1);
  for (const char* directory : {"../lib", "../" MSA_INSTALL_LIBDIR}) {
    const std::string path = bin + directory + "/libmsampi.so";
    char resolved[PATH_MAX];
    if (::realpath(path.c_str(), resolved) != nullptr) return resolved;
  }
  return {};
}

struct MainOptions {
  JobdOptions jobd;
  std::string zygote;           // number of the socket; empty: this is a job daemon
  char* cookie_slot = nullptr;  // in the environment that /proc shows: the node daemon finds lost ones by it
};

Result<MainOptions> ParseOptions(int argc, char** argv) {
  MainOptions all;
  JobdOptions& options = all.jobd;
  const std::map<std::string_view, std::string*> fields = {{"--node", &options.node},
                                                           {"--noded", &options.noded_socket},
                                                           {"--directory", &options.directory},
                                                           {"--trampoline", &options.trampoline},
                                                           {"--shm-directory", &options.shm_directory},
                                                           {"--topology-xml", &options.topology_xml},
                                                           {"--system", &options.system},
                                                           {"--srun", &options.srun},
                                                           {"--companion", &options.companion},
                                                           {"--zygote", &all.zygote}};
  for (int i = 1; i < argc; ++i) {
    std::string_view name = argv[i];
    const auto equals = name.find('=');
    const std::string_view key = name.substr(0, equals);
    const auto field = fields.find(key);
    if (field == fields.end()) return Error(Code::kInvalidArgument, "unknown option '{}'", key);
    if (equals != std::string_view::npos)
      *field->second = name.substr(equals + 1);
    else if (i + 1 < argc)
      *field->second = argv[++i];
    else
      return Error(Code::kInvalidArgument, "option '{}' needs a value", key);
  }
  for (const auto& [name, value] : fields)
    if (value->empty() && name != "--topology-xml" && name != "--system" && name != "--zygote" &&
        name != "--companion")
      return Error(Code::kInvalidArgument, "option '{}' is missing", name);
  all.cookie_slot = ::getenv("MSA_JOBD_COOKIE");
  if (all.cookie_slot != nullptr) options.cookie = all.cookie_slot;
  ::unsetenv("MSA_JOBD_COOKIE");
  options.mpi_library = FindMpiLibrary(options.trampoline);
  return all;
}

// The words that ps shows, in the place of those that the process was started with: they name a job daemon as
// if it had been started by exec.
void ShowAs(const JobdOptions& options, int argc, char** argv) {
  char* const begin = argv[0];
  const std::size_t size = static_cast<std::size_t>(argv[argc - 1] - begin) + ::strlen(argv[argc - 1]) + 1;
  std::string words;
  for (const std::string& word :
       {std::string(argv[0]), std::string("--node"), options.node, std::string("--directory"),
        options.directory, std::string("--noded"), options.noded_socket})
    words += word + '\0';
  words.resize(size);
  ::memcpy(begin, words.data(), size);
  begin[size - 1] = '\0';
}

// Forks job daemons. Returns in each of them, with the options it was given; the zygote itself ends here.
Result<JobdOptions> BeZygote(MainOptions all, int argc, char** argv) {
  ::prctl(PR_SET_NAME, "msa-jobd-zygote");
  MSA_RETURN_IF_ERROR(Jobd::Preload(all.jobd));
  MSA_ASSIGN_OR_RETURN(const std::optional<ForkOrder> order,
                       ServeForks(UniqueFd(::atoi(all.zygote.c_str()))));
  if (!order) ::_exit(0);
  if (order->words.size() != 5)
    return Error(Code::kInvalidArgument,
                 "an order to fork has {} words; expected directory, cookie, shm directory, uid and gid",
                 order->words.size());
  const UserIdentity user{static_cast<std::uint32_t>(::strtoul(order->words[3].c_str(), nullptr, 10)),
                          static_cast<std::uint32_t>(::strtoul(order->words[4].c_str(), nullptr, 10))};
  // Before anything that is the user's to influence.
  if (user.uid != ::geteuid()) MSA_RETURN_IF_ERROR(BecomeUser(user));
  ::prctl(PR_SET_NAME, "msa-jobd");
  ::unsetenv("LD_BIND_NOW");  // of the zygote
  if (all.jobd.cookie.size() == order->words[1].size())
    ::memcpy(all.cookie_slot, order->words[1].data(), order->words[1].size());
  all.jobd.directory = order->words[0];
  all.jobd.cookie = order->words[1];
  all.jobd.shm_directory = order->words[2];
  ShowAs(all.jobd, argc, argv);
  return std::move(all.jobd);
}

Status Serve(JobdOptions options) {
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  // Before libpmix starts its thread, which inherits the mask.
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  const UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<Jobd> jobd, Jobd::Create(*loop, std::move(options)));
  MSA_RETURN_IF_ERROR(loop->Watch(signals.get(), EPOLLIN, [&](std::uint32_t) {
    signalfd_siginfo info;
    while (::read(signals.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      jobd->OnTerminate();
  }));
  MSA_RETURN_IF_ERROR(loop->Run());
  // Everything is cleaned up: the destructors of libpmix and OpenSSL would only cost time.
  ::fflush(nullptr);
  ::_exit(0);
}

}  // namespace
}  // namespace msa::jobd

int main(int argc, char** argv) {
  msa::SecureStandardDescriptors();
  // libpmix's threads allocate little: a heap for each costs more to set up and to tear down than they ever
  // wait.
  ::mallopt(M_ARENA_MAX, 1);
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    ::fputs(msa::jobd::kUsage.data(), stdout);
    return 0;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_st("jobd"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l jobd[%P] %v", spdlog::pattern_time_type::utc);
  auto options = msa::jobd::ParseOptions(argc, argv);
  if (!options.ok()) {
    ::fprintf(stderr, "msa-jobd: %s\n%s", options.status().message().c_str(), msa::jobd::kUsage.data());
    return 2;
  }
  auto jobd = options->zygote.empty() ? msa::Result<msa::jobd::JobdOptions>(std::move(options->jobd))
                                      : msa::jobd::BeZygote(std::move(*options), argc, argv);
  const msa::Status status = jobd.ok() ? msa::jobd::Serve(std::move(*jobd)) : jobd.status();
  spdlog::error("{}", status.message());
  return 1;
}
