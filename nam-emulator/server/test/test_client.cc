#include "test_client.h"

#include <sys/mman.h>

#include <cstring>

#include <gtest/gtest.h>

#include "msa/adapters/process/unix_socket.h"
#include "msa/nam/atomics.h"

#include "fake_controller.h"

namespace msa::namd::test {

Mapping::Mapping(int fd, const wire::NamAttached& attached) : bytes_(attached.file_bytes.value) {
  void* const base = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base != MAP_FAILED) base_ = base;
}
Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}
Mapping::Mapping(Mapping&& other) noexcept { *this = std::move(other); }
Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

TestClient::TestClient(const std::string& path) {
  auto fd = ConnectUnix(path);
  EXPECT_TRUE(fd.ok()) << fd.status().message();
  if (fd.ok()) socket = FrameSocket(std::move(*fd));
}

std::optional<wire::Frame> TestClient::CallRaw(std::uint16_t type, const std::string& payload) {
  const std::uint64_t id = next_id_++;
  socket.SendRaw(wire::Pack(type, id, payload));
  auto frame = socket.Receive(kLimit);
  // What is said without being asked.
  while (frame && frame->type == wire::NamEnded::kType) frame = socket.Receive(kLimit);
  if (frame) {
    EXPECT_EQ(frame->id, id);
  }
  return frame;
}

Status StatusOf(const std::optional<wire::Frame>& frame) {
  if (!frame) return Status(Code::kUnavailable, "no answer");
  if (frame->type != wire::NamFailed::kType) return Status::Ok();
  const auto failed = wire::Decode<wire::NamFailed>(frame->payload);
  return failed.ok() ? Status(static_cast<Code>(failed->code), failed->message) : failed.status();
}

TestClient::Attached TestClient::Attach(const std::string& blob, std::uint64_t client) {
  return Attach(wire::NamAttach{.blob = blob, .client = NamClientId(client), .map = true});
}

TestClient::Attached TestClient::Attach(const wire::NamAttach& attach) {
  const auto frame = Call(attach);
  Attached attached{StatusOf(frame), {}, {}};
  if (!attached.status.ok()) return attached;
  auto answer = wire::Decode<wire::NamAttached>(frame->payload);
  EXPECT_TRUE(answer.ok());
  if (answer.ok()) attached.answer = std::move(*answer);
  EXPECT_EQ(attached.answer.mapped, !socket.files.empty());
  if (!socket.files.empty()) {
    attached.file = std::move(socket.files.front());
    socket.files.pop_front();
  }
  return attached;
}

Status TestClient::Detach(std::uint64_t attachment) { return StatusOf(Call(wire::NamDetach{attachment})); }

std::optional<bool> TestClient::Lock(std::uint64_t attachment, std::uint32_t slot, nam::LockMode mode) {
  const auto frame = Call(wire::NamLock{attachment, slot, static_cast<std::uint8_t>(mode)});
  failure = StatusOf(frame);
  if (!failure.ok()) return std::nullopt;
  const auto locked = wire::Decode<wire::NamLocked>(frame->payload);
  return locked.ok() && locked->taken;
}

std::optional<std::int64_t> TestClient::FetchAdd(std::uint64_t attachment, std::uint64_t offset,
                                                 std::int64_t operand) {
  wire::NamAtomic atomic;
  atomic.attachment = attachment;
  atomic.offset = offset;
  atomic.op = static_cast<std::uint8_t>(nam::AtomicOp::kSum);
  atomic.type = static_cast<std::uint8_t>(nam::ElementType::kInt64);
  atomic.fetch = true;
  atomic.count = 1;
  atomic.operand.assign(reinterpret_cast<const char*>(&operand), sizeof operand);
  const auto frame = Call(atomic);
  failure = StatusOf(frame);
  if (!failure.ok()) return std::nullopt;
  const auto done = wire::Decode<wire::NamAtomicDone>(frame->payload);
  std::int64_t value = 0;
  if (!done.ok() || done->result.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, done->result.data(), sizeof value);
  return value;
}

}  // namespace msa::namd::test
