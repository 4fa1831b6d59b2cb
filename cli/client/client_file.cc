#include "client/client_file.h"

#include <array>
#include <charconv>

#include "msa/adapters/process/files.h"

namespace msa::cli {
namespace {

constexpr std::array kPaths = {"/etc/msa/client.conf", "/run/msa/client.conf"};
constexpr std::size_t kLargest = 64U << 10;

std::string_view Trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

Status Set(ClientFile& out, std::string_view key, std::string_view value) {
  if (key == "server") {
    out.server = value;
    if (value.starts_with("tls:")) return Status::Ok();
    return Error(Code::kInvalidArgument, "server '{}'; expected tls:HOST:PORT, as tls:ctl:7701", value);
  }
  if (key == "munge_socket") {
    out.munge_socket = value;
    return Status::Ok();
  }
  if (key == "backend") {
    out.backend = value;
    if (value == "msa" || value == "slurm" || value == "auto") return Status::Ok();
    return Error(Code::kInvalidArgument, "backend '{}'; expected msa, slurm or auto", value);
  }
  if (key != "controller_uid")
    return Error(Code::kInvalidArgument,
                 "unknown key '{}'; expected server, backend, controller_uid or munge_socket", key);
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out.controller_uid);
  if (error == std::errc() && end == value.data() + value.size()) return Status::Ok();
  return Error(Code::kInvalidArgument, "controller_uid '{}'; expected a number", value);
}

}  // namespace

Result<ClientFile> ParseClientFile(std::string_view text, const std::string& name) {
  ClientFile out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos)
      return Error(Code::kInvalidArgument, "{}:{}: '{}'; expected KEY = VALUE", name, number, line);
    std::string_view value = Trim(line.substr(equals + 1));
    if (value.size() > 1 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    const Status set = Set(out, Trim(line.substr(0, equals)), value);
    if (!set.ok()) return set.WithContext(fmt::format("{}:{}", name, number));
  }
  return out;
}

Result<ClientFile> LoadClientFile() {
  for (const char* path : kPaths) {
    const auto text = ReadFile(path, kLargest);
    if (text.ok()) return ParseClientFile(*text, path);
    if (text.status().code() != Code::kNotFound) return text.status();
  }
  return ClientFile();
}

}  // namespace msa::cli
