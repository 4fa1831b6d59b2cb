#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "msa/base/nam_messages.h"
#include "msa/nam/layout.h"
#include "msa/nam/locks.h"

#include "frame_socket.h"

namespace msa::namd::test {

// A mapping of what a namd has handed out.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, const wire::NamAttached& attached);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  nam::ExtentView view() const { return nam::ExtentView(base_); }
  explicit operator bool() const { return base_ != nullptr; }

 private:
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
};

// A process's side of namd's Unix socket.
class TestClient {
 public:
  explicit TestClient(const std::string& socket);

  template <class M>
  std::optional<wire::Frame> Call(const M& request) {
    return CallRaw(M::kType, wire::Encode(request));
  }
  std::optional<wire::Frame> CallRaw(std::uint16_t type, const std::string& payload);

  struct Attached {
    Status status;
    wire::NamAttached answer;
    UniqueFd file;
  };
  Attached Attach(const std::string& blob, std::uint64_t client);
  Attached Attach(const wire::NamAttach& attach);
  Status Detach(std::uint64_t attachment);
  // nullopt: refused; `failure` says why.
  std::optional<bool> Lock(std::uint64_t attachment, std::uint32_t slot, nam::LockMode mode);
  // *at += operand; the value before.
  std::optional<std::int64_t> FetchAdd(std::uint64_t attachment, std::uint64_t offset, std::int64_t operand);

  void Close() { socket.Close(); }
  Status failure;
  FrameSocket socket;

 private:
  std::uint64_t next_id_ = 1;
};

// The status of a NamFailed; ok for any other frame; kUnavailable for none.
Status StatusOf(const std::optional<wire::Frame>& frame);

}  // namespace msa::namd::test
