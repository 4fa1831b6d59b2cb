#include "stdio_hub.h"

#include <vector>

#include "msa/launch/output_file.h"

namespace msa::jobd {

Result<std::shared_ptr<StdioHub::File>> StdioHub::OpenSink(const Sink& sink) {
  if (sink.kind != SinkKind::kFile) return std::shared_ptr<File>();
  MSA_ASSIGN_OR_RETURN(
      UniqueFd fd, launch::OpenOutputFile(
                       sink.path, options_.append ? launch::OpenMode::kAppend : launch::OpenMode::kTruncate));
  return std::make_shared<File>(File{std::move(fd), sink.path});
}

Status StdioHub::OpenFiles() {
  MSA_ASSIGN_OR_RETURN(out_, OpenSink(options_.plan.out));
  const Sink& err = options_.plan.err;
  if (out_ != nullptr && err.kind == SinkKind::kFile && err.path == out_->path) {
    err_ = out_;
    return Status::Ok();
  }
  MSA_ASSIGN_OR_RETURN(err_, OpenSink(err));
  return Status::Ok();
}

// ------------------------------------------------------------------------------------------ records

template <class M>
void StdioHub::Keep(M message) {
  if (!options_.interactive) return;
  message.seq = next_seq_++;
  std::string payload = wire::Encode(message);
  if (owner_ != 0) outlet_.to_session(owner_, M::kType, payload);
  kept_ += payload.size();
  records_.push_back({message.seq, M::kType, std::move(payload)});
}

template <class M>
void StdioHub::ToViewers(M message, std::size_t bytes) {
  std::vector<std::uint64_t> slow;
  for (auto& [session, viewer] : viewers_) {
    if (viewer.lag + bytes > options_.window) {
      slow.push_back(session);
      continue;
    }
    message.seq = viewer.next_seq++;
    viewer.unacked.emplace_back(message.seq, bytes);
    viewer.lag += bytes;
    outlet_.to_session(session, M::kType, wire::Encode(message));
  }
  for (const std::uint64_t session : slow) {
    wire::Notice notice;
    notice.seq = viewers_.at(session).next_seq;
    notice.text = fmt::format(
        "this viewer was {} bytes behind and is dropped; attach again to go on from here", options_.window);
    outlet_.to_session(session, wire::Notice::kType, wire::Encode(notice));
    outlet_.end_session(session);
    viewers_.erase(session);
  }
}

bool StdioHub::ToFile(const Sink& sink, std::string_view data) {
  if (sink.kind != SinkKind::kFile) return false;
  const std::shared_ptr<File>& file = &sink == &options_.plan.out ? out_ : err_;
  if (file == nullptr || file_failed_) return true;
  const Status written = WriteAll(file->fd.get(), file->path, data);
  if (!written.ok()) {
    file_failed_ = true;
    outlet_.on_file_error(written);
  }
  return true;
}

void StdioHub::OnOutput(std::uint32_t member, std::uint32_t spawn, TaskOutput output) {
  const std::size_t bytes = output.data.size();
  if (ended_) return outlet_.credit(member, bytes);
  const Sink& sink = output.stream == wire::Stream::kErr ? options_.plan.err : options_.plan.out;
  const bool to_file = ToFile(sink, output.data);
  if (sink.kind != SinkKind::kDrop) {
    const wire::Output record{0, spawn, output.rank, output.stream, std::move(output.data)};
    ToViewers(record, bytes);
    if (!to_file) Keep(record);
  }
  held_.emplace_back(member, bytes);
  if (lifted_ || kept_ <= options_.window) GiveHeldCredit();
}

void StdioHub::GiveHeldCredit() {
  std::map<std::uint32_t, std::uint64_t> sum;
  for (const auto& [member, bytes] : held_) sum[member] += bytes;
  held_.clear();
  for (const auto& [member, bytes] : sum) outlet_.credit(member, bytes);
}

void StdioHub::Notice(const std::string& text) {
  if (outlet_.on_notice) return outlet_.on_notice(text);
  if (ended_) return;  // nothing follows the end
  const wire::Notice notice{0, text};
  ToViewers(notice, text.size());
  if (!options_.interactive) ToFile(options_.plan.err, "msa: " + text + "\n");
  Keep(notice);
}

void StdioHub::End(wire::JobState state, std::int32_t exit_code, const std::string& message,
                   std::int32_t refusal) {
  if (ended_) return;
  ended_ = true;
  end_ = wire::SessionEnd{0, state, exit_code, message, refusal};
  ToViewers(*end_, 0);
  end_->seq = next_seq_;
  Keep(*end_);
  out_.reset();
  err_.reset();
}

void StdioHub::LiftWindow() {
  lifted_ = true;
  GiveHeldCredit();
}

// ------------------------------------------------------------------------------------------ sessions

bool StdioHub::Open(std::uint64_t session, const wire::AttachOpen& open) {
  if (!open.owner || !options_.interactive) {
    Viewer& viewer = viewers_[session];
    if (ended_) {
      wire::SessionEnd end = *end_;
      end.seq = viewer.next_seq++;
      outlet_.to_session(session, wire::SessionEnd::kType, wire::Encode(end));
    }
    return false;
  }
  if (owner_ != 0 && owner_ != session) outlet_.end_session(owner_);
  owner_ = session;
  Ack(session, open.acked);
  for (const Record& record : records_) outlet_.to_session(session, record.type, record.payload);
  return true;
}

void StdioHub::Ack(std::uint64_t session, std::uint64_t seq) {
  if (session == owner_ && session != 0) {
    while (!records_.empty() && records_.front().seq <= seq) {
      kept_ -= records_.front().payload.size();
      records_.pop_front();
    }
    if (lifted_ || kept_ <= options_.window) GiveHeldCredit();
    return;
  }
  const auto it = viewers_.find(session);
  if (it == viewers_.end()) return;
  auto& unacked = it->second.unacked;
  while (!unacked.empty() && unacked.front().first <= seq) {
    it->second.lag -= unacked.front().second;
    unacked.pop_front();
  }
}

void StdioHub::Close(std::uint64_t session) {
  if (session == owner_) owner_ = 0;
  viewers_.erase(session);
}

void StdioHub::CloseAll() {
  owner_ = 0;
  viewers_.clear();
}

}  // namespace msa::jobd
