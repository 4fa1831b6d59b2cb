// The real msa-namd and a client on the fabric, over loopback.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include <gmock/gmock.h>

#include "msa/base/nam_fabric.h"
#include "msa/nam/atomics.h"
#include "msa/nam/fabric_client.h"

#include "namd_fixture.h"

namespace msa::namd::test {
namespace {

using nam::FabricPeer;
using nam::LockMode;
using testing::HasSubstr;

SteadyTime Deadline() { return SteadyNow() + kLimit; }

class NamdFabric : public NamdTest {
 protected:
  void SetUp() override {
    NamdTest::SetUp();
    void* const library = ::dlopen(MSA_TEST_FABRIC_LIBRARY, RTLD_NOW);
    ASSERT_NE(library, nullptr) << ::dlerror();
    const auto open = reinterpret_cast<nam::FabricOpen>(::dlsym(library, MSA_NAM_FABRIC_SYMBOL));
    ASSERT_NE(open, nullptr);
    Status status;
    client_.reset(open(nam::kFabricAbi, "tcp;ofi_rxm", &status));
    ASSERT_NE(client_, nullptr) << status.message();
  }
  void TearDown() override {
    peer_.reset();
    client_.reset();
    NamdTest::TearDown();
  }

  void StartOnFabric() {
    StartNamd({.options = {"--fabric-host", "127.0.0.1"}, .fabric = "tcp;ofi_rxm"});
    const auto hello = controller_->AwaitHello();
    ASSERT_TRUE(hello.has_value());
    ASSERT_EQ(hello->fabric_provider, wire::kNamFabricStarting);
    ASSERT_EQ(hello->fabric_address, "");
    controller_->Welcome();
    ASSERT_NO_FATAL_FAILURE(AwaitFabric());
  }
  void AwaitFabric() {
    const auto hello = controller_->Await<wire::NamdHello>();
    ASSERT_TRUE(hello.has_value());
    ASSERT_EQ(hello->fabric_provider, "tcp;ofi_rxm");
    address_ = hello->fabric_address;
    controller_->Welcome();
    auto peer = client_->Connect(address_);
    ASSERT_TRUE(peer.ok()) << peer.status().message();
    peer_ = std::move(*peer);
  }
  void StartOnFabricWithExtent() {
    ASSERT_NO_FATAL_FAILURE(StartOnFabric());
    ASSERT_TRUE(controller_->AllocateAndCommit(kExtent, {4096, 1 << 20}));
  }

  template <class M>
  std::optional<wire::Frame> Ask(const M& request) {
    auto frame = peer_->Call(M::kType, wire::Encode(request), Deadline());
    if (!frame.ok()) return std::nullopt;
    return std::move(*frame);
  }
  Result<wire::NamAttached> Attach(const std::string& blob, std::uint64_t client) {
    const auto frame =
        Ask(wire::NamAttach{.blob = blob, .client = NamClientId(client), .map = true, .fabric = true});
    MSA_RETURN_IF_ERROR(StatusOf(frame));
    return wire::Decode<wire::NamAttached>(frame->payload);
  }
  static FabricPeer::Key KeyOf(const wire::NamAttached& attached) {
    return {attached.fabric_key, attached.fabric_base};
  }

