#pragma once
// The standard streams of a job at its head: one numbered sequence of records for the owner, copies for
// viewers, files.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msa/base/messages.h"
#include "msa/base/unique_fd.h"
#include "msa/base/wire.h"

#include "output_file.h"
#include "peer_messages.h"

namespace msa::jobd {

struct StdioHubOptions {
  bool interactive = false;  // an owner will come for the records: keep them for it
  StdioPlan plan;
  bool append = false;
  std::uint64_t window = wire::kStdioWindowBytes;
};

// The owner's records are kept until it acknowledges them; beyond the window the members get no new credit,
// so their tasks block. Viewers never block the job: one that lags a window behind is dropped with a text.
// One thread.
class StdioHub {
 public:
  struct Outlet {
    std::function<void(std::uint64_t session, std::uint16_t type, std::string payload)> to_session;
    std::function<void(std::uint64_t session)> end_session;
    std::function<void(std::uint32_t member, std::uint64_t bytes)> credit;
    // A file cannot be written: once, with the text; the output that goes there is dropped from then on.
    std::function<void(const Status&)> on_file_error;
    // Optional: takes the lines for the user, which are no records then.
    std::function<void(const std::string&)> on_notice;
  };

  StdioHub(StdioHubOptions options, Outlet outlet)
      : options_(std::move(options)), outlet_(std::move(outlet)) {}

  // Opens the files. The first error, naming the file.
  Status OpenFiles();

  void OnOutput(std::uint32_t member, std::uint32_t spawn, TaskOutput output);
  // A line for the user's stderr; without an owner it goes to the file of standard error, prefixed "msa: ".
  void Notice(const std::string& text);
  // The last record.
  void End(wire::JobState state, std::int32_t exit_code, const std::string& message,
           std::int32_t refusal = 0);
  const std::optional<wire::SessionEnd>& end() const noexcept { return end_; }

  // True: it is the owner's session now (a former one was ended).
  bool Open(std::uint64_t session, const wire::AttachOpen& open);
  void Ack(std::uint64_t session, std::uint64_t seq);
  void Close(std::uint64_t session);
  void CloseAll();

  // No window any more: the tasks are being killed, and what their pipes still hold is bounded.
  void LiftWindow();
  void RestoreWindow() noexcept { lifted_ = false; }

  bool is_owner(std::uint64_t session) const noexcept { return owner_ == session && session != 0; }
  std::uint64_t owner() const noexcept { return owner_; }  // 0: none
  bool has_owner() const noexcept { return owner_ != 0; }
  bool interactive() const noexcept { return options_.interactive; }
  bool ended() const noexcept { return ended_; }
  // The owner has acknowledged everything, SessionEnd included; true also for a job without owner that has
  // ended.
  bool drained() const noexcept { return ended_ && records_.empty(); }
  std::uint64_t kept_bytes() const noexcept { return kept_; }
  std::size_t viewers() const noexcept { return viewers_.size(); }

 private:
  struct Record {
    std::uint64_t seq = 0;
    std::uint16_t type = 0;
    std::string payload;
  };
  struct Viewer {
    std::uint64_t next_seq = 1;
    std::deque<std::pair<std::uint64_t, std::size_t>> unacked;  // (seq, bytes)
    std::uint64_t lag = 0;
  };
  struct File {
    UniqueFd fd;
    std::string path;
  };

  template <class M>
  void Keep(M message);
  template <class M>
  void ToViewers(M message, std::size_t bytes);
  bool ToFile(const Sink& sink, std::string_view data);
  void GiveHeldCredit();
  Result<std::shared_ptr<File>> OpenSink(const Sink& sink);

  StdioHubOptions options_;
  Outlet outlet_;
  std::shared_ptr<File> out_;
  std::shared_ptr<File> err_;
  std::uint64_t next_seq_ = 1;
  std::deque<Record> records_;
  std::uint64_t kept_ = 0;
  std::uint64_t owner_ = 0;
  std::map<std::uint64_t, Viewer> viewers_;
  std::deque<std::pair<std::uint32_t, std::uint64_t>> held_;  // credit by member, oldest first
  bool lifted_ = false;
  bool ended_ = false;
  bool file_failed_ = false;
  std::optional<wire::SessionEnd> end_;
};

}  // namespace msa::jobd
