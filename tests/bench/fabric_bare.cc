// What FabricClient and FabricServer cost beyond libfabric: the same transfers in one run, by a tight loop of
// plain libfabric calls at both ends and through msa, with the same provider. Turn by turn in short rounds,
// so that both meet the same load; ratios of the medians over all rounds.
//
//   fabric_bare [ROUNDS]     prints per transfer: bare, msa, ratio; limits: latency 1.15, bandwidth 0.9. At
//   last the
//                            idle server's share of a core.

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "msa/nam/fabric_server.h"

#include "client.h"
#include "port.h"

namespace {

using namespace msa;
using namespace msa::nam;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMemory = 8 << 20;

template <class T>
T Must(Result<T> result) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}
void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}
void Must(ssize_t code) {
  if (code >= 0) return;
  std::fprintf(stderr, "libfabric: %s\n", fi_strerror(static_cast<int>(-code)));
  std::exit(1);
}

// The client on the first processor, servers on the second: woken beside a polling client, a server that
// polls too would hold it up.
void PinTo(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor % std::thread::hardware_concurrency(), &set);
  sched_setaffinity(0, sizeof set, &set);
}

char* Shared() {
  void* memory = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::memset(memory, 1, kMemory);
  return static_cast<char*>(memory);
}

struct Target {
  FabricKey key;
  char address[16];
};

// Runs `serve` in a child, which tells where it is through a pipe.
template <class F>
pid_t Fork(Target& target, F&& serve) {
  int fds[2];
  if (pipe(fds) != 0) std::exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    PinTo(1);
    serve([&](const FabricKey& key, const std::string& address) {
      Target out{key, {}};
      std::memcpy(out.address, address.data(), sizeof out.address);
      if (write(fds[1], &out, sizeof out) != sizeof out) std::exit(1);
    });
  }
  close(fds[1]);
  if (read(fds[0], &target, sizeof target) != sizeof target) std::exit(1);
  close(fds[0]);
  return pid;
}

// The plain server: polls while its turn is (else it would take the processor from msa's).
pid_t ForkBare(Target& target, volatile char* turn) {
  return Fork(target, [&](auto&& tell) {
    const Port port = Must(Port::Open({"tcp;ofi_rxm", "127.0.0.1", 0}));
    char* memory = Shared();
    fid_mr* mr = nullptr;
    Must(fi_mr_reg(port.domain(), memory, kMemory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 4711, 0, &mr,
                   nullptr));
    tell({4711, 0}, port.address());
    fi_cq_msg_entry entry;
    for (;;) {
      (void)fi_cq_read(port.cq(), &entry, 1);
      while (!*turn) usleep(50);
    }
  });
}

pid_t ForkMsa(Target& target) {
  return Fork(target, [&](auto&& tell) {
    const auto server =
        Must(FabricServer::Start({.provider = "tcp;ofi_rxm", .host = "127.0.0.1"},
                                 [](const std::string&, wire::Frame request) { return request; }));
    char* memory = Shared();
    tell(Must(server->Register(memory, Bytes(kMemory), FabricServer::Access::kReadWrite)), server->address());
    for (;;) pause();
  });
}

class Bare {
 public:
  explicit Bare(const Target& target)
      : key_(target.key), port_(Must(Port::Open({"tcp;ofi_rxm", "127.0.0.1", 0}))) {
    Must(fi_av_insert(port_.av(), target.address, 1, &to_, 0, nullptr));
  }
  void Do(bool write, void* local, std::size_t bytes) {
    iovec iov{local, bytes};
    fi_rma_iov remote{key_.base, bytes, key_.key};
    fi_msg_rma message{&iov, nullptr, 1, to_, &remote, 1, &context_, 0};
    ssize_t code = 0;
    do {
      code = write ? fi_writemsg(port_.ep(), &message, FI_DELIVERY_COMPLETE | FI_COMPLETION)
                   : fi_readmsg(port_.ep(), &message, FI_COMPLETION);
      if (code == -FI_EAGAIN) (void)fi_cq_read(port_.cq(), nullptr, 0);
    } while (code == -FI_EAGAIN);
    Must(code);
    fi_cq_msg_entry entry;
    while ((code = fi_cq_read(port_.cq(), &entry, 1)) == -FI_EAGAIN) {
    }
    Must(code);
  }

