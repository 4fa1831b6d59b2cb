// msa_nam.h: put and get in all forms. A mapped segment is a bounds check and a memcpy.

#include <cstring>
#include <new>
#include <vector>

#include "errors.h"
#include "region.h"

using msa::Code;
using msa::Error;
using msa::MutexLock;
using msa::NamRights;
using msa::Status;
using msa::SteadyNow;
using msa::nam::Direction;
using msa::nam::FabricPiece;
using msa::nam::Finish;
using msa::nam::Segment;

namespace {

// Pieces of one transfer over the fabric.
constexpr std::size_t kBatch = 1024;

Status Null(const char* what) { return Error(Code::kInvalidArgument, "{} is a null pointer", what); }

constexpr NamRights RightOf(Direction direction) {
  return direction == Direction::kPut ? NamRights::kWrite : NamRights::kRead;
}

std::byte* BaseOf(const Segment& segment, Direction direction) {
  return (direction == Direction::kPut ? segment.put_base : segment.get_base).load(std::memory_order_acquire);
}

// Columns of numbers are what vectors are made of: eight bytes without a call.
inline void CopyBytes(void* to, const void* from, std::uint64_t bytes) {
  if (bytes == 8)
    std::memcpy(to, from, 8);
  else
    std::memcpy(to, from, bytes);
}

inline void Copy(std::byte* base, Direction direction, const FabricPiece& piece) {
  if (direction == Direction::kPut)
    CopyBytes(base + piece.offset, piece.local, piece.bytes);
  else
    CopyBytes(piece.local, base + piece.offset, piece.bytes);
}

template <class Work>
int Do(const char* what, Work work) noexcept {
  try {
    return Finish(what, work());
  } catch (const std::bad_alloc&) {
    return Finish(what, Status(Code::kResourceExhausted, "out of memory in this process"));
  } catch (const std::exception& e) {
    return Finish(what, Status(Code::kInternal, e.what()));
  }
}

// ------------------------------------------------------------------------------------------------ one piece

Status CheckPiece(const msa_nam_region* region, std::uint32_t index, Direction direction,
                  const FabricPiece& piece) {
  if (region == nullptr) return Null("region");
  MSA_RETURN_IF_ERROR(region->Check(index, piece.offset, piece.bytes, RightOf(direction)));
  return piece.local == nullptr && piece.bytes != 0 ? Null("local memory") : Status::Ok();
}

Status MoveOne(msa_nam_region_t region, std::uint32_t index, Direction direction, FabricPiece piece) {
  MSA_RETURN_IF_ERROR(CheckPiece(region, index, direction, piece));
  if (piece.bytes == 0) return Status::Ok();
  Segment& segment = region->segments[index];
  if (std::byte* base = BaseOf(segment, direction); base != nullptr) {
    Copy(base, direction, piece);
    return Status::Ok();
  }
  piece.offset += segment.extent_offset;
  return segment.extent->MoveNow(direction, piece, region->TransferDeadline());
}

// Null: not this way.
inline std::byte* Fast(msa_nam_region_t region, std::uint32_t index, std::uint64_t offset,
                       std::uint64_t bytes, Direction direction) {
  if (region == nullptr || index >= region->segment_count) return nullptr;
  const Segment& segment = region->segments[index];
  if (offset > segment.bytes || bytes > segment.bytes - offset) return nullptr;
  std::byte* base = BaseOf(segment, direction);
  return base == nullptr ? nullptr : base + offset;
}

// ---------------------------------------------------------------------------------------------- many pieces

// Batches what goes over the fabric.
class Mover {
 public:
  Mover(msa_nam_region_t region, std::uint32_t index, Direction direction)
      : region_(region), segment_(region->segments[index]), direction_(direction) {}

  Status Add(FabricPiece piece) {
    if (piece.bytes == 0) return Status::Ok();
    piece.offset += segment_.extent_offset;
    batch_.push_back(piece);
    return batch_.size() < kBatch ? Status::Ok() : Send();
  }
  Status Send() {
    if (batch_.empty()) return Status::Ok();
    const Status moved = segment_.extent->Move(direction_, batch_, region_->TransferDeadline());
    batch_.clear();
    return moved;
  }

