#include "msa/pmi1/server.h"

#include <algorithm>
#include <charconv>

#include "msa/pmi1/process_mapping.h"

namespace msa::pmi1 {
namespace {

constexpr std::string_view kMappingKey = "PMI_process_mapping";
constexpr std::size_t kMaxShown = 200;  // of a program's name in a text

// nullopt unless all of `text` is a number.
std::optional<std::int64_t> Number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Words of a reply are separated by spaces, so its message has none.
std::string Failure(std::string_view reply, std::string_view message) {
  return fmt::format("cmd={} rc=-1 msg={}\n", reply, message);
}

std::string_view ReplyTo(NameVerb verb) {
  switch (verb) {
    case NameVerb::kPublish:
      return "publish_result";
    case NameVerb::kLookup:
      return "lookup_result";
    case NameVerb::kUnpublish:
      break;
  }
  return "unpublish_result";
}

// Built in place: gcc 12 takes the unused members of a moved variant for uninitialised ones.
template <class E>
void Add(Effects& out, E effect) {
  out.emplace_back(std::in_place_type<E>, std::move(effect));
}

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)), mapping_(ProcessMapping(options_.rank_node)) {
  // MPICH compares host names then.
  if (mapping_.size() >= kMaxValue) mapping_.clear();
  for (const std::uint32_t rank : options_.local_ranks) clients_[rank];
}

Effects Server::OnData(std::uint32_t rank, std::string_view bytes) {
  Effects out;
  const auto it = clients_.find(rank);
  if (it == clients_.end()) return out;
  Client& client = it->second;
  while (!bytes.empty() && client.phase != Phase::kClosed) {
    const std::size_t newline = bytes.find('\n');
    client.partial += bytes.substr(0, std::min(newline, kMaxLine));
    if (client.partial.size() >= kMaxLine) {
      Shut(rank, client, fmt::format("sent a line of more than {} bytes", kMaxLine), out);
      break;
    }
    if (newline == std::string_view::npos) break;
    bytes.remove_prefix(newline + 1);
    const std::string line = std::exchange(client.partial, {});
    OnLine(rank, client, line, out);
  }
  return out;
}

void Server::Shut(std::uint32_t rank, Client& client, std::string reason, Effects& out) {
  if (client.phase == Phase::kClosed) return;
  client.phase = Phase::kClosed;
  client.partial.clear();
  Add(out, Close{rank, std::move(reason)});
}

void Server::OnLine(std::uint32_t rank, Client& client, std::string_view text, Effects& out) {
  if (client.in_block) return OnSpawnLine(rank, client, text, out);
  if (text == "mcmd=spawn" && client.phase == Phase::kReady && !client.in_barrier && !client.asked) {
    client.in_block = true;
    if (!client.spawn) client.spawn = SpawnBlock{1, 1, {}};
    return;
  }
  const auto line = ParseLine(text);
  if (!line.ok()) return Shut(rank, client, "is out of step: " + line.status().message(), out);
  OnCommand(rank, client, *line, out);
}

void Server::OnCommand(std::uint32_t rank, Client& client, const Line& line, Effects& out) {
  const auto reply = [&](std::string text) { Add(out, Reply{rank, std::move(text)}); };
  if (line.command == "abort") {
    const auto code = Number(line.Find("exitcode").value_or("")).value_or(1);
    Add(out, Aborted{rank, static_cast<std::int32_t>(code)});
    return;
  }
  if (client.in_barrier || client.asked || client.spawn)
    return Shut(rank, client,
                fmt::format("sent '{}' before the answer to its last command", line.command.substr(0, 40)),
                out);
  if (line.command == "init") return OnInit(rank, client, line, out);
  if (client.phase != Phase::kReady) return reply(Failure("error", "init_comes_first"));
  if (line.command == "get_maxes")
    return reply(fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={}\n", kMaxKvsName, kMaxKey,
                             kMaxValue));
  if (line.command == "get_appnum") return reply(fmt::format("cmd=appnum appnum={}\n", AppOf(rank)));
  if (line.command == "get_my_kvsname")
    return reply(fmt::format("cmd=my_kvsname kvsname={}\n", options_.kvsname));
  if (line.command == "get_universe_size")
    return reply(fmt::format("cmd=universe_size size={}\n", options_.universe_size));
  if (line.command == "put") return reply(Put(line));
  if (line.command == "get") return reply(Get(line));
  if (line.command == "barrier_in") return OnBarrierIn(rank, client, out);
  if (line.command == "publish_name") return OnNameCommand(rank, client, NameVerb::kPublish, line, out);
  if (line.command == "lookup_name") return OnNameCommand(rank, client, NameVerb::kLookup, line, out);
  if (line.command == "unpublish_name") return OnNameCommand(rank, client, NameVerb::kUnpublish, line, out);
  if (line.command == "finalize") {
    client.phase = Phase::kFinalized;
    Add(out, Finalized{rank});
    return reply("cmd=finalize_ack\n");
  }
  reply(Failure("error", "unknown_command"));
}

