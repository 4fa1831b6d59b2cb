#include "nam_key.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "msa/adapters/process/files.h"
#include "msa/base/unique_fd.h"

namespace msa {
namespace {

constexpr std::size_t kKeyBytes = 32;
// "msa-nam-key 1", the system in 16 and the key in 64 hexadecimal digits, a line each.
constexpr std::string_view kHeading = "msa-nam-key 1\n";
constexpr std::size_t kFileBytes = kHeading.size() + 17 + 2 * kKeyBytes + 1;

Status FillRandom(void* to, std::size_t size) {
  auto* at = static_cast<unsigned char*>(to);
  while (size > 0) {
    const ssize_t got = ::getrandom(at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return ErrnoError(errno, "read random bytes");
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return Status::Ok();
}

std::string TextOf(const NamKey& key) {
  std::string out = fmt::format("{}{:016x}\n", kHeading, key.system);
  for (const char byte : key.key) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out + "\n";
}

template <class N>
bool ReadHex(std::string_view digits, N& value) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return error == std::errc() && end == digits.data() + digits.size();
}

std::optional<NamKey> ParseKey(std::string_view text) {
  if (text.size() != kFileBytes || !text.starts_with(kHeading)) return std::nullopt;
  NamKey out;
  text.remove_prefix(kHeading.size());
  if (!ReadHex(text.substr(0, 16), out.system) || out.system == 0 || text[16] != '\n' || text.back() != '\n')
    return std::nullopt;
  text.remove_prefix(17);
  for (std::size_t i = 0; i < kKeyBytes; ++i) {
    std::uint8_t byte = 0;
    if (!ReadHex(text.substr(2 * i, 2), byte)) return std::nullopt;
    out.key.push_back(static_cast<char>(byte));
  }
  return out;
}

Status CheckOwner(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return ErrnoError(errno, "'" + path + "'");
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    return Error(Code::kPermissionDenied,
                 "key file '{}' has owner {} and mode {:04o}; expected a file of uid {} that nobody else may "
                 "read: chown and chmod 600 it",
                 path, info.st_uid, info.st_mode & 07777, ::geteuid());
  return Status::Ok();
}

// A file of a key that regions depend on: on disk before it has its name.
Status WriteSynced(const std::string& path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";                    // the X are mkostemp's: a name of its own
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd) return ErrnoError(errno, "create a file beside '" + path + "'");
  Status status;
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0)
    status = ErrnoError(errno != 0 ? errno : ENOSPC, "write '" + path + "'");
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const UniqueFd parent(
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return ErrnoError(errno, "sync '" + directory + "'");
  return Status::Ok();
}

}  // namespace

Result<NamKey> LoadOrMakeNamKey(const std::string& path) {
  const Result<std::string> text = ReadFile(path, 4096);
  if (text.ok()) {
    MSA_RETURN_IF_ERROR(CheckOwner(path));
    if (std::optional<NamKey> key = ParseKey(*text)) return *std::move(key);
    return Error(Code::kDataLoss,
                 "key file '{}' of {} bytes is damaged; put back a copy of it, or remove it: then the NAM "
                 "daemons refuse to serve the regions that they hold",
                 path, text->size());
  }
  if (text.status().code() != Code::kNotFound) return text.status();
  NamKey key;
  key.key.resize(kKeyBytes);
  while (key.system == 0) MSA_RETURN_IF_ERROR(FillRandom(&key.system, sizeof key.system));
  MSA_RETURN_IF_ERROR(FillRandom(key.key.data(), key.key.size()));
  MSA_RETURN_IF_ERROR(WriteSynced(path, TextOf(key)));
  return key;
}

std::function<std::string(std::string_view)> MakeLeaseSigner(std::string key) {
  return [key = std::move(key)](std::string_view lease) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(lease.data());
    if (::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, lease.size(), digest.data(),
               &size) == nullptr)
      return std::string();  // out of memory: no namd takes it
    return std::string(reinterpret_cast<const char*>(digest.data()), size);
  };
}

RegionUuid RandomUuid() {
  std::uint64_t bits[2] = {};
  // 16 bytes come whole, see getrandom(2).
  while (::getrandom(bits, sizeof bits, 0) != sizeof bits || (bits[0] | bits[1]) == 0) continue;
  return {bits[0], bits[1]};
}

}  // namespace msa