 private:
  msa_nam_region_t region_;
  Segment& segment_;
  Direction direction_;
  std::vector<FabricPiece> batch_;
};

__extension__ using Wide = __int128;

Status CheckShape(const msa_nam_region* region, std::uint32_t index, Direction direction,
                  const msa_nam_strided* shape, const void* local) {
  if (region == nullptr) return Null("region");
  if (shape == nullptr) return Null("shape");
  MSA_RETURN_IF_ERROR(region->Check(index, shape->offset, 0, RightOf(direction)));
  if (shape->count == 0 || shape->block == 0) return Status::Ok();
  if (local == nullptr) return Null("local memory");
  const std::uint64_t bytes = region->segments[index].bytes;
  const Wide first = shape->offset;
  const Wide last = first + Wide(shape->count - 1) * shape->stride;
  const Wide low = std::min(first, last);
  const Wide end = std::max(first, last) + shape->block;
  if (low < 0 || end > Wide(bytes))
    return Error(
        Code::kOutOfRange,
        "{} blocks of {} bytes from offset {}, {} apart, in segment {} of region '{}', which has {} bytes",
        shape->count, shape->block, shape->offset, shape->stride, index, region->lease->terms().name, bytes);
  return Status::Ok();
}

// Of blocks that are all within the segment.
void CopyStrided(std::byte* base, Direction direction, const msa_nam_strided& shape, std::byte* local) {
  std::byte* remote = base + shape.offset;
  for (std::uint64_t i = 0; i < shape.count; ++i) {
    if (direction == Direction::kPut)
      CopyBytes(remote, local, shape.block);
    else
      CopyBytes(local, remote, shape.block);
    if (i + 1 == shape.count) break;  // no pointer beyond the last block
    remote += shape.stride;
    local += shape.local_stride;
  }
}

Status MoveStrided(msa_nam_region_t region, std::uint32_t index, Direction direction,
                   const msa_nam_strided* shape, void* local) {
  MSA_RETURN_IF_ERROR(CheckShape(region, index, direction, shape, local));
  auto* at = static_cast<std::byte*>(local);
  if (shape->block == 0) return Status::Ok();
  if (std::byte* base = BaseOf(region->segments[index], direction); base != nullptr) {
    CopyStrided(base, direction, *shape, at);
    return Status::Ok();
  }
  Mover mover(region, index, direction);
  std::uint64_t offset = shape->offset;
  for (std::uint64_t i = 0; i < shape->count; ++i) {
    MSA_RETURN_IF_ERROR(mover.Add({offset, at, shape->block}));
    if (i + 1 == shape->count) break;
    offset += static_cast<std::uint64_t>(shape->stride);
    at += shape->local_stride;
  }
  return mover.Send();
}

// All before any is moved.
Status CheckPieces(const msa_nam_region* region, std::uint32_t index, Direction direction,
                   const msa_nam_piece* pieces, std::size_t count) {
  if (region == nullptr) return Null("region");
  if (pieces == nullptr && count != 0) return Null("pieces");
  MSA_RETURN_IF_ERROR(region->Check(index, 0, 0, RightOf(direction)));
  const std::uint64_t bytes = region->segments[index].bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const msa_nam_piece& piece = pieces[i];
    if (piece.offset <= bytes && piece.bytes <= bytes - piece.offset &&
        (piece.local != nullptr || piece.bytes == 0)) [[likely]]
      continue;
    const Status valid =
        CheckPiece(region, index, direction, {pieces[i].offset, pieces[i].local, pieces[i].bytes});
    if (!valid.ok()) return valid.WithContext(fmt::format("piece {} of {}", i, count));
  }
  return Status::Ok();
}

Status MovePieces(msa_nam_region_t region, std::uint32_t index, Direction direction,
                  const msa_nam_piece* pieces, std::size_t count) {
  MSA_RETURN_IF_ERROR(CheckPieces(region, index, direction, pieces, count));
  if (std::byte* base = BaseOf(region->segments[index], direction); base != nullptr) {
    for (std::size_t i = 0; i < count; ++i)
      if (pieces[i].bytes != 0) Copy(base, direction, {pieces[i].offset, pieces[i].local, pieces[i].bytes});
    return Status::Ok();
  }
  Mover mover(region, index, direction);
  for (std::size_t i = 0; i < count; ++i)
    MSA_RETURN_IF_ERROR(mover.Add({pieces[i].offset, pieces[i].local, pieces[i].bytes}));
  return mover.Send();
}

// --------------------------------------------------------------------------------------------- non-blocking

// Of transfers that were complete when they were begun: mapped memory needs no request of its own.
msa_nam_request complete;