// A second MPI program of one task may come after the first has finalised.
void Server::OnInit(std::uint32_t rank, Client& client, const Line& line, Effects& out) {
  if (client.phase == Phase::kReady) return Shut(rank, client, "called init twice", out);
  const bool known = Number(line.Find("pmi_version").value_or("")) == 1;
  Add(out, Reply{rank,
                 fmt::format("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={}\n", known ? 0 : -1)});
  if (!known) return;
  client.phase = Phase::kReady;
  Add(out, Connected{rank});
}

std::uint32_t Server::AppOf(std::uint32_t rank) const {
  std::uint64_t first = 0;
  std::uint32_t app = 0;
  for (const std::uint32_t size : options_.app_sizes) {
    first += size;
    if (rank < first) break;
    ++app;
  }
  return app;
}

// ------------------------------------------------------------------------------------------ keys and values

std::string Server::Put(const Line& line) {
  const auto fail = [](std::string_view message) { return Failure("put_result", message); };
  const auto key = line.Find("key");
  const auto value = line.Find("value");
  if (line.Find("kvsname") != options_.kvsname) return fail("unknown_kvsname");
  if (!key || key->empty() || !value) return fail("no_key_or_no_value");
  if (key->size() > kMaxKey) return fail("key_too_long");
  if (value->size() > kMaxValue) return fail("value_too_long");
  if (*key == kMappingKey || kvs_.contains(*key) || pending_.contains(*key)) return fail("duplicate_key");
  if (bytes_ + key->size() + value->size() > options_.max_kvs_bytes) return fail("kvs_is_full");
  bytes_ += key->size() + value->size();
  pending_.emplace(*key, *value);
  return "cmd=put_result rc=0 msg=success\n";
}

std::string Server::Get(const Line& line) const {
  if (line.Find("kvsname") != options_.kvsname) return Failure("get_result", "unknown_kvsname");
  const auto found = [](std::string_view value) {
    return fmt::format("cmd=get_result rc=0 msg=success value={}\n", value);
  };
  const std::string_view key = line.Find("key").value_or("");
  if (key == kMappingKey && !mapping_.empty()) return found(mapping_);
  for (const auto* store : {&kvs_, &pending_})
    if (const auto it = store->find(key); it != store->end()) return found(it->second);
  return Failure("get_result", "key_not_found");
}

void Server::OnBarrierIn(std::uint32_t, Client& client, Effects& out) {
  client.in_barrier = true;
  if (!std::all_of(clients_.begin(), clients_.end(), [](const auto& c) { return c.second.in_barrier; }))
    return;
  EnterBarrier enter;
  for (const auto& [key, value] : pending_) {
    enter.data.append(key).append(" ").append(value).append("\n");
    bytes_ -= key.size() + value.size();
  }
  pending_.clear();
  exchanging_ = true;
  Add(out, std::move(enter));
}

// What went wrong; empty: nothing.
std::string Server::Merge(std::string_view data) {
  while (!data.empty()) {
    const std::size_t newline = data.find('\n');
    const std::string_view line = data.substr(0, newline);
    const std::size_t space = line.find(' ');
    if (newline == std::string_view::npos || space == std::string_view::npos || space == 0)
      return "what the nodes exchanged is damaged";
    data.remove_prefix(newline + 1);
    const std::string_view key = line.substr(0, space);
    const std::string_view value = line.substr(space + 1);
    if (kvs_.contains(key)) continue;
    bytes_ += key.size() + value.size();
    kvs_.emplace(key, value);
  }
  if (bytes_ > options_.max_kvs_bytes)
    return fmt::format("the tasks have put {} bytes of keys and values, at most {} are kept", bytes_,
                       options_.max_kvs_bytes);
  return {};
}

