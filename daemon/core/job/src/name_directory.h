#pragma once
// The names that the jobs of a user share, and who waits for which. Pure. A job sees the names of its own
// user's jobs and no others. Nothing is stored: heads say again what they have published.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "msa/base/messages.h"
#include "msa/base/status.h"

namespace msa {

struct NameLimits {
  std::size_t key_bytes = 511;     // PMIX_MAX_KEYLEN
  std::size_t value_bytes = 4096;  // a port has 20 to 1,024
  std::size_t names_per_job = 4096;
  std::size_t bytes_per_job = std::size_t{1} << 20;  // keys and values
  std::size_t names_per_user = 65536;
  std::size_t keys_per_lookup = 64;
  std::size_t waiting_per_job = 1024;
};

class NameDirectory {
 public:
  explicit NameDirectory(NameLimits limits = {}) : limits_(limits) {}

  struct Client {
    std::uint32_t uid = 0;
    JobId job;
  };
  // To the head of `job`.
  struct Answer {
    JobId job;
    wire::NameAnswer answer;
  };
  using Answers = std::vector<Answer>;

  // All or nothing; names that the job has published already stay as they are. The first answer is the
  // publisher's, lookups that waited follow.
  Answers Publish(const Client& client, std::uint64_t request, const std::vector<wire::SharedName>& names);
  // Only the job's own names go; others are passed over.
  wire::NameAnswer Withdraw(const Client& client, std::uint64_t request,
                            const std::vector<wire::SharedName>& names);
  // The job's names are these. What another job has, or is beyond a limit, is left out.
  Answers Replace(const Client& client, const std::vector<wire::SharedName>& names);
  // Empty: it waits. A waiting request is known by (job, request): the same once more changes nothing.
  Answers Lookup(const Client& client, const wire::NameLookup& lookup);
  bool HasAll(const Client& client, const std::vector<std::string>& keys) const;
  void StopWaiting(JobId job, std::uint64_t request);
  void JobEnded(const Client& client);

  std::size_t names() const noexcept { return names_.size(); }
  std::size_t waiting() const noexcept { return waiting_.size(); }
  Status CheckInvariants() const;

 private:
  using Key = std::pair<std::uint32_t, std::string>;  // uid, key
  struct Entry {
    JobId job;
    wire::SharedName name;
  };
  struct Waiting {
    Client client;
    std::vector<std::string> keys;
  };
  struct Usage {
    std::size_t names = 0;
    std::size_t bytes = 0;
  };
  wire::NameAnswer CheckPublish(const Client& client, const std::vector<wire::SharedName>& names) const;
  void Add(const Client& client, const wire::SharedName& name);
  void Erase(std::map<Key, Entry>::iterator it);
  void Serve(std::uint32_t uid, Answers& out);
  wire::NameAnswer Find(const Client& client, std::uint64_t request,
                        const std::vector<std::string>& keys) const;

  NameLimits limits_;
  std::map<Key, Entry> names_;
  std::map<JobId, Usage> usage_;                  // of jobs that have names
  std::map<std::uint32_t, std::size_t> of_user_;  // number of names, of users that have any
  std::map<std::pair<JobId, std::uint64_t>, Waiting> waiting_;
};

}  // namespace msa
