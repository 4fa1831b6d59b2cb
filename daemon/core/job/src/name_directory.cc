#include "name_directory.h"

#include <algorithm>
#include <iterator>

namespace msa {
namespace {

std::size_t SizeOf(const wire::SharedName& name) {
  return name.key.size() + name.value.size() + name.nspace.size();
}

}  // namespace

wire::NameAnswer NameDirectory::CheckPublish(const Client& client,
                                             const std::vector<wire::SharedName>& names) const {
  wire::NameAnswer answer;
  const auto refuse = [&](wire::NameStatus status, std::string reason) {
    answer.status = status;
    answer.reason = std::move(reason);
    return answer;
  };
  const auto found = usage_.find(client.job);
  Usage usage = found == usage_.end() ? Usage{} : found->second;
  const auto user = of_user_.find(client.uid);
  std::size_t of_user = user == of_user_.end() ? 0 : user->second;
  for (const wire::SharedName& name : names) {
    if (name.key.empty() || name.key.size() > limits_.key_bytes)
      return refuse(wire::NameStatus::kLimit, fmt::format("a name has {} bytes; 1 to {} are possible",
                                                          name.key.size(), limits_.key_bytes));
    if (name.value.size() > limits_.value_bytes || name.nspace.size() > limits_.key_bytes)
      return refuse(wire::NameStatus::kLimit, fmt::format("the value of name '{}' has {} bytes; at most {} "
                                                          "can be shared between jobs",
                                                          name.key, name.value.size(), limits_.value_bytes));
    const auto known = names_.find({client.uid, name.key});
    if (known != names_.end() && known->second.job == client.job) continue;
    if (known != names_.end())
      return refuse(wire::NameStatus::kTaken,
                    fmt::format("name '{}' is published by job {}; choose another or wait for its end",
                                name.key, known->second.job));
    ++usage.names;
    usage.bytes += SizeOf(name);
    ++of_user;
  }
  if (usage.names > limits_.names_per_job || usage.bytes > limits_.bytes_per_job)
    return refuse(wire::NameStatus::kLimit,
                  fmt::format("the job would publish {} names of {} bytes together; at most {} of {} bytes "
                              "can be shared between jobs",
                              usage.names, usage.bytes, limits_.names_per_job, limits_.bytes_per_job));
  if (of_user > limits_.names_per_user)
    return refuse(wire::NameStatus::kLimit, fmt::format("the user's jobs would publish {} names; at most {} "
                                                        "are possible",
                                                        of_user, limits_.names_per_user));
  return answer;
}

void NameDirectory::Add(const Client& client, const wire::SharedName& name) {
  const auto [it, fresh] = names_.try_emplace({client.uid, name.key}, Entry{client.job, name});
  if (!fresh) return;
  Usage& usage = usage_[client.job];
  ++usage.names;
  usage.bytes += SizeOf(name);
  ++of_user_[client.uid];
}

void NameDirectory::Erase(std::map<Key, Entry>::iterator it) {
  const auto usage = usage_.find(it->second.job);
  usage->second.bytes -= SizeOf(it->second.name);
  if (--usage->second.names == 0) usage_.erase(usage);
  const auto user = of_user_.find(it->first.first);
  if (--user->second == 0) of_user_.erase(user);
  names_.erase(it);
}

NameDirectory::Answers NameDirectory::Publish(const Client& client, std::uint64_t request,
                                              const std::vector<wire::SharedName>& names) {
  Answers out{{client.job, CheckPublish(client, names)}};
  out.front().answer.request = request;
  if (out.front().answer.status != wire::NameStatus::kOk) return out;
  for (const wire::SharedName& name : names) Add(client, name);
  Serve(client.uid, out);
  return out;
}

wire::NameAnswer NameDirectory::Withdraw(const Client& client, std::uint64_t request,
                                         const std::vector<wire::SharedName>& names) {
  for (const wire::SharedName& name : names)
    if (const auto it = names_.find({client.uid, name.key});
        it != names_.end() && it->second.job == client.job)
      Erase(it);
  wire::NameAnswer answer;
  answer.request = request;
  return answer;
}

NameDirectory::Answers NameDirectory::Replace(const Client& client,
                                              const std::vector<wire::SharedName>& names) {
  std::set<std::string> keep;
  for (const wire::SharedName& name : names) keep.insert(name.key);
  for (auto it = names_.lower_bound({client.uid, {}}); it != names_.end() && it->first.first == client.uid;) {
    const auto current = it++;
    if (current->second.job == client.job && !keep.contains(current->first.second)) Erase(current);
  }
  for (const wire::SharedName& name : names)
    if (CheckPublish(client, {name}).status == wire::NameStatus::kOk) Add(client, name);
  Answers out;
  Serve(client.uid, out);
  return out;
}

wire::NameAnswer NameDirectory::Find(const Client& client, std::uint64_t request,
                                     const std::vector<std::string>& keys) const {
  wire::NameAnswer answer;
  answer.request = request;
  for (const std::string& key : keys)
    if (const auto it = names_.find({client.uid, key}); it != names_.end())
      answer.names.push_back(it->second.name);
  if (answer.names.empty())
    answer.status = wire::NameStatus::kNotFound;
  else if (answer.names.size() < keys.size())
    answer.status = wire::NameStatus::kPartial;
  return answer;
}

bool NameDirectory::HasAll(const Client& client, const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return names_.contains({client.uid, key});
  });
}

