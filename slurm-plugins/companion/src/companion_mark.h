#pragma once
// By what a companion job is known in Slurm: its name, for people, and its comment, for the sweep.

#include <optional>
#include <string>
#include <string_view>

#include "msa/base/companion_messages.h"

namespace msa::companion {

// Whose companion a job is.
struct Mark {
  JobId parent;                // the leader's id
  std::uint32_t restarts = 0;  // of the parent, when it asked: a requeued job does not inherit companions
  std::uint64_t request = 0;   // unique in that run of the parent
  Incarnation incarnation{0};  // of the parent in msa: Slurm's job may have several; 0: not told
  friend bool operator==(const Mark&, const Mark&) = default;
};

Mark MarkOf(const wire::CompanionAsk& ask);

// "msa:12.3"
std::string JobName(const Mark& mark);
// "msa parent=12 restart=0 request=3 run=1"
std::string JobComment(const Mark& mark);

// What JobName and JobComment wrote, both of the same companion; any other texts, which any user may give his
// jobs, are none. A comment may go on after a blank: a site's plugins append to it.
std::optional<Mark> ParseMark(std::string_view name, std::string_view comment);

}  // namespace msa::companion
