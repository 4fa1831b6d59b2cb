// How extents are made, committed and removed.
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include <spdlog/spdlog.h>

#include "msa/base/fault.h"

#include "nam_daemon.h"

namespace msa::namd {
namespace {

using Places = std::vector<wire::NamSegmentPlace>;

// Memory of so much is allocated in less time than a hand-over to the worker and back takes, 60 us.
constexpr Bytes kMadeAtOnce{256 << 10};

// kInvalidArgument: segments that do not lie one beside the other in a file.
Result<ExtentShape> ShapeOf(const Places& segments) {
  if (segments.empty() || segments.size() > wire::kMaxNamSegments)
    return Error(Code::kInvalidArgument, "extent of {} segments; expected 1 to {}", segments.size(),
                 wire::kMaxNamSegments);
  ExtentShape shape{static_cast<std::uint32_t>(segments.size()), Bytes(0)};
  std::vector<bool> seen(segments.size());
  for (const wire::NamSegmentPlace& segment : segments) {
    if (segment.slot >= seen.size() || seen[segment.slot] || segment.offset % nam::kSegmentAlign != 0)
      return Error(Code::kInvalidArgument,
                   "segment slot {} at {}: a slot is wrong or used twice, or the offset is "
                   "no multiple of {}",
                   segment.slot, segment.offset, nam::kSegmentAlign);
    seen[segment.slot] = true;
    std::uint64_t end = 0;
    if (__builtin_add_overflow(segment.offset, segment.bytes.value, &end))
      return Error(Code::kInvalidArgument, "segment of {} bytes at {} leaves 64 bits", segment.bytes,
                   segment.offset);
    shape.data = std::max(shape.data, Bytes(end));
  }
  return shape;
}

Status CopyBytes(const ExtentFile& from, std::uint64_t from_at, const ExtentFile& to, std::uint64_t to_at,
                 std::uint64_t bytes) {
  if (from_at > from.data_bytes() || bytes > from.data_bytes() - from_at || to_at > to.data_bytes() ||
      bytes > to.data_bytes() - to_at)
    return Error(Code::kInvalidArgument, "{} bytes from {} to {} are not in both extents", bytes, from_at,
                 to_at);
  // By read(2): what was truncated away is a short count here, not a signal.
  while (bytes > 0) {
    const ssize_t n =
        ::pread(from.fd(), to.data() + to_at, bytes, static_cast<off_t>(from.header_bytes() + from_at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "copy an extent");
    if (n == 0) return Status(Code::kDataLoss, "copy an extent: its file was truncated");
    from_at += static_cast<std::uint64_t>(n);
    to_at += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::uint64_t>(n);
  }
  return Status::Ok();
}

// What both sizes of a segment have in common.
Status CopySegments(const ExtentFile& from, const Places& old_segments, const ExtentFile& to,
                    const Places& segments) {
  for (const wire::NamSegmentPlace& segment : segments) {
    const auto old = std::find_if(old_segments.begin(), old_segments.end(),
                                  [&](const auto& s) { return s.slot == segment.slot; });
    if (old == old_segments.end()) continue;
    MSA_RETURN_IF_ERROR(
        CopyBytes(from, old->offset, to, segment.offset, std::min(old->bytes.value, segment.bytes.value)));
  }
  return Status::Ok();
}

}  // namespace

void NamDaemon::On(const wire::NamExtentAllocate& allocate) {
  const ExtentKey key{allocate.uuid, allocate.generation};
  if (!key.uuid.valid() || key.generation.value == 0)
    return Done(allocate.request, Status(Code::kInvalidArgument, "extent without uuid or generation"));
  const auto shape = ShapeOf(allocate.segments);
  if (!shape.ok()) return Done(allocate.request, shape.status());
  if (making_.contains(key) || removing_.contains(key)) {
    waiting_allocates_[key].push_back(allocate);
    return;
  }
  if (const auto file = service_->FileOf(key); file != nullptr) {
    // A repetition, or one that a namd before this one had made but not answered.
    if (file->shape().segments == shape->segments && file->shape().data == shape->data &&
        allocate.copy_from.value == 0)
      return Done(allocate.request,
                  file->Damage().empty() ? Status::Ok() : Status(Code::kDataLoss, file->Damage()));
  }
  if (const auto state = service_->StateOf(key); state && *state != State::kPending)
    return Done(allocate.request, Error(Code::kAlreadyExists, "extent {} is there already", ToText(key)));
  Make(allocate, key, *shape);
}

void NamDaemon::Make(const wire::NamExtentAllocate& allocate, const ExtentKey& key, ExtentShape shape) {
  std::shared_ptr<ExtentFile> from;
  if (allocate.copy_from.value != 0) {
    from = service_->FileOf({key.uuid, allocate.copy_from});
    if (from == nullptr)
      return Done(allocate.request,
                  Error(Code::kNotFound, "generation {} of extent {} is not here to be copied",
                        allocate.copy_from, ToText(key)));
  }
  if (const auto half_made = service_->FileOf(key)) allocated_ -= half_made->file_bytes();
  service_->Remove(key);
  making_.insert(key);
  auto made = std::make_shared<Result<std::shared_ptr<ExtentFile>>>(Status::Ok());
  auto task = [this, allocate, key, shape, from, made] {
    *made = [&]() -> Result<std::shared_ptr<ExtentFile>> {
      MSA_RETURN_IF_ERROR(Fault("namd.allocate.before"));
      MSA_ASSIGN_OR_RETURN(std::shared_ptr<ExtentFile> file, store_->Create(key, shape));
      Status status = Fault("namd.allocate.made");
      if (status.ok() && from != nullptr)
        status = CopySegments(*from, allocate.old_segments, *file, allocate.segments);
      if (status.ok()) status = Fault("namd.allocate.after");
      if (status.ok()) return file;
      MSA_RETURN_IF_ERROR(store_->Remove(key));
      return status;
    }();
  };
  auto done = [this, request = allocate.request, session = sessions_, key, shape, made] {
    making_.erase(key);
    if (made->ok()) {
      allocated_ += (**made)->file_bytes();
      service_->Put(key, State::kPending, std::move(**made), shape);
    }
    const bool is_asked_for = session_ && session == sessions_;
    if (is_asked_for) Done(request, made->status().WithContext("NAM node " + options_.node));
    if (free_requests_.contains(key))
      service_->StateOf(key) ? service_->Free(key) : Remove(key);
    else if (waiting_allocates_.contains(key))
      AllocateWaiting(key);
    else if (!is_asked_for && made->ok())
      service_->Free(key);  // the session in which it was asked for is over, and nobody waits for it
  };
  if (from == nullptr && store_->in_memory() && shape.data <= kMadeAtOnce) {
    task();
    done();
  } else {
    worker_->Run(std::move(task), std::move(done));
  }
}

void NamDaemon::AllocateWaiting(const ExtentKey& key) {
  auto waiting = waiting_allocates_.extract(key);
  if (waiting.empty()) return;
  for (const wire::NamExtentAllocate& allocate : waiting.mapped()) On(allocate);
}

void NamDaemon::On(const wire::NamExtentCommit& commit) {
  const ExtentKey key{commit.uuid, commit.generation};
  if (service_->FileOf(key) == nullptr) {
    const wire::NamExtentDamaged damaged{key.uuid, key.generation, "its file is not there"};
    spdlog::error("extent {} is to be committed and is not here", ToText(key));
    return link_->Send(damaged);
  }
  Commit(key);
}

void NamDaemon::Commit(const ExtentKey& key) {
  const auto file = service_->FileOf(key);
  service_->Commit(key);
  auto status = std::make_shared<Status>();
  auto task = [this, key, file, status] {
    *status = Fault("namd.commit.before");
    if (status->ok()) *status = store_->Commit(key, *file);
    if (status->ok()) *status = Fault("namd.commit.after");
  };
  worker_->Run(std::move(task), [key, status] {
    // It stays pending on disk; the next namd is told to commit it.
    if (!status->ok()) spdlog::error("commit extent {}: {}", ToText(key), status->message());
  });
}

void NamDaemon::On(const wire::NamExtentFree& free) {
  const ExtentKey key{free.uuid, free.generation};
  if (!service_->StateOf(key) && !making_.contains(key) && !removing_.contains(key))
    return Done(free.request, Status::Ok());
  free_requests_[key].push_back(free.request);
  if (making_.contains(key)) return;  // freed when it is made
  if (!removing_.contains(key)) service_->Free(key);
}

void NamDaemon::Remove(const ExtentKey& key) {
  if (!removing_.insert(key).second) return;
  const auto file = service_->FileOf(key);
  const std::uint64_t bytes = file == nullptr ? 0 : file->file_bytes();
  auto status = std::make_shared<Status>();
  auto task = [this, key, status] {
    *status = Fault("namd.free.before");
    if (status->ok()) *status = store_->Remove(key);
    if (status->ok()) {
      service_->Remove(key);  // unmaps: the memory is free when this returns
      *status = Fault("namd.free.after");
    }
  };
  worker_->Run(std::move(task), [this, key, bytes, status] {
    removing_.erase(key);
    if (status->ok()) allocated_ -= bytes;
    if (!status->ok()) spdlog::error("remove extent {}: {}", ToText(key), status->message());
    if (const auto requests = free_requests_.extract(key); !requests.empty())
      for (const std::uint64_t request : requests.mapped()) Done(request, *status);
    AllocateWaiting(key);
  });
}

void NamDaemon::On(const wire::NamScan& scan) {
  auto survey = std::make_shared<Survey>();
  // Before the directory is read: what is committed meanwhile is not missed in it.
  for (const wire::NamExtentReport& report : service_->Reports())
    if (report.state == State::kCommitted) survey->known.push_back({report.uuid, report.generation});
  worker_->Run([this, survey] { survey->listing = store_->Survey(); },
               [this, request = scan.request, session = sessions_, survey] {
                 if (session_ && session == sessions_) TellScan(request, *survey);
               });
}

void NamDaemon::TellScan(std::uint64_t request, const Survey& survey) {
  service_->LookForDamage();
  wire::NamScanned scanned{.request = request, .failure = survey.listing.status().message()};
  if (survey.listing.ok()) {
    std::set<ExtentKey> there;
    for (const ExtentStore::Found& found : survey.listing->extents) {
      there.insert(found.key);
      Judge(found, scanned);
    }
    for (const ExtentKey& key : survey.known)
      if (!there.contains(key) && !removing_.contains(key))
        service_->MarkDamaged(key, "its file is not in the directory any more");
    const std::vector<std::string>& foreign = survey.listing->foreign;
    scanned.foreign_count = foreign.size();
    const auto told = std::min(foreign.size(), wire::kMaxForeign);
    scanned.foreign.assign(foreign.begin(), foreign.begin() + static_cast<std::ptrdiff_t>(told));
  }
  // Behind the news of damage, which is posted too.
  loop_.Post([this, session = sessions_, scanned = std::move(scanned)] {
    if (session_ && session == sessions_) link_->Send(scanned);
  });
}

void NamDaemon::Judge(const ExtentStore::Found& found, wire::NamScanned& scanned) {
  // What the worker has made or removed since then is told by its own messages.
  if (making_.contains(found.key) || removing_.contains(found.key)) return;
  const wire::NamExtentReport report{found.key.uuid, found.key.generation, State::kCommitted,
                                     Bytes(found.bytes)};
  if (service_->StateOf(found.key)) {
    const auto file = service_->FileOf(found.key);
    if (file != nullptr && found.bytes > file->file_bytes()) scanned.extents.push_back(report);
    return;
  }
  spdlog::warn("extent {} of {} bytes was put into '{}' by somebody else", ToText(found.key), found.bytes,
               store_->directory());
  // From here on known, so that it can be freed; nobody is served from it.
  service_->Put(found.key, State::kDamaged, nullptr, {0, Bytes(found.bytes)});
  scanned.extents.push_back(report);
  scanned.extents.back().state = State::kDamaged;
}

}  // namespace msa::namd
