// msa-jobd: started by the node daemon, serves one job, leaves with it.
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <map>
#include <string>
#include <string_view>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "msa/adapters/process/standard_descriptors.h"

#include "jobd.h"

namespace msa::jobd {
namespace {

constexpr std::string_view kUsage =
    "usage: msa-jobd --node NAME --noded SOCKET --directory DIR --trampoline PATH --shm-directory DIR "
    "[--topology-xml FILE] [--system DIR]\n"
    "The job daemon of msa; the node daemon starts it. Its cookie stands in MSA_JOBD_COOKIE.\n";

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

Result<JobdOptions> ParseOptions(int argc, char** argv) {
  JobdOptions options;
  const std::map<std::string_view, std::string*> fields = {{"--node", &options.node},
                                                           {"--noded", &options.noded_socket},
                                                           {"--directory", &options.directory},
                                                           {"--trampoline", &options.trampoline},
                                                           {"--shm-directory", &options.shm_directory},
                                                           {"--topology-xml", &options.topology_xml},
                                                           {"--system", &options.system}};
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
    if (value->empty() && name != "--topology-xml" && name != "--system")
      return Error(Code::kInvalidArgument, "option '{}' is missing", name);
  if (const char* cookie = ::getenv("MSA_JOBD_COOKIE")) options.cookie = cookie;
  ::unsetenv("MSA_JOBD_COOKIE");
  options.mpi_library = FindMpiLibrary(options.trampoline);
  return options;
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
  const msa::Status status = msa::jobd::Serve(std::move(*options));
  spdlog::error("{}", status.message());
  return 1;
}
