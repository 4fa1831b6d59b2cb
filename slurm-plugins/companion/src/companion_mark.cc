#include "companion_mark.h"

#include <charconv>

#include <fmt/format.h>

namespace msa::companion {
namespace {

bool TakeText(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

template <class T>
bool TakeNumber(std::string_view& rest, T& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

bool AtEnd(std::string_view rest) { return rest.empty() || rest.front() == ' '; }

}  // namespace

Mark MarkOf(const wire::CompanionAsk& ask) {
  return {
      .parent = ask.parent, .restarts = ask.restarts, .request = ask.request, .incarnation = ask.incarnation};
}

std::string JobName(const Mark& mark) { return fmt::format("msa:{}.{}", mark.parent, mark.request); }

std::string JobComment(const Mark& mark) {
  std::string comment =
      fmt::format("msa parent={} restart={} request={}", mark.parent, mark.restarts, mark.request);
  if (mark.incarnation.value != 0) comment += fmt::format(" run={}", mark.incarnation);
  return comment;
}

std::optional<Mark> ParseMark(std::string_view name, std::string_view comment) {
  Mark mark;
  const bool written = TakeText(comment, "msa parent=") && TakeNumber(comment, mark.parent.value) &&
                       TakeText(comment, " restart=") && TakeNumber(comment, mark.restarts) &&
                       TakeText(comment, " request=") && TakeNumber(comment, mark.request) && AtEnd(comment);
  Incarnation run;
  if (TakeText(comment, " run=") && TakeNumber(comment, run.value) && AtEnd(comment)) mark.incarnation = run;
  if (!written || mark.parent.value == 0 || name != JobName(mark)) return std::nullopt;
  return mark;
}

}  // namespace msa::companion
