#include "descriptor_stream.h"

#include <cerrno>
#include <utility>

#include "msa/base/descriptor_passing.h"

namespace msa::jobd {
namespace {

IoResult Outcome(std::size_t bytes, int error, IoOutcome wait) {
  if (bytes > 0) return {IoOutcome::kDone, bytes};
  if (error == EAGAIN) return {wait, 0};
  return {error == 0 || error == EPIPE || error == ECONNRESET ? IoOutcome::kClosed : IoOutcome::kError, 0};
}

}  // namespace

std::vector<UniqueFd> DescriptorStream::TakeReceived() { return std::exchange(received_, {}); }

IoResult DescriptorStream::Read(char* buffer, std::size_t size) {
  ReceivedBytes in = ReceiveWithDescriptors(plain_->fd(), {buffer, size});
  for (UniqueFd& one : in.descriptors)
    if (received_.size() < most_received_) received_.push_back(std::move(one));
  return Outcome(in.bytes, in.error, IoOutcome::kWantRead);
}

IoResult DescriptorStream::Write(const char* data, std::size_t size) {
  if (waiting_.empty()) return plain_->Write(data, size);
  const int descriptor = waiting_.front().get();
  const SentBytes out = SendWithDescriptors(plain_->fd(), {data, size}, {&descriptor, 1});
  if (out.bytes > 0) waiting_.pop_front();
  return Outcome(out.bytes, out.error, IoOutcome::kWantWrite);
}

}  // namespace msa::jobd