  std::unique_ptr<nam::FabricClient> client_;
  std::unique_ptr<FabricPeer> peer_;
  std::string address_;
};

TEST_F(NamdFabric, PutsGetsCountsAndLocksWithoutAMapping) {
  ASSERT_NO_FATAL_FAILURE(StartOnFabricWithExtent());
  const auto attached = Attach(Blob(NamRights::kRead | NamRights::kWrite), 7);
  ASSERT_TRUE(attached.ok()) << attached.status().message();
  EXPECT_FALSE(attached->mapped);
  std::array<char, 1000> out;
  out.fill('w');
  ASSERT_TRUE(peer_->WriteNow(KeyOf(*attached), {4096, out.data(), out.size()}, Deadline()).ok());
  std::array<char, 1000> in{};
  ASSERT_TRUE(peer_->ReadNow(KeyOf(*attached), {4096, in.data(), in.size()}, Deadline()).ok());
  EXPECT_EQ(in, out);

  TestClient local = Client();
  const auto mapped = local.Attach(Blob(), 8);
  const Mapping mapping(mapped.file.get(), mapped.answer);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(std::memcmp(mapping.view().data() + 4096, out.data(), out.size()), 0) << "the same memory";
  const auto taken =
      Ask(wire::NamLock{attached->attachment, 1, static_cast<std::uint8_t>(LockMode::kExclusive)});
  ASSERT_EQ(taken->type, wire::NamLocked::kType);
  EXPECT_FALSE(
      nam::TryLock(mapping.view().lock(1), LockMode::kShared, mapped.answer.owner, mapped.answer.owner));
  EXPECT_EQ(StatusOf(Ask(wire::NamDetach{attached->attachment})), Status::Ok());
  EXPECT_TRUE(
      nam::TryLock(mapping.view().lock(1), LockMode::kShared, mapped.answer.owner, mapped.answer.owner));
}

TEST_F(NamdFabric, ServesItsHostBeforeTheFabricIsThere) {
  StartNamd({.options = {"--fabric-host", "127.0.0.1"}, .fabric = "tcp;ofi_rxm"});
  const auto hello = controller_->AwaitHello();
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->fabric_provider, wire::kNamFabricStarting);
  controller_->Welcome();
  ASSERT_TRUE(controller_->AllocateAndCommit(kExtent, {4096, 4096}));
  TestClient local = Client();
  const auto mapped = local.Attach(Blob(), 8);
  EXPECT_TRUE(mapped.file) << mapped.status.message();
  EXPECT_EQ(mapped.answer.fabric_key, 0u);
  // The second hello and welcome leave the session, its client and the extent as they are.
  ASSERT_NO_FATAL_FAILURE(AwaitFabric());
  EXPECT_TRUE(Attach(Blob(), 7).ok());
  EXPECT_TRUE(Client().Attach(Blob(), 9).file);
  EXPECT_TRUE(controller_->AllocateAndCommit(kOther, {4096}));
}

TEST_F(NamdFabric, EndsWithAReasonIfTheFabricThatWasNamedIsNotThere) {
  StartNamd({.fabric = "no-such-fabric"});
  ASSERT_TRUE(NamdEnds());
  EXPECT_THAT(Log(), HasSubstr("fabric provider 'no-such-fabric'"));
}

TEST_F(NamdFabric, RefusesTheKeyOfARevokedLease) {
  ASSERT_NO_FATAL_FAILURE(StartOnFabricWithExtent());
  const wire::NamLease lease = controller_->LeaseOf(kExtent, ::geteuid());
  const auto attached = Attach(controller_->Sign(lease), 7);
  ASSERT_TRUE(attached.ok());
  char byte = 'x';
  ASSERT_TRUE(peer_->WriteNow(KeyOf(*attached), {0, &byte, 1}, Deadline()).ok());
  controller_->Revoke({lease.lease});
  EXPECT_TRUE(Eventually(kLimit, [&] {
    if (!peer_->WriteNow(KeyOf(*attached), {0, &byte, 1}, Deadline()).ok()) return true;
    return false;
  }));
}

TEST_F(NamdFabric, IsFoundAtTheSameAddressAfterARestart) {
  ASSERT_NO_FATAL_FAILURE(StartOnFabricWithExtent());
  const std::string before = address_;
  const std::string blob = Blob();
  ASSERT_TRUE(Attach(blob, 7).ok());
  StopNamd(SIGKILL);
  peer_.reset();
  ASSERT_NO_FATAL_FAILURE(StartOnFabric());
  EXPECT_EQ(address_, before);
  const auto again = Attach(blob, 7);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->owner, 1u);
}

TEST_F(NamdFabric, OutlivesAClientThatTruncatesUnderARemoteTransfer) {
  ASSERT_NO_FATAL_FAILURE(StartOnFabricWithExtent());
  const auto attached = Attach(Blob(), 7);
  ASSERT_TRUE(attached.ok());
  TestClient local = Client();
  const auto mapped = local.Attach(Blob(), 8);
  ASSERT_TRUE(mapped.file);
  ASSERT_EQ(::ftruncate(mapped.file.get(), 0), 0);
  // Small and large ones take different ways through the provider. Each may fail; none may end the server.
  std::vector<char> data(512 << 10, 'x');
  for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{data.size()}}) {
    (void)peer_->WriteNow(KeyOf(*attached), {4096, data.data(), bytes}, Deadline());
    (void)peer_->ReadNow(KeyOf(*attached), {4096, data.data(), bytes}, Deadline());
  }
  EXPECT_EQ(Client().Attach(Blob(), 9).status.code(), Code::kDataLoss);
  EXPECT_TRUE(controller_->Await<wire::NamExtentDamaged>().has_value());
  peer_.reset();
  auto fresh = client_->Connect(address_);
  ASSERT_TRUE(fresh.ok());
  peer_ = std::move(*fresh);
  ASSERT_TRUE(controller_->AllocateAndCommit(kOther, {64}));
  EXPECT_TRUE(Attach(controller_->Sign(controller_->LeaseOf(kOther, ::geteuid())), 7).ok()) << "it serves on";
}

}  // namespace
}  // namespace msa::namd::test
