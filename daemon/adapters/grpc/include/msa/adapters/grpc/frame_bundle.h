#pragma once

#include <vector>

#include "msa/base/wire.h"

namespace msa::node_control {

// Frames of one job daemon that a node daemon passes on together: a message over gRPC costs both ends some
// 100 us, and the beginning and the end of a short job are two frames each. Only FromJobd carries it.
inline constexpr std::uint16_t kFrameBundle = 0x03ff;

// One frame that holds all; a single one is itself.
wire::Frame Bundle(std::vector<wire::Frame> frames);
// What Bundle was given, without the numbers that job daemons give. kInvalidArgument: cut short, or a bundle
// in a bundle.
Result<std::vector<wire::Frame>> Unbundle(wire::Frame frame);

}  // namespace msa::node_control
