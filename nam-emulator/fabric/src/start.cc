// FabricServer::Start: a server, once it has passed a test of what clients rely on.

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "client.h"
#include "server.h"

namespace msa::nam {
namespace {

constexpr auto kTestLimit = std::chrono::seconds(5);
constexpr std::uint16_t kTestType = 0;

// A provider may promise in fi_getinfo what it does not keep. `server` answers kTestType with the request's
// payload.
Status TestTransport(Server& server) {
  constexpr std::size_t kBytes = 8192;
  Mapping memory(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), kBytes);
  if (memory.begin() == MAP_FAILED)
    return Error(Code::kResourceExhausted, "no memory for a test of {} bytes", kBytes);
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<FabricClient> client, OpenFabricClient(server.provider()));
  MSA_ASSIGN_OR_RETURN(const std::unique_ptr<FabricPeer> peer, client->Connect(server.address()));
  const SteadyTime limit = SteadyNow() + kTestLimit;
  MSA_ASSIGN_OR_RETURN(const wire::Frame echo, peer->Call(kTestType, "msa", limit));
  if (echo.payload != "msa") return Error(Code::kInternal, "a request was answered wrongly");
  MSA_ASSIGN_OR_RETURN(const FabricKey key,
                       server.Register(memory.begin(), Bytes(kBytes), FabricServer::Access::kReadWrite));
  char out[kBytes], in[kBytes] = {};
  for (std::size_t i = 0; i < kBytes; ++i) out[i] = static_cast<char>(i * 7 + 1);
  const FabricPeer::Key at{key.key, key.base};
  MSA_RETURN_IF_ERROR(peer->WriteNow(at, {0, out, kBytes}, limit));
  // Delivered means: in memory, where other processes of the host look.
  if (std::memcmp(memory.begin(), out, kBytes) != 0)
    return Error(Code::kInternal, "a finished write was not in memory");
  MSA_RETURN_IF_ERROR(peer->ReadNow(at, {0, in, kBytes}, limit));
  if (std::memcmp(in, out, kBytes) != 0)
    return Error(Code::kInternal, "a read brought something else than was written");
  server.Unregister(key.key);
  if (peer->WriteNow(at, {0, out, 8}, limit).ok())
    return Error(Code::kInternal, "a key that has ended was not refused");
  return Status::Ok();
}

}  // namespace

void FabricServer::Prepare() {
  setenv("FI_OFI_RXM_CM_PROGRESS_INTERVAL", "1000", 0);  // microseconds
  // Else libinfinipath takes SIGBUS and others for itself when it is loaded with libfabric.
  setenv("IPATH_NO_BACKTRACE", "1", 0);
}

Result<std::unique_ptr<FabricServer>> FabricServer::Start(FabricServerOptions options, Handler handler) {
  Prepare();
  MSA_ASSIGN_OR_RETURN(options.provider, Port::Find(options.provider));
  const auto shared = std::make_shared<const Handler>(std::move(handler));
  // Requests have types from 0x0800 on.
  const auto answer = [shared](const std::string& from, wire::Frame request) {
    if (request.type == kTestType) return wire::Frame{kTestType, 0, request.id, std::move(request.payload)};
    return (*shared)(from, std::move(request));
  };
  MSA_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::Open(options, answer));
  MSA_RETURN_IF_ERROR(TestTransport(*server).WithContext(
      fmt::format("libfabric provider '{}' fails a test of what regions rely on", server->provider())));
  return std::unique_ptr<FabricServer>(std::move(server));
}

}  // namespace msa::nam
