#include "exposed_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "msa/base/clock.h"

namespace msa::nam {
namespace {

// Of connections that were cut: to be read and closed, which takes milliseconds.
constexpr auto kLastBytes = std::chrono::seconds(1);

// A second mapping of the shared memory at `begin`; null if the kernel makes none (mremap(2), BUGS: an old
// size of 0 does so for shared mappings, but not of hugetlbfs).
Mapping Alias(char* begin, std::size_t bytes) {
  void* alias = mremap(begin, 0, bytes, MREMAP_MAYMOVE);
  return alias == MAP_FAILED ? Mapping() : Mapping(alias, bytes);
}

}  // namespace

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (begin_ != nullptr) munmap(begin_, bytes_);
}

ExposedMemory::ExposedMemory(const Port& port, Options options) : port_(port), options_(std::move(options)) {}

ExposedMemory::~ExposedMemory() = default;

Result<ExposedMemory::Exposed> ExposedMemory::Expose(char* base, std::size_t bytes,
                                                     FabricServer::Access access) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t inside = reinterpret_cast<std::uintptr_t>(base) % page;
  Exposed out;
  out.bytes = bytes;
  out.access = access;
  out.alias = Alias(base - inside, bytes + inside);
  char* begin = out.alias ? out.alias.begin() + inside : base;
  const std::uint64_t rights =
      access == FabricServer::Access::kReadWrite ? FI_REMOTE_READ | FI_REMOTE_WRITE : FI_REMOTE_READ;
  const fi_domain_attr& domain = *port_.info().domain_attr;
  const std::uint64_t mask =
      domain.mr_key_size >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * domain.mr_key_size) - 1;
  fid_mr* mr = nullptr;
  int code = -FI_ENOKEY;
  // A second draw is needed once in 2^64 keys; a provider with 4-byte keys may need a few.
  for (int tries = 0; tries < 16 && code == -FI_ENOKEY; ++tries) {
    std::uint64_t key = 0;
    while (key == 0) key = RandomBits() & mask;
    code = fi_mr_reg(port_.domain(), begin, bytes, rights, 0, key, 0, &mr, nullptr);
  }
  if (code != 0) return FabricError(code, fmt::format("register {} bytes with {}", bytes, port_.provider()));
  out.mr.reset(mr);
  if ((domain.mr_mode & FI_MR_ENDPOINT) != 0) {
    if (code = fi_mr_bind(mr, &port_.ep()->fid, 0); code == 0) code = fi_mr_enable(mr);
    if (code != 0) return FabricError(code, fmt::format("bind {} registered bytes to the endpoint", bytes));
  }
  return out;
}

Result<FabricKey> ExposedMemory::Add(void* base, Bytes bytes, FabricServer::Access access) {
  if (base == nullptr || bytes.value == 0)
    return Error(Code::kInvalidArgument, "{} bytes of memory to register, expected at least 1", bytes);
  MSA_ASSIGN_OR_RETURN(Exposed exposed, Expose(static_cast<char*>(base), bytes.value, access));
  FabricKey key;
  key.key = fi_mr_key(exposed.mr.get());
  if (key.key == FI_KEY_NOTAVAIL)
    return Error(Code::kUnimplemented, "provider {} has only keys of more than 64 bits", port_.provider());
  if ((port_.info().domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0) {
    char* begin = exposed.alias ? exposed.alias.begin() + exposed.alias.bytes() - bytes.value
                                : static_cast<char*>(base);
    key.base = reinterpret_cast<std::uintptr_t>(begin);
  }
  MutexLock lock(mu_);
  exposed_.emplace(key.key, std::move(exposed));
  return key;
}

void ExposedMemory::Remove(std::uint64_t key) {
  Exposed gone;
  {
    MutexLock lock(mu_);
    const auto it = exposed_.find(key);
    if (it == exposed_.end()) return;
    gone = std::move(it->second);
    exposed_.erase(it);
  }
  const bool aliased = static_cast<bool>(gone.alias);
  gone.mr.reset();  // from here on no new transfer begins
  // A device fences what it does with memory when the registration is closed; software over TCP does not.
  if (!port_.over_tcp()) return;
  if (aliased)
    TakeBack(std::move(gone.alias));
  else
    CutAll();
}

void ExposedMemory::TakeBack(Mapping alias) {
  // In place of the alias, in one step: what a transfer that has begun still brings ends here.
  if (mmap(alias.begin(), alias.bytes(), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    CutAll();
    return;
  }
  std::set<ino_t> open = TcpConnections(options_.connections);
  if (open.empty()) return;
  MutexLock lock(mu_);
  kept_back_.push_back({std::move(alias), std::move(open)});
  ReleaseKeptBack();
}

void ExposedMemory::ReleaseKeptBack() {
  const std::set<ino_t> open = TcpConnections(options_.connections);
  std::size_t bytes = 0;
  std::erase_if(kept_back_, [&](const KeptBack& kept) {
    const bool still = std::any_of(kept.connections.begin(), kept.connections.end(),
                                   [&](ino_t inode) { return open.count(inode) != 0; });
    if (still) bytes += kept.sink.bytes();
    return !still;
  });
  if (kept_back_.size() <= options_.kept_back_count && bytes <= options_.kept_back_bytes) return;
  const std::set<ino_t> oldest = kept_back_.front().connections;
  CutTcpConnections([&](const TcpConnection& c) { return oldest.count(c.inode) != 0; });
}

void ExposedMemory::CutAll() {
  const std::set<ino_t> open = TcpConnections(options_.connections);
  const auto ours = [&](const TcpConnection& c) { return open.count(c.inode) != 0; };
  CutTcpConnections(ours);
  // What had arrived is still read before the connection ends; it is closed when that is through.
  for (const SteadyTime until = SteadyNow() + kLastBytes; SteadyNow() < until;) {
    if (TcpConnections(ours).empty()) return;
    options_.progress();
  }
  // It does not come to an end. The kernel drops what has arrived, so that nobody reads it any more.
  ResetTcpConnections(ours);
}

CheckAnswer ExposedMemory::Check(const CheckQuestion& question) const {
  MutexLock lock(mu_);
  const auto it = exposed_.find(question.key);
  const auto answer = [](const Status& status) {
    return CheckAnswer{static_cast<std::uint8_t>(status.code()), status.message()};
  };
  if (it == exposed_.end())
    return answer(Error(Code::kPermissionDenied,
                        "the key is not valid (any more): the lease has ended; open the region anew"));
  const Exposed& exposed = it->second;
  if (question.write && exposed.access != FabricServer::Access::kReadWrite)
    return answer(Error(Code::kPermissionDenied, "{} bytes to be written, but the lease only lets one read",
                        question.bytes));
  if (question.offset > exposed.bytes || question.bytes > exposed.bytes - question.offset)
    return answer(Error(Code::kOutOfRange, "{} bytes at offset {} of {} registered bytes", question.bytes,
                        question.offset, exposed.bytes));
  return {};
}

}  // namespace msa::nam