 private:
  FabricKey key_;
  Port port_;
  fi_addr_t to_ = 0;
  fi_context2 context_{};
};

class Msa {
 public:
  explicit Msa(const Target& target)
      : key_{target.key.key, target.key.base},
        client_(Must(OpenFabricClient("tcp;ofi_rxm"))),
        peer_(Must(client_->Connect(std::string(target.address, sizeof target.address)))) {}
  void Do(bool write, void* local, std::size_t bytes) {
    const SteadyTime deadline = SteadyNow() + std::chrono::seconds(10);
    Must(write ? peer_->WriteNow(key_, {0, local, bytes}, deadline)
               : peer_->ReadNow(key_, {0, local, bytes}, deadline));
  }

 private:
  FabricPeer::Key key_;
  std::unique_ptr<FabricClient> client_;
  std::unique_ptr<FabricPeer> peer_;
};

double Quantile(std::vector<double>& values, double q) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

template <class T>
void Measure(T& way, bool write, std::size_t bytes, int count, char* local, std::vector<double>& out) {
  for (int i = -count / 10 - 1; i < count; ++i) {
    const auto begin = Clock::now();
    way.Do(write, local, bytes);
    if (i >= 0) out.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
}

double CpuSeconds(pid_t pid) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  unsigned long user = 0, system = 0;
  if (file == nullptr || std::fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                     &user, &system) != 2)
    std::exit(1);
  std::fclose(file);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  auto* turn = static_cast<volatile char*>(Shared());
  Target bare_target, msa_target;
  const pid_t bare_server = ForkBare(bare_target, turn), msa_server = ForkMsa(msa_target);
  PinTo(0);
  *turn = 1;
  Bare bare(bare_target);
  Msa msa(msa_target);
  std::string local(4 << 20, 'x');
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{64} << 10, std::size_t{4} << 20}) {
    for (const bool write : {true, false}) {
      const int count = bytes == 8 ? 500 : bytes == 65536 ? 200 : 10;
      std::vector<double> plain, ours;
      for (int round = 0; round < rounds; ++round) {
        *turn = 1;
        Measure(bare, write, bytes, count, local.data(), plain);
        *turn = 0;
        Measure(msa, write, bytes, count, local.data(), ours);
      }
      const double p = Quantile(plain, 0.5), o = Quantile(ours, 0.5), p25 = Quantile(plain, 0.25),
                   o25 = Quantile(ours, 0.25);
      if (bytes == 8)
        std::printf(
            "%-5s %8zu B  bare %8.2f us  msa %8.2f us  latency ratio %.3f (limit 1.15; first quartiles "
            "%.3f)\n",
            write ? "write" : "read", bytes, p, o, o / p, o25 / p25);
      else
        std::printf(
            "%-5s %8zu B  bare %8.2f GB/s  msa %8.2f GB/s  bandwidth ratio %.3f (limit 0.9; first quartiles "
            "%.3f)\n",
            write ? "write" : "read", bytes, static_cast<double>(bytes) / p / 1e3,
            static_cast<double>(bytes) / o / 1e3, p / o, p25 / o25);
    }
  }
  kill(bare_server, SIGKILL);
  const double before = CpuSeconds(msa_server);
  std::this_thread::sleep_for(std::chrono::seconds(10));
  std::printf("idle server with one connection: %.2f %% of a core (limit 1)\n",
              (CpuSeconds(msa_server) - before) * 10);
  kill(msa_server, SIGKILL);
  return 0;
}
