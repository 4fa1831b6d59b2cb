#pragma once
// Options of msa-gatewayd.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "msa/base/status.h"

namespace msa::gateway {

struct Options {
  std::string tun = "relay0";
  std::chrono::nanoseconds delay{0};
  std::uint64_t bits_per_second = 0;
  std::uint64_t queue_mib = 16;
  std::string log_level = "info";
};

struct ParsedOptions {
  Options options;
  bool exit_now = false;
  int exit_code = 0;
};

ParsedOptions ParseOptions(int argc, char** argv);

// "50us", "1.5ms", "200ns", "0.1s": at most 10 s.
Result<std::chrono::nanoseconds> ParseDelay(std::string_view text);
// As tc has them, in bits a second: "10gbit", "2.5G", "100mbit", "64k". From 1 kbit to 1 Tbit.
Result<std::uint64_t> ParseRate(std::string_view text);

}  // namespace msa::gateway
