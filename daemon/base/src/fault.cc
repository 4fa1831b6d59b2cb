#include "msa/base/fault.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "msa/base/mutex.h"

namespace msa::fault_internal {
namespace {

struct Point {
  std::string action;
  std::uint64_t at_pass = 1;
  std::uint64_t passes = 0;
};

struct Points {
  Mutex mu;
  std::map<std::string, Point, std::less<>> by_name MSA_GUARDED_BY(mu);
};

std::uint64_t ParseNumber(std::string_view text, std::uint64_t otherwise) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

Points& AllPoints() {
  static Points points;
  static const bool filled = [] {
    MutexLock lock(points.mu);
    const char* text = std::getenv("MSA_FAULT");
    std::string_view rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      std::string_view item = rest.substr(0, comma);
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
      const auto equals = item.find('=');
      if (equals == std::string_view::npos) continue;
      std::string_view action = item.substr(equals + 1);
      Point point;
      if (const auto at = action.find('@'); at != std::string_view::npos) {
        point.at_pass = ParseNumber(action.substr(at + 1), 1);
        action = action.substr(0, at);
      }
      point.action = action;
      points.by_name.emplace(std::string(item.substr(0, equals)), point);
    }
    return true;
  }();
  (void)filled;
  return points;
}

}  // namespace

const bool g_enabled = std::getenv("MSA_FAULT") != nullptr;

Status Hit(std::string_view name) {
  std::string action;
  {
    Points& points = AllPoints();
    MutexLock lock(points.mu);
    const auto it = points.by_name.find(name);
    if (it == points.by_name.end() || ++it->second.passes != it->second.at_pass) return Status::Ok();
    action = it->second.action;
  }
  if (action == "kill") ::kill(::getpid(), SIGKILL);
  if (action == "fail") return Error(Code::kInternal, "fault point '{}' of MSA_FAULT", name);
  if (action.starts_with("sleep:"))
    std::this_thread::sleep_for(
        std::chrono::milliseconds(ParseNumber(std::string_view(action).substr(6), 0)));
  return Status::Ok();
}

}  // namespace msa::fault_internal
