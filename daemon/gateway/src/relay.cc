#include "relay.h"

namespace msa::gateway {
namespace {
// Packets taken in before those that are due go out: enough to pay for the clock, too few to make them late.
constexpr int kBatch = 32;
}  // namespace

Relay::Relay(Tun tun, const DelayLineOptions& options)
    : tun_(std::move(tun)),
      direct_(options.delay.count() == 0 && options.bits_per_second == 0),
      line_(options),
      scratch_(options.packet) {}

Status Relay::GiveBack(std::span<const char> packet) {
  MSA_ASSIGN_OR_RETURN(const bool taken, tun_.Write(packet));
  if (taken) {
    ++counters_.packets;
    counters_.bytes += packet.size() - kHeaderBytes;
  } else {
    ++counters_.dropped_refused;
  }
  return Status::Ok();
}

Status Relay::TakeIn() {
  for (int i = 0; i < kBatch; ++i) {
    const std::span<char> room = direct_ ? std::span<char>() : line_.Reserve();
    const bool keep = !room.empty();
    const std::span<char> place = keep ? room : std::span<char>(scratch_);
    MSA_ASSIGN_OR_RETURN(const std::size_t size, tun_.Read(place));
    if (size == 0) return Status::Ok();
    if (size < kHeaderBytes) continue;
    if (keep) {
      line_.Commit(size, size - kHeaderBytes, SteadyNow());
    } else if (direct_) {
      MSA_RETURN_IF_ERROR(GiveBack(place.first(size)));
    } else {
      ++counters_.dropped_full;
    }
  }
  return Status::Ok();
}

Status Relay::GiveOut() {
  for (auto due = line_.NextDue(); due && *due <= SteadyNow(); due = line_.NextDue()) {
    MSA_RETURN_IF_ERROR(GiveBack(line_.Front()));
    line_.Pop();
  }
  return Status::Ok();
}

Result<std::optional<SteadyTime>> Relay::Turn() {
  MSA_RETURN_IF_ERROR(TakeIn());
  MSA_RETURN_IF_ERROR(GiveOut());
  return line_.NextDue();
}

}  // namespace msa::gateway
