#include "region/transfer.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "msa/adapters/process/files.h"
#include "msa/base/fault.h"

namespace msa::cli {
namespace {

// Large enough that a call's costs vanish, small enough for a cache and for an answer to Ctrl-C.
constexpr std::size_t kChunk = std::size_t{4} << 20;
// A state is a small file; so often it costs below a hundredth of the transfer.
constexpr std::uint64_t kStateBytes = std::uint64_t{16} << 20;
constexpr Millis kStateTime{1000};

class Transfer {
 public:
  Transfer(TransferSide& source, TransferSide& target, const TransferOptions& options, Progress& progress)
      : source_(source), target_(target), options_(options), progress_(progress), buffer_(kChunk) {
    state_.source = source.identity();
    state_.target = target.identity();
    state_.length = options.length;
  }

  Result<TransferResult> Run() {
    if (options_.resume && !options_.state_path.empty()) MSA_RETURN_IF_ERROR(Resume());
    MSA_RETURN_IF_ERROR(Keep());
    Status moved = Move();
    if (moved.ok() && !out_.interrupted && options_.until_end) moved = ExpectEnd();
    if (moved.ok() && !out_.interrupted && options_.verify && target_.can_seek()) moved = Verify();
    out_.bytes = state_.position;
    out_.checksum = hasher_.Now();
    progress_.Clear();
    if (!moved.ok() || out_.interrupted) {
      if (broken_) {
        Forget();
      } else {
        const Status kept = Keep();
        if (moved.ok()) moved = kept;
      }
      if (!moved.ok()) return moved;
      return out_;
    }
    Forget();
    return out_;
  }

 private:
  Status Resume() {
    const auto text = ReadFile(options_.state_path, kMaxPartFile);
    if (!text.ok() && text.status().code() == Code::kNotFound) return Status::Ok();
    if (!text.ok()) return text.status();
    const auto state = ParsePartState(*text);
    if (!state.ok())
      return state.status().WithContext(
          fmt::format("state file '{}': start anew without --resume", options_.state_path));
    MSA_RETURN_IF_ERROR(CheckSame(*state));
    progress_.Begin(options_.what + ": compare", state->position);
    MSA_RETURN_IF_ERROR(Each(source_, state->position, [&](auto bytes) { hasher_.Add(bytes); }));
    if (out_.interrupted) return Status(Code::kCancelled, "interrupted while what was moved was compared");
    if (hasher_.Now() != state->checksum) return Changed(source_);
    state_.position = state->position;
    out_.resumed = state->position;
    return Status::Ok();
  }

  Status CheckSame(const PartState& state) const {
    if (state.source != state_.source) return Changed(source_);
    if (state.target != state_.target) return Changed(target_);
    if (state.length != state_.length)
      return Error(Code::kFailedPrecondition,
                   "'{}' is of a transfer of {} bytes, this one is of {}; start anew without --resume",
                   options_.state_path, state.length, state_.length);
    return Status::Ok();
  }

  static Status Changed(const TransferSide& side) {
    return Error(Code::kFailedPrecondition,
                 "{} has changed since the interruption, or is another one; start anew without --resume",
                 side.name());
  }

  // The first `length` bytes of `side`, until `stop`.
  template <class Visit>
  Status Each(TransferSide& side, std::uint64_t length, Visit visit) {
    for (std::uint64_t at = 0; at < length;) {
      if (Stopped()) return Status::Ok();
      const auto chunk =
          std::span(buffer_).first(static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, length - at)));
      MSA_ASSIGN_OR_RETURN(const std::size_t got, side.Read(at, chunk));
      visit(std::span<const std::byte>(chunk.first(got)));
      at += got;
      progress_.Advance(at);
      if (got < chunk.size())
        return Error(Code::kFailedPrecondition,
                     "{} has {} bytes, {} were expected; start anew without --resume", side.name(), at,
                     length);
    }
    return Status::Ok();
  }

  Status Move() {
    progress_.Begin(options_.what,
                    options_.until_end ? std::nullopt : std::optional<std::uint64_t>(state_.length),
                    state_.position);
    SteadyTime kept_at = options_.now();
    std::uint64_t kept = state_.position;
    while (state_.position < state_.length && !Stopped()) {
      const auto chunk = std::span(buffer_).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, state_.length - state_.position)));
      MSA_ASSIGN_OR_RETURN(const std::size_t got, source_.Read(state_.position, chunk));
      MSA_RETURN_IF_ERROR(target_.Write(state_.position, chunk.first(got)));
      hasher_.Add(chunk.first(got));
      state_.position += got;
      MSA_RETURN_IF_ERROR(Fault("msactl.transfer.chunk"));
      progress_.Advance(state_.position);
      if (state_.position - kept >= kStateBytes || options_.now() - kept_at >= kStateTime) {
        MSA_RETURN_IF_ERROR(Keep());
        kept = state_.position;
        kept_at = options_.now();
      }
      if (got == chunk.size()) continue;
      if (Stopped() || options_.until_end) return Status::Ok();
      return Error(Code::kFailedPrecondition, "{} has {} bytes, {} were to be moved: it was cut meanwhile",
                   source_.name(), state_.position, state_.length);
    }
    return Status::Ok();
  }

  Status ExpectEnd() {
    if (state_.position < state_.length) return Status::Ok();
    MSA_ASSIGN_OR_RETURN(const std::size_t more, source_.Read(state_.position, std::span(buffer_).first(1)));
    if (more == 0) return Status::Ok();
    return Error(Code::kOutOfRange,
                 "{} has more than the {} bytes for which there is room; they were written", source_.name(),
                 state_.length);
  }

  Status Verify() {
    progress_.Begin(options_.what + ": check", state_.position);
    Hasher found;
    MSA_RETURN_IF_ERROR(Each(target_, state_.position, [&](auto bytes) { found.Add(bytes); }));
    if (out_.interrupted || found.Now() == hasher_.Now()) return Status::Ok();
    broken_ = true;
    return Error(
        Code::kDataLoss,
        "{} does not hold what was moved (checksum {}, expected {}): somebody else writes to it, or it "
        "was changed before --resume; do it again, or without the check by --no-verify",
        target_.name(), ToText(found.Now()), ToText(hasher_.Now()));
  }

  bool Stopped() {
    if (options_.stop && options_.stop()) out_.interrupted = true;
    return out_.interrupted;
  }

  Status Keep() {
    if (options_.state_path.empty()) return Status::Ok();
    state_.checksum = hasher_.Now();
    return WriteFileAtomically(options_.state_path, ToText(state_));
  }

  void Forget() const {
    if (!options_.state_path.empty()) ::unlink(options_.state_path.c_str());
  }

  TransferSide& source_;
  TransferSide& target_;
  const TransferOptions& options_;
  Progress& progress_;
  std::vector<std::byte> buffer_;
  Hasher hasher_;  // of what has been moved
  PartState state_;
  TransferResult out_;
  bool broken_ = false;  // going on would not help
};

}  // namespace

Result<TransferResult> RunTransfer(TransferSide& source, TransferSide& target, const TransferOptions& options,
                                   Progress& progress) {
  return Transfer(source, target, options, progress).Run();
}

}  // namespace msa::cli