NameDirectory::Answers NameDirectory::Lookup(const Client& client, const wire::NameLookup& lookup) {
  const auto refuse = [&](std::string reason) {
    wire::NameAnswer answer;
    answer.request = lookup.request;
    answer.status = wire::NameStatus::kLimit;
    answer.reason = std::move(reason);
    return Answers{{client.job, std::move(answer)}};
  };
  if (lookup.keys.empty() || lookup.keys.size() > limits_.keys_per_lookup)
    return refuse(fmt::format("{} names in one lookup; 1 to {} can be asked of other jobs",
                              lookup.keys.size(), limits_.keys_per_lookup));
  for (const std::string& key : lookup.keys)
    if (key.size() > limits_.key_bytes)
      return refuse(fmt::format("a name has {} bytes; 1 to {} are possible", key.size(), limits_.key_bytes));
  if (!lookup.wait || HasAll(client, lookup.keys))
    return {{client.job, Find(client, lookup.request, lookup.keys)}};
  if (waiting_.contains({client.job, lookup.request})) return {};
  const auto first = waiting_.lower_bound({client.job, 0});
  const auto last = waiting_.upper_bound({client.job, ~std::uint64_t{0}});
  if (static_cast<std::size_t>(std::distance(first, last)) >= limits_.waiting_per_job)
    return refuse(fmt::format("{} lookups of the job wait for other jobs already; at most that many may",
                              limits_.waiting_per_job));
  waiting_[{client.job, lookup.request}] = {client, lookup.keys};
  return {};
}

void NameDirectory::Serve(std::uint32_t uid, Answers& out) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const Waiting& waiting = it->second;
    if (waiting.client.uid != uid || !HasAll(waiting.client, waiting.keys)) {
      ++it;
      continue;
    }
    out.push_back({waiting.client.job, Find(waiting.client, it->first.second, waiting.keys)});
    it = waiting_.erase(it);
  }
}

void NameDirectory::StopWaiting(JobId job, std::uint64_t request) { waiting_.erase({job, request}); }

void NameDirectory::JobEnded(const Client& client) {
  std::erase_if(waiting_, [&](const auto& entry) { return entry.first.first == client.job; });
  if (!usage_.contains(client.job)) return;
  for (auto it = names_.lower_bound({client.uid, {}}); it != names_.end() && it->first.first == client.uid;) {
    const auto current = it++;
    if (current->second.job == client.job) Erase(current);
  }
}

Status NameDirectory::CheckInvariants() const {
  std::map<JobId, Usage> usage;
  std::map<std::uint32_t, std::size_t> of_user;
  for (const auto& [key, entry] : names_) {
    ++usage[entry.job].names;
    usage[entry.job].bytes += SizeOf(entry.name);
    ++of_user[key.first];
    if (key.second != entry.name.key) return Error(Code::kInternal, "name '{}' is filed wrongly", key.second);
  }
  if (of_user != of_user_ || usage.size() != usage_.size())
    return Error(Code::kInternal, "{} jobs have names, {} are counted", usage.size(), usage_.size());
  for (const auto& [job, use] : usage) {
    const auto it = usage_.find(job);
    if (it == usage_.end() || it->second.names != use.names || it->second.bytes != use.bytes)
      return Error(Code::kInternal, "the names of job {} are counted wrongly", job);
  }
  for (const auto& [id, waiting] : waiting_)
    if (HasAll(waiting.client, waiting.keys))
      return Error(Code::kInternal, "a lookup of job {} waits for names that are there", id.first);
  return Status::Ok();
}

}  // namespace msa
