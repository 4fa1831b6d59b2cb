#include "extent.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "fabric_library.h"

namespace msa::nam {
namespace {

// Populating takes 50 us a MiB and spares the first pass its page faults: up to here it is no more than a
// part of what opening costs.
constexpr std::size_t kPopulateUpTo = std::size_t{8} << 20;

Status Refusal(const wire::Frame& frame) {
  MSA_ASSIGN_OR_RETURN(const wire::NamFailed failed, wire::Decode<wire::NamFailed>(frame.payload));
  return Status(failed.code == 0 ? Code::kInternal : static_cast<Code>(failed.code), failed.message);
}

}  // namespace

Result<Transport> WantedTransport() {
  const char* text = std::getenv("MSA_NAM_TRANSPORT");
  const std::string_view wanted = text == nullptr ? "" : text;
  if (wanted.empty() || wanted == "auto") return Transport::kAuto;
  if (wanted == "local") return Transport::kLocal;
  if (wanted == "fabric") return Transport::kFabric;
  return Error(Code::kInvalidArgument, "MSA_NAM_TRANSPORT is '{}'; expected auto, local or fabric", wanted);
}

Extent::Extent(std::shared_ptr<Lease> lease, std::uint32_t index) : lease_(std::move(lease)), index_(index) {
  const wire::NamLease& terms = lease_->terms();
  for (const wire::NamSegmentPlace& segment : terms.segments)
    if (segment.extent == index_) slots_ = std::max(slots_, segment.slot + 1);
  gates_ = GatesOf({terms.uuid, terms.generation, terms.extents[index_].node}, slots_);
}

Extent::~Extent() {
  if (base_ != nullptr) munmap(base_, mapped_bytes_);
  const MutexLock lock(mu_);
  if (fabric_.peer && fabric_.attachment != 0)
    // Its end would come with the lease's anyway.
    (void)fabric_.peer->Call(wire::NamDetach::kType, wire::Encode(wire::NamDetach{fabric_.attachment}),
                             SteadyNow() + Millis(200));
}

Result<std::shared_ptr<Extent>> Extent::Attach(std::shared_ptr<Lease> lease, std::uint32_t index,
                                               Transport transport, SteadyTime deadline) {
  std::shared_ptr<Extent> extent(new Extent(std::move(lease), index));
  Status local = Status(Code::kPermissionDenied, "MSA_NAM_TRANSPORT=fabric");
  if (transport != Transport::kFabric) {
    local = extent->AttachLocal(deadline);
    if (local.ok()) return extent;
    if (transport == Transport::kLocal) return local;
    // These do not change with the way.
    if (local.code() == Code::kDataLoss || local.code() == Code::kFailedPrecondition) return local;
  }
  const Status fabric = extent->AttachFabricFirst(deadline);
  if (fabric.ok()) return extent;
  if (transport == Transport::kFabric) return fabric;
  return Status(fabric.code(),
                fmt::format("not by mapping: {}; not by the fabric: {}", local.message(), fabric.message()));
}

wire::NamAttach Extent::Request(bool map) const {
  wire::NamAttach request;
  request.blob = lease_->blob();
  request.client = Control::Get().client();
  request.map = map;
  request.fabric = !map;
  return request;
}

// ------------------------------------------------------------------------------------------- by mapping

Result<wire::NamAttached> Extent::AskSocket(FrameSocket& socket, bool map, SteadyTime deadline) {
  MSA_RETURN_IF_ERROR(socket.Send(wire::Pack(Request(map), 1), deadline));
  for (;;) {
    MSA_ASSIGN_OR_RETURN(const wire::Frame frame, socket.Receive(deadline));
    if (frame.id != 1) continue;
    if (frame.type == wire::NamFailed::kType) return Refusal(frame);
    if (frame.type == wire::NamAttached::kType) return wire::Decode<wire::NamAttached>(frame.payload);
    return Error(Code::kInternal, "NAM daemon answered with type {:#06x}", frame.type);
  }
}

Status Extent::AttachLocal(SteadyTime deadline) {
  const wire::NamLease& terms = lease_->terms();
  if (!Has(terms.rights, NamRights::kMap))
    return Error(
        Code::kPermissionDenied,
        "region '{}' may be mapped by its owner only; ask him for the right 'map' (msactl region acl), or "
        "use MSA_NAM_TRANSPORT=auto",
        terms.name);
  const wire::NamExtentPlace place = lease_->Place(index_);
  auto socket = FrameSocket::Connect(place.socket, deadline);
  if (!socket.ok())
    return Status(Code::kUnavailable, fmt::format("NAM node {} cannot be reached on this host: {}",
                                                  place.node, socket.status().message()));
  MSA_ASSIGN_OR_RETURN(const wire::NamAttached attached, AskSocket(**socket, true, deadline));
  UniqueFd file = (*socket)->TakeFd();
  if (!attached.mapped || !file)
    return Error(Code::kPermissionDenied, "NAM node {} does not let region '{}' be mapped", place.node,
                 terms.name);
  MSA_RETURN_IF_ERROR(Map(attached, std::move(file)));
  const MutexLock lock(mu_);
  socket_ = std::move(*socket);
  attachment_ = attached.attachment;
  owner_.store(attached.owner);
  return Status::Ok();
}

Status Extent::CheckHeader(const wire::NamAttached& attached, const ExtentHeader& header) const {
  const wire::NamLease& terms = lease_->terms();
  const std::uint64_t data_bytes = attached.file_bytes.value - attached.header_bytes.value;
  const auto damaged = [&](std::string_view what) {
    return Error(Code::kDataLoss, "memory of region '{}' on NAM node {}: {}; see 'msactl region fsck'",
                 terms.name, terms.extents[index_].node, what);
  };
  if (header.magic != kExtentMagic || header.version != kExtentVersion)
    return damaged("no extent of this version");
  if (header.uuid_high != terms.uuid.high || header.uuid_low != terms.uuid.low ||
      header.generation != terms.generation.value)
    return damaged("another region's or generation's");
  if (header.data_at != attached.header_bytes.value || header.locks_at < kPageBytes ||
      header.segments < slots_ || header.locks_at > header.data_at || header.owners_at > header.data_at ||
      header.segments > (header.data_at - header.locks_at) / sizeof(SegmentLock) ||
      kMaxOwners > (header.data_at - header.owners_at) / sizeof(OwnerSlot))
    return damaged("its header is overwritten");
  if (attached.owner == 0 || attached.owner > kMaxOwners) return damaged("no owner number");
  for (const wire::NamSegmentPlace& segment : terms.segments)
    if (segment.extent == index_ &&
        (segment.offset > data_bytes || segment.bytes.value > data_bytes - segment.offset))
      return damaged("a segment lies beyond its end");
  return Status::Ok();
}

Status Extent::Map(const wire::NamAttached& attached, UniqueFd file) {
  const wire::NamLease& terms = lease_->terms();
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return ErrnoError(errno, "fstat of an extent");
  const std::uint64_t bytes = attached.file_bytes.value;
  if (static_cast<std::uint64_t>(info.st_size) < bytes || attached.header_bytes.value < kPageBytes ||
      attached.header_bytes.value > bytes)
    return Error(Code::kDataLoss, "extent of region '{}' has {} bytes, expected {}; it was truncated",
                 terms.name, info.st_size, bytes);
  writable_ = Has(terms.rights, NamRights::kWrite);
  const int protection = writable_ ? PROT_READ | PROT_WRITE : PROT_READ;
  const int flags = MAP_SHARED | (bytes <= kPopulateUpTo ? MAP_POPULATE : 0);
  void* base = mmap(nullptr, bytes, protection, flags, file.get(), 0);
  if (base == MAP_FAILED)
    return ErrnoError(errno, fmt::format("map {} bytes of region '{}'", bytes, terms.name));
  base_ = static_cast<std::byte*>(base);
  mapped_bytes_ = bytes;
  const ExtentView view(base);
  MSA_RETURN_IF_ERROR(CheckHeader(attached, view.header()));
  locks_ = &view.lock(0);
  owners_ = &view.owner(1);
  highest_owner_ = &view.header().highest_owner;
  device_ = info.st_dev;
  inode_ = info.st_ino;
  data_ = base_ + attached.header_bytes.value;
  return Status::Ok();
}

Status Extent::CheckSameFile(int file) const {
  struct stat info {};
  if (file >= 0 && fstat(file, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_)
    return Status::Ok();
  return Error(Code::kFailedPrecondition, "region '{}' lies in another file now; open it again",
               lease_->terms().name);
}

int Extent::SocketIfUp() const {
  const MutexLock lock(mu_);
  pollfd one{socket_ ? socket_->fd() : -1, 0, 0};
  return one.fd >= 0 && poll(&one, 1, 0) == 0 ? one.fd : -1;
}

bool Extent::IsHeld(std::vector<pollfd>& fds) const {
  int lease = -1;
  if (lease_->EndsWithItsConnection() && lease_->IsOrphan(lease)) return false;
  const int own = SocketIfUp();
  if (mapped() && own < 0) return false;
  if (lease >= 0) fds.push_back({lease, 0, 0});
  if (own >= 0) fds.push_back({own, POLLIN, 0});
  return true;
}

void Extent::Hear() {
  std::shared_ptr<FrameSocket> socket;
  const auto has_something = [&] {
    pollfd one{socket->fd(), POLLIN, 0};
    return poll(&one, 1, 0) == 1 && one.revents == POLLIN;
  };
  {
    const MutexLock lock(mu_);
    socket = socket_;
  }
  if (!socket || !has_something()) return;
  // Or it is an answer: then who has asked takes it.
  const MutexLock asking(asking_);
  while (!stale_.load() && has_something()) {
    const auto frame = socket->Receive(SteadyNow());
    if (!frame.ok()) return;
    OnEnded(*frame);
  }
}

void Extent::OnEnded(const wire::Frame& frame) {
  if (frame.type != wire::NamEnded::kType) return;
  const auto ended = wire::Decode<wire::NamEnded>(frame.payload);
  bool is_ours = false;
  {
    const MutexLock lock(mu_);
    is_ours = ended.ok() && ended->attachment == attachment_;
  }
  if (is_ours) MarkStale(Ended());
}

Status Extent::Ended() const {
  return Error(Code::kFailedPrecondition,
               "region '{}' was removed or resized, or your rights to it were changed; open it again",
               lease_->terms().name);
}

Status Extent::AttachAgain(SteadyTime deadline) {
  // It is held by a connection to a namd, which may have gone with it: taken over, or it ends.
  if (lease_->EndsWithItsConnection()) MSA_RETURN_IF_ERROR(lease_->Refresh(deadline));
  if (stale()) {  // closed meanwhile: nobody else would end what was opened anew
    (void)lease_->End(deadline).ok();
    return WhyStale();
  }
  // Who uses the fabric next finds out how that is.
  if (!mapped() || SocketIfUp() >= 0) return Status::Ok();
  for (bool refreshed = false;; refreshed = true) {
    auto socket = FrameSocket::Connect(lease_->Place(index_).socket, deadline);
    if (!socket.ok()) return Status(Code::kUnavailable, socket.status().message());
    auto attached = AskSocket(**socket, true, deadline);
    if (!attached.ok()) {
      const Code code = attached.status().code();
      const bool lease_ended = code == Code::kFailedPrecondition || code == Code::kUnauthenticated;
      if (!lease_ended || refreshed) return attached.status();
      MSA_RETURN_IF_ERROR(lease_->Refresh(deadline));
      continue;
    }
    const UniqueFd file = (*socket)->TakeFd();
    MSA_RETURN_IF_ERROR(CheckSameFile(file.get()));
    if (attached->owner != owner_.load())
      return Error(Code::kFailedPrecondition,
                   "locks of region '{}' are lost: NAM node {} has forgotten this process; open it again",
                   lease_->terms().name, lease_->terms().extents[index_].node);
    const MutexLock lock(mu_);
    socket_ = std::move(*socket);
    attachment_ = attached->attachment;
    return Status::Ok();
  }
}

void Extent::MarkStale(const Status& why) {
  const MutexLock lock(mu_);
  if (stale_.load()) return;
  why_stale_ = why;
  if (on_stale_) on_stale_();
  stale_.store(true, std::memory_order_release);
}

bool Extent::IsRevoked() {
  const std::uint32_t own = owner_.load(std::memory_order_relaxed);
  if (own == 0 || own > kMaxOwners || owners_[own - 1].process.load() != kRevokedProcess) return false;
  MarkStale(Ended());
  return true;
}

Status Extent::WhyStale() const {
  const MutexLock lock(mu_);
  return stale_.load() ? why_stale_ : Status::Ok();
}

void Extent::OnStale(std::function<void()> hook) {
  const MutexLock lock(mu_);
  on_stale_ = std::move(hook);
}

void Extent::Close() {
  const MutexLock lock(mu_);
  why_stale_ = Status(Code::kInvalidArgument, "the handle is closed");
  on_stale_ = nullptr;
  stale_.store(true, std::memory_order_release);
  socket_.reset();
}

std::string Extent::HolderOf(std::uint32_t slot) const {
  if (!mapped()) return "";
  const SegmentLock& lock = locks_[slot];
  std::uint32_t holder = lock.exclusive.load();
  const std::uint32_t own = owner_.load();
  for (std::uint32_t owner = 1; (holder == 0 || holder == own) && owner <= kMaxOwners; ++owner)
    if (owner != own && (lock.shared[(owner - 1) / 64].load() >> (owner - 1) % 64 & 1) != 0) holder = owner;
  if (holder == 0 || holder == own || holder > kMaxOwners) return "";
  const std::uint64_t process = owners_[holder - 1].process.load();
  if (process == 0 || process == kRevokedProcess) return "";
  return process == kRemoteProcess ? fmt::format("owner {} (over the fabric)", holder)
                                   : fmt::format("owner {} (pid {})", holder, process);
}

}  // namespace msa::nam
