#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "msa/base/messages.h"
#include "msa/base/wire.h"

namespace msa::wire {
namespace {

JobExit AnyExit() {
  JobExit exit;
  exit.job = JobId(*rc::gen::arbitrary<std::uint64_t>());
  exit.exit_code = *rc::gen::arbitrary<std::int32_t>();
  exit.message = *rc::gen::arbitrary<std::string>();
  exit.started_at_ms = *rc::gen::arbitrary<std::int64_t>();
  const auto ranks = *rc::gen::arbitrary<std::vector<std::uint32_t>>();
  for (const std::uint32_t rank : ranks)
    exit.failed.push_back(
        {.rank = Rank(rank), .node = *rc::gen::arbitrary<std::string>(), .signal = -1, .core_dumped = true});
  return exit;
}

RC_GTEST_PROP(WireProperty, WhatIsEncodedIsDecodedUnchanged, ()) {
  const JobExit exit = AnyExit();
  const auto decoded = Decode<JobExit>(Encode(exit));
  RC_ASSERT(decoded.ok());
  RC_ASSERT(decoded->job == exit.job);
  RC_ASSERT(decoded->exit_code == exit.exit_code);
  RC_ASSERT(decoded->message == exit.message);
  RC_ASSERT(decoded->started_at_ms == exit.started_at_ms);
  RC_ASSERT(decoded->failed.size() == exit.failed.size());
  RC_ASSERT(Encode(*decoded) == Encode(exit));
}

RC_GTEST_PROP(WireProperty, NoCutOfAMessageReadsBeyondItsEnd, ()) {
  const std::string whole = Encode(AnyExit());
  const auto cut = *rc::gen::inRange<std::size_t>(0, whole.size() + 1);
  // A copy of exact size, so that the address sanitizer sees one byte too far.
  const std::vector<char> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
  const auto decoded = Decode<JobExit>(std::string_view(part.data(), part.size()));
  if (decoded.ok()) RC_ASSERT(Encode(*decoded).size() >= cut);
}

RC_GTEST_PROP(WireProperty, AnyBytesAreAMessageOrAnErrorWithText, (const std::string& bytes)) {
  const auto decoded = Decode<LaunchJob>(bytes);
  if (!decoded.ok()) RC_ASSERT(!decoded.status().message().empty());
}

RC_GTEST_PROP(FrameReaderProperty, FramesSurviveAnyCuttingOfTheirStream, ()) {
  const auto payloads = *rc::gen::arbitrary<std::vector<std::string>>();
  std::string stream;
  for (std::size_t i = 0; i < payloads.size(); ++i)
    stream += Pack(static_cast<std::uint16_t>(i), i * 3, payloads[i]);
  FrameReader reader;
  std::size_t read = 0;
  std::size_t at = 0;
  while (at < stream.size()) {
    const auto step = *rc::gen::inRange<std::size_t>(1, 64);
    reader.Append(std::string_view(stream).substr(at, step));
    at += step;
    for (;;) {
      auto next = reader.Next();
      RC_ASSERT(next.ok());
      if (!next->has_value()) break;
      RC_ASSERT(read < payloads.size());
      RC_ASSERT((*next)->payload == payloads[read]);
      RC_ASSERT((*next)->id == read * 3);
      ++read;
    }
  }
  RC_ASSERT(read == payloads.size());
  RC_ASSERT(reader.buffered() == 0u);
}

}  // namespace
}  // namespace msa::wire
