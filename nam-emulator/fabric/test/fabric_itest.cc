// A server and a client over tcp;ofi_rxm on the loopback interface.

#include <atomic>
#include <thread>

#include "fabric_fixture.h"

namespace msa::nam {
namespace {

struct Pair {
  std::unique_ptr<FabricServer> server = StartServer();
  std::unique_ptr<FabricClient> client = OpenClient();
  std::unique_ptr<FabricPeer> peer = Connect(*client, server->address());
};

TEST(Fabric, AnswersARequest) {
  Pair pair;
  const Result<wire::Frame> reply = pair.peer->Call(kEcho, "hello", In(5s));
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ(reply->type, kEcho);
  EXPECT_EQ(reply->payload, "olleh");
}

TEST(Fabric, CarriesRequestsAndAnswersOfAnySizeUpToALeases) {
  Pair pair;
  for (const std::size_t bytes : {0u, 1u, 15895u, 15896u, 15897u, 65536u, 1u << 20, (4u << 20) + 4096}) {
    const std::string text = Noise(bytes, static_cast<unsigned>(bytes));
    const Result<wire::Frame> reply = pair.peer->Call(kEcho, text, In(10s));
    ASSERT_TRUE(reply.ok()) << bytes << ": " << reply.status().ToString();
    EXPECT_TRUE(std::equal(text.rbegin(), text.rend(), reply->payload.begin(), reply->payload.end()))
        << bytes;
  }
}

TEST(Fabric, BringsBackWhatWasWrittenAtAnySizeAndOffset) {
  Pair pair;
  const SharedMemory memory(10 << 20);
  const FabricPeer::Key key = Expose(*pair.server, memory);
  std::string expected(memory.bytes(), '\0');
  std::size_t offset = 1;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{63}, std::size_t{64},
        std::size_t{65}, std::size_t{4095}, std::size_t{16384}, std::size_t{65537}, std::size_t{1} << 20,
        (std::size_t{9} << 20) - 3}) {
    offset = bytes > 1 << 20 ? 3 : offset * 3 % 60000;
    std::string out = Noise(bytes, static_cast<unsigned>(bytes));
    const Status put = pair.peer->WriteNow(key, {offset, out.data(), bytes}, In(10s));
    ASSERT_TRUE(put.ok()) << bytes << ": " << put.ToString();
    expected.replace(offset, bytes, out);
    EXPECT_EQ(std::memcmp(memory.begin(), expected.data(), expected.size()), 0) << bytes;
    std::string in(bytes, '\0');
    const Status get = pair.peer->ReadNow(key, {offset, in.data(), bytes}, In(10s));
    ASSERT_TRUE(get.ok()) << bytes << ": " << get.ToString();
    EXPECT_TRUE(in == out) << bytes;
  }
}

}  // namespace
}  // namespace msa::nam
