#pragma once
// What every message of the local wire format promises of any bytes.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "msa/base/wire.h"

namespace msa::fuzz {

// Decoded or refused; what is decoded encodes to bytes that decode to the same.
template <class M>
void RoundTrip(std::string_view payload) {
  const auto message = wire::Decode<M>(payload);
  if (!message.ok()) return;
  const std::string once = wire::Encode(*message);
  const auto again = wire::Decode<M>(once);
  if (!again.ok() || wire::Encode(*again) != once) std::abort();
}

// As the message of that number, counted round.
template <class... Ms>
void RoundTripAs(std::uint8_t which, std::string_view payload) {
  std::uint8_t i = 0;
  ((i++ == which % sizeof...(Ms) ? RoundTrip<Ms>(payload) : void()), ...);
}

}  // namespace msa::fuzz
