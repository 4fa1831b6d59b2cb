#include "fake_controller.h"

#include <poll.h>

#include <array>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "msa/adapters/process/files.h"
#include "msa/adapters/process/unix_socket.h"
#include "msa/nam/layout.h"

namespace msa::namd::test {

std::string Hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

FakeController::FakeController(std::string dir, std::string node)
    : dir_(std::move(dir)), node_(std::move(node)) {
  EXPECT_TRUE(MakeDirectory(dir_ + "/n", 0711).ok());
  EXPECT_TRUE(MakeDirectory(dir_ + "/n/" + node_, 0711).ok());
  auto listener = ListenUnix(dir_ + "/n/" + node_ + "/nam-link.sock");
  EXPECT_TRUE(listener.ok()) << listener.status().message();
  if (listener.ok()) listener_ = std::move(*listener);
}

std::optional<wire::NamdHello> FakeController::AwaitHello() {
  pollfd wait{listener_.get(), POLLIN, 0};
  if (::poll(&wait, 1, static_cast<int>(kLimit.count())) <= 0) return std::nullopt;
  auto fd = AcceptUnix(listener_.get());
  if (!fd.ok() || !*fd) return std::nullopt;
  link_ = FrameSocket(std::move(*fd));
  received_.clear();
  return Await<wire::NamdHello>();
}

void FakeController::Welcome() {
  wire::NamdWelcome welcome;
  welcome.system = system;
  welcome.key = key;
  welcome.leases = live;
  welcome.newest = LeaseId(next_lease - 1);
  for (const auto& [extent, what] : expected) {
    std::uint64_t end = 0;
    for (const auto& segment : what.segments) end = std::max(end, segment.offset + segment.bytes.value);
    welcome.extents.push_back({extent.uuid, extent.generation, what.state, Bytes(end)});
  }
  Send(welcome);
}

std::vector<wire::NamSegmentPlace> FakeController::Places(const std::vector<std::uint64_t>& segment_bytes) {
  std::vector<wire::NamSegmentPlace> places;
  std::uint64_t at = 0;
  for (const std::uint64_t bytes : segment_bytes) {
    const auto slot = static_cast<std::uint32_t>(places.size());
    places.push_back({.slot = slot, .offset = at, .bytes = Bytes(bytes)});
    at = nam::RoundUp(at + bytes, nam::kSegmentAlign);
  }
  return places;
}

std::optional<wire::NamExtentDone> FakeController::Allocate(const wire::NamExtentAllocate& allocate) {
  wire::NamExtentAllocate message = allocate;
  message.request = next_request_++;
  const ExtentKey extent{allocate.uuid, allocate.generation};
  expected[extent] = {wire::NamExtentState::kPending, allocate.segments};
  Send(message);
  auto done = AwaitDone(message.request);
  if (!done || done->code != 0) expected.erase(extent);
  return done;
}

std::optional<wire::NamExtentDone> FakeController::Allocate(const ExtentKey& extent,
                                                            std::vector<std::uint64_t> segment_bytes) {
  wire::NamExtentAllocate allocate;
  allocate.uuid = extent.uuid;
  allocate.generation = extent.generation;
  allocate.segments = Places(segment_bytes);
  return Allocate(allocate);
}

void FakeController::Commit(const ExtentKey& extent) {
  expected[extent].state = wire::NamExtentState::kCommitted;
  Send(wire::NamExtentCommit{extent.uuid, extent.generation});
}

bool FakeController::AllocateAndCommit(const ExtentKey& extent, std::vector<std::uint64_t> segment_bytes) {
  const auto done = Allocate(extent, std::move(segment_bytes));
  if (!done || done->code != 0) return false;
  Commit(extent);
  return true;
}

std::uint64_t FakeController::Free(const ExtentKey& extent) {
  expected.erase(extent);
  Send(wire::NamExtentFree{next_request_, extent.uuid, extent.generation});
  return next_request_++;
}

std::optional<wire::NamExtentDone> FakeController::AwaitDone(std::uint64_t request, Millis limit) {
  auto done = Await<wire::NamExtentDone>(limit);
  if (done) {
    EXPECT_EQ(done->request, request);
  }
  return done;
}

void FakeController::Revoke(std::vector<LeaseId> leases, std::vector<NamClientId> clients) {
  for (const LeaseId lease : leases) std::erase(live, lease);
  Send(wire::NamRevoke{std::move(leases), std::move(clients)});
}

wire::NamLease FakeController::LeaseOf(const ExtentKey& extent, std::uint32_t uid, NamRights rights) {
  wire::NamLease lease;
  lease.system = system;
  lease.lease = LeaseId(next_lease++);
  live.push_back(lease.lease);
  lease.uuid = extent.uuid;
  lease.generation = extent.generation;
  lease.name = "field";
  lease.rights = rights;
  lease.uid = uid;
  lease.extents = {{.node = node_, .socket = dir_ + "/n/" + node_ + "/namd.sock"}};
  lease.segments = expected[extent].segments;
  return lease;
}

std::string FakeController::Sign(const wire::NamLease& lease) const {
  std::string text;
  wire::Encoder encoder(text);
  const_cast<wire::NamLease&>(lease).Fields(encoder);  // it only reads
  return wire::Encode(wire::SignedNamLease{text, Hmac(key, text)});
}

}  // namespace msa::namd::test
