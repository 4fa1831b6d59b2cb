#include "options.h"

#include <charconv>
#include <cmath>
#include <optional>

#include <CLI/CLI.hpp>

namespace msa::gateway {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// A number and one of the units; those that end as another does stand before it.
template <std::size_t N>
std::optional<double> Scaled(std::string_view text, const Unit (&units)[N]) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const std::string_view digits = text.substr(0, text.size() - unit.name.size());
    double value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
    if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value) || value < 0)
      return std::nullopt;
    return value * unit.factor;
  }
  return std::nullopt;
}

// CLI11's validator: "" is consent.
template <class T>
auto Into(Result<T> (*parse)(std::string_view), T& value) {
  return [parse, &value](const std::string& text) -> std::string {
    auto result = parse(text);
    if (!result.ok()) return result.status().message();
    value = *result;
    return {};
  };
}

}  // namespace

Result<std::chrono::nanoseconds> ParseDelay(std::string_view text) {
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  const auto value = text == "0" ? 0 : Scaled(text, kUnits);
  if (!value || *value > 10e9)
    return Error(Code::kInvalidArgument,
                 "'{}' is not a delay; expected a number with ns, us, ms or s, at most 10s", text);
  return std::chrono::nanoseconds(std::llround(*value));
}

Result<std::uint64_t> ParseRate(std::string_view text) {
  constexpr Unit kUnits[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"tbit", 1e12}, {"bit", 1},
                             {"k", 1e3},    {"K", 1e3},    {"M", 1e6},    {"G", 1e9},     {"T", 1e12}};
  const auto value = Scaled(text, kUnits);
  if (!value || *value < 1e3 || *value > 1e12)
    return Error(Code::kInvalidArgument,
                 "'{}' is not a rate; expected bits a second as 10gbit or 2.5G, from 1kbit to 1tbit", text);
  return static_cast<std::uint64_t>(std::llround(*value));
}

ParsedOptions ParseOptions(int argc, char** argv) {
  ParsedOptions parsed;
  Options& o = parsed.options;
  CLI::App app(
      "Gateway relay of msa: forwards IP packets between the networks of modules that have no common route. "
      "The host's "
      "routing leads what is to be forwarded into a TUN interface; the relay gives it back there, at once or "
      "with the "
      "delay and the rate of a longer link.");
  app.set_version_flag("--version", MSA_VERSION);
  app.add_option("--tun", o.tun,
                 "TUN interface with virtio headers; made if it is not there (default: relay0)");
  std::string delay;
  std::string rate;
  app.add_option("--delay", delay, "one-way delay of each packet, as 50us or 1.5ms (default: none)")
      ->check(CLI::Validator(Into(ParseDelay, o.delay), "DURATION"));
  app.add_option("--rate", rate,
                 "of both directions together, in bits a second, as 10gbit or 2.5G (default: no limit)")
      ->check(CLI::Validator(Into(ParseRate, o.bits_per_second), "RATE"));
  app.add_option("--queue", o.queue_mib, "MiB of packets under way; more are dropped (default: 16)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--log-level", o.log_level, "trace, debug, info, warn, err or critical (default: info)")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "err", "critical"}));
  app.footer(
      "Signals: SIGUSR1 logs the counters; SIGTERM and SIGINT end the relay, after which nothing is "
      "forwarded.\n"
      "Exit codes: 0 ended by a signal, 1 failed, 2 usage, 4 denied, 7 the interface has a relay already.\n"
      "Routing on the gateway, for legs eth0 and eth1:\n"
      "  ip tuntap add dev relay0 mode tun vnet_hdr; ip link set relay0 mtu 9000 up\n"
      "  ip route add default dev relay0 table 100\n"
      "  ip rule add iif eth0 lookup 100; ip rule add iif eth1 lookup 100\n"
      "  sysctl -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_now = true;
    parsed.exit_code = app.exit(error) == 0 ? 0 : 2;
  }
  return parsed;
}

}  // namespace msa::gateway
