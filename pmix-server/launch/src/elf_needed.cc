#include "elf_needed.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "msa/base/unique_fd.h"

namespace msa::launch {
namespace {

// Files come from users: every offset and size is checked, and no table is larger than this.
constexpr std::size_t kMaxTable = 1U << 20;

class ElfFile {
 public:
  static std::optional<ElfFile> Open(const std::string& path) {
    ElfFile file(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
    Elf64_Ehdr header{};
    struct stat status {};
    if (!file.fd_ || ::fstat(file.fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    if (!file.ReadAt(0, sizeof header, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
      return std::nullopt;
    file.segments_.resize(header.e_phnum);
    if (!file.ReadAt(header.e_phoff, file.segments_.size() * sizeof(Elf64_Phdr), file.segments_.data()))
      return std::nullopt;
    return file;
  }

  const Elf64_Phdr* Segment(std::uint32_t type) const {
    const auto it =
        std::find_if(segments_.begin(), segments_.end(), [=](const auto& s) { return s.p_type == type; });
    return it == segments_.end() ? nullptr : &*it;
  }

  std::string Bytes(std::uint64_t offset, std::uint64_t size) const {
    std::string out(std::min<std::uint64_t>(size, kMaxTable), '\0');
    if (!ReadAt(offset, out.size(), out.data())) out.clear();
    return out;
  }

  // Place in the file of a virtual address.
  std::optional<std::uint64_t> Offset(std::uint64_t address) const {
    for (const Elf64_Phdr& s : segments_)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return address - s.p_vaddr + s.p_offset;
    return std::nullopt;
  }

 private:
  explicit ElfFile(UniqueFd fd) : fd_(std::move(fd)) {}
  bool ReadAt(std::uint64_t offset, std::size_t size, void* out) const {
    if (offset > INT64_MAX) return false;
    return ::pread(fd_.get(), out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  }

  UniqueFd fd_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

std::string ElfInterpreter(const std::string& path) {
  const auto file = ElfFile::Open(path);
  const Elf64_Phdr* const segment = file ? file->Segment(PT_INTERP) : nullptr;
  if (segment == nullptr) return "";
  const std::string text = file->Bytes(segment->p_offset, segment->p_filesz);
  return text.substr(0, text.find('\0'));
}

std::vector<std::string> ElfNeeded(const std::string& path) {
  const auto file = ElfFile::Open(path);
  const Elf64_Phdr* const segment = file ? file->Segment(PT_DYNAMIC) : nullptr;
  if (segment == nullptr) return {};
  const std::string dynamic = file->Bytes(segment->p_offset, segment->p_filesz);
  std::vector<std::uint64_t> names;
  std::uint64_t table = 0;
  std::uint64_t table_size = 0;
  for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.size(); at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry{};
    std::memcpy(&entry, dynamic.data() + at, sizeof entry);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) table = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) table_size = entry.d_un.d_val;
  }
  const auto offset = file->Offset(table);
  if (names.empty() || !offset) return {};
  const std::string strings = file->Bytes(*offset, table_size);
  std::vector<std::string> out;
  for (const std::uint64_t name : names)
    if (name < strings.size()) out.emplace_back(strings.c_str() + name);
  return out;
}

std::string MpiSoname(std::string_view name) {
  for (const std::string_view stem : {std::string_view("libmpi.so"), std::string_view("libmpich.so")}) {
    if (!name.starts_with(stem)) continue;
    const std::string_view rest = name.substr(stem.size());
    if (rest.empty()) return std::string(name);
    if (rest[0] != '.') continue;
    const std::size_t second = rest.find('.', 1);
    return std::string(stem) + std::string(rest.substr(0, second));
  }
  return "";
}

std::string LinkedMpi(const std::string& path) {
  for (const std::string& name : ElfNeeded(path))
    if (std::string mpi = MpiSoname(name); !mpi.empty()) return mpi;
  return "";
}

}  // namespace msa::launch
