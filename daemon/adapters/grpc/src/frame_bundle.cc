#include "msa/adapters/grpc/frame_bundle.h"

#include <utility>

namespace msa::node_control {

wire::Frame Bundle(std::vector<wire::Frame> frames) {
  if (frames.size() == 1) return std::move(frames.front());
  wire::Frame bundle;
  bundle.type = kFrameBundle;
  for (const wire::Frame& frame : frames) bundle.payload += wire::Pack(frame.type, 0, frame.payload);
  return bundle;
}

Result<std::vector<wire::Frame>> Unbundle(wire::Frame frame) {
  std::vector<wire::Frame> frames;
  if (frame.type != kFrameBundle) {
    frames.push_back(std::move(frame));
    return frames;
  }
  wire::FrameReader reader;
  reader.Append(frame.payload);
  for (;;) {
    MSA_ASSIGN_OR_RETURN(std::optional<wire::Frame> next, reader.Next());
    if (!next) break;
    if (next->type == kFrameBundle) return Error(Code::kInvalidArgument, "a bundle of frames in a bundle");
    frames.push_back(std::move(*next));
  }
  if (reader.buffered() == 0) return frames;
  return Error(Code::kInvalidArgument, "a bundle of frames of {} bytes is cut short", frame.payload.size());
}

}  // namespace msa::node_control
