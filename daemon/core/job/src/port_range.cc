#include "msa/job/port_range.h"

#include <charconv>

namespace msa {
namespace {

// A requeued job's earlier job daemon may still be ending.
constexpr std::uint64_t kPerJob = 3;

}  // namespace

std::string WithPortOf(std::string address, JobId job, Incarnation incarnation) {
  const auto at = address.find("%P");
  if (at == std::string::npos) return address;
  const char* const end = address.data() + address.size();
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const auto head = std::from_chars(address.data() + at + 2, end, first);
  if (head.ec != std::errc() || head.ptr == end || *head.ptr != '-') return address;
  const auto tail = std::from_chars(head.ptr + 1, end, last);
  if (tail.ec != std::errc() || last < first) return address;
  const std::uint64_t port = first + (job.value * kPerJob + incarnation.value) % (last - first + 1);
  address.replace(at, static_cast<std::size_t>(tail.ptr - address.data()) - at, std::to_string(port));
  return address;
}

}  // namespace msa