Effects Server::OnBarrier(const Result<std::string>& data) {
  Effects out;
  if (!exchanging_) return out;
  exchanging_ = false;
  const std::string failed = data.ok() ? Merge(*data) : data.status().message();
  for (auto& [rank, client] : clients_) {
    client.in_barrier = false;
    if (client.phase == Phase::kClosed) continue;
    if (failed.empty())
      Add(out, Reply{rank, "cmd=barrier_out\n"});
    else
      Shut(rank, client, "cannot leave a barrier of its world: " + failed, out);
  }
  return out;
}

// ------------------------------------------------------------------------------------------ names

void Server::OnNameCommand(std::uint32_t rank, Client& client, NameVerb verb, const Line& line,
                           Effects& out) {
  const std::string_view service = line.Find("service").value_or("");
  const std::string_view port = line.Find("port").value_or("");
  std::string_view missing;
  if (service.empty()) missing = "no_service";
  if (verb == NameVerb::kPublish && port.empty()) missing = "no_port";
  if (port.size() > kMaxValue) missing = "port_too_long";
  if (!missing.empty()) {
    Add(out, Reply{rank, fmt::format("cmd={} info=error rc=-1 msg={}\n", ReplyTo(verb), missing)});
    return;
  }
  client.asked = verb;
  Add(out, NameRequest{rank, verb, std::string(service), std::string(port)});
}

Effects Server::OnName(std::uint32_t rank, const Result<std::string>& port) {
  const auto it = clients_.find(rank);
  if (it == clients_.end() || !it->second.asked) return {};
  const NameVerb verb = *it->second.asked;
  it->second.asked.reset();
  if (it->second.phase == Phase::kClosed) return {};
  std::string text = fmt::format("cmd={} info={} rc={} msg={}", ReplyTo(verb), port.ok() ? "ok" : "error",
                                 port.ok() ? 0 : -1, port.ok() ? "success" : "name_refused");
  if (port.ok() && verb == NameVerb::kLookup) text += " port=" + *port;
  Effects out;
  Add(out, Reply{rank, text + "\n"});
  return out;
}

// ------------------------------------------------------------------------------------------ spawn

void Server::OnSpawnLine(std::uint32_t rank, Client& client, std::string_view text, Effects& out) {
  SpawnBlock& spawn = *client.spawn;
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string_view key = text.substr(0, equals);
  const std::string_view value = text.substr(std::min(equals + 1, text.size()));
  const auto count =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(Number(value).value_or(1), 1, 1 << 16));
  if (key == "totspawns") spawn.total = count;
  if (key == "spawnssofar") spawn.so_far = count;
  if (key == "execname" && spawn.program.empty()) spawn.program = value.substr(0, kMaxShown);
  if (key != "endcmd") return;
  client.in_block = false;
  // The commands of a spawn_multiple come one after another and have one answer.
  if (spawn.so_far < spawn.total) return;
  const std::string program = std::move(spawn.program);
  client.spawn.reset();
  Add(out,
      SpawnRefused{
          rank,
          fmt::format("spawn of '{}' refused: an MPICH program can be launched, but cannot spawn here; "
                      "Debian's MPICH (ch4:ucx) cannot under any launcher, its mpiexec included "
                      "(get_local_upids is not supported); build the program with Open MPI (mpicc.openmpi)",
                      program)});
  Add(out, Reply{rank, Failure("spawn_result", "spawn_is_not_supported_for_MPICH")});
}

// ------------------------------------------------------------------------------------------ ends

void Server::OnGone(std::uint32_t rank) {
  const auto it = clients_.find(rank);
  if (it == clients_.end()) return;
  it->second.phase = Phase::kClosed;
  it->second.partial.clear();
}

Status Server::CheckInvariants() const {
  std::size_t bytes = 0;
  for (const auto* store : {&kvs_, &pending_})
    for (const auto& [key, value] : *store) bytes += key.size() + value.size();
  if (bytes != bytes_) return Error(Code::kInternal, "{} bytes are kept, {} counted", bytes, bytes_);
  for (const auto& [rank, client] : clients_) {
    if (client.partial.size() >= kMaxLine) return Error(Code::kInternal, "rank {}: a line too long", rank);
    if (client.partial.find('\n') != std::string::npos)
      return Error(Code::kInternal, "rank {}: a whole line waits", rank);
    if (exchanging_ && !client.in_barrier)
      return Error(Code::kInternal, "rank {} is not in the barrier that all are in", rank);
    if (client.in_block && !client.spawn) return Error(Code::kInternal, "rank {}: a block of nothing", rank);
    if (client.in_barrier && client.asked)
      return Error(Code::kInternal, "rank {} waits for two answers", rank);
  }
  return Status::Ok();
}

}  // namespace msa::pmi1