Status Begin(msa_nam_region_t region, std::uint32_t index, Direction direction, const msa_nam_piece* pieces,
             std::size_t count, msa_nam_request_t* request) {
  if (request == nullptr) return Null("request");
  *request = nullptr;
  MSA_RETURN_IF_ERROR(CheckPieces(region, index, direction, pieces, count));
  Segment& segment = region->segments[index];
  if (segment.extent->mapped() || count == 0) {
    MSA_RETURN_IF_ERROR(MovePieces(region, index, direction, pieces, count));
    *request = &complete;
    return Status::Ok();
  }
  std::vector<FabricPiece> all;
  for (std::size_t i = 0; i < count; ++i)
    if (pieces[i].bytes != 0)
      all.push_back({pieces[i].offset + segment.extent_offset, pieces[i].local, pieces[i].bytes});
  if (all.empty()) {
    *request = &complete;
    return Status::Ok();
  }
  return region->Start(segment, direction, std::move(all), request);
}

Status Complete(msa_nam_request_t request) {
  const Status result = request->Result();
  request->region->Forget(request);
  return result;
}

}  // namespace

extern "C" {

int msa_nam_put(msa_nam_region_t region, uint32_t segment, uint64_t offset, const void* from,
                uint64_t bytes) {
  if (std::byte* at = Fast(region, segment, offset, bytes, Direction::kPut); at != nullptr && from != nullptr)
      [[likely]] {
    std::memcpy(at, from, bytes);
    return MSA_NAM_OK;
  }
  return Do("msa_nam_put", [&] {
    return MoveOne(region, segment, Direction::kPut, {offset, const_cast<void*>(from), bytes});
  });
}
int msa_nam_get(msa_nam_region_t region, uint32_t segment, uint64_t offset, void* to, uint64_t bytes) {
  if (const std::byte* at = Fast(region, segment, offset, bytes, Direction::kGet);
      at != nullptr && to != nullptr) [[likely]] {
    std::memcpy(to, at, bytes);
    return MSA_NAM_OK;
  }
  return Do("msa_nam_get", [&] { return MoveOne(region, segment, Direction::kGet, {offset, to, bytes}); });
}

int msa_nam_put_strided(msa_nam_region_t region, uint32_t segment, const struct msa_nam_strided* shape,
                        const void* from) {
  return Do("msa_nam_put_strided",
            [&] { return MoveStrided(region, segment, Direction::kPut, shape, const_cast<void*>(from)); });
}
int msa_nam_get_strided(msa_nam_region_t region, uint32_t segment, const struct msa_nam_strided* shape,
                        void* to) {
  return Do("msa_nam_get_strided", [&] { return MoveStrided(region, segment, Direction::kGet, shape, to); });
}

int msa_nam_putv(msa_nam_region_t region, uint32_t segment, const struct msa_nam_piece* pieces,
                 size_t count) {
  return Do("msa_nam_putv", [&] { return MovePieces(region, segment, Direction::kPut, pieces, count); });
}
int msa_nam_getv(msa_nam_region_t region, uint32_t segment, const struct msa_nam_piece* pieces,
                 size_t count) {
  return Do("msa_nam_getv", [&] { return MovePieces(region, segment, Direction::kGet, pieces, count); });
}

int msa_nam_iputv(msa_nam_region_t region, uint32_t segment, const struct msa_nam_piece* pieces, size_t count,
                  msa_nam_request_t* request) {
  return Do("msa_nam_iputv", [&] { return Begin(region, segment, Direction::kPut, pieces, count, request); });
}
int msa_nam_igetv(msa_nam_region_t region, uint32_t segment, const struct msa_nam_piece* pieces, size_t count,
                  msa_nam_request_t* request) {
  return Do("msa_nam_igetv", [&] { return Begin(region, segment, Direction::kGet, pieces, count, request); });
}
int msa_nam_test(msa_nam_request_t request, int* done) {
  if (request == &complete && done != nullptr) {
    *done = 1;
    return MSA_NAM_OK;
  }
  return Do("msa_nam_test", [&] {
    if (request == nullptr || done == nullptr) return Null("request or done");
    *done = request->Advance(SteadyNow()) ? 1 : 0;
    return *done != 0 ? Complete(request) : Status::Ok();
  });
}
int msa_nam_wait(msa_nam_request_t request) {
  if (request == &complete) return MSA_NAM_OK;
  return Do("msa_nam_wait", [&] {
    if (request == nullptr) return Null("request");
    const auto deadline = request->region->TransferDeadline();
    request->EndBy(deadline);
    (void)request->Advance(deadline);
    return Complete(request);
  });
}
int msa_nam_flush(msa_nam_region_t region, uint32_t segment) {
  return Do("msa_nam_flush", [&] {
    if (region == nullptr) return Null("region");
    if (segment != ~0u) MSA_RETURN_IF_ERROR(region->CheckSegment(segment));
    return region->Flush(segment);
  });
}
}
