#include "node_paths.h"

#include <utility>

#include <fmt/format.h>

namespace msa::node {
namespace {

// FNV-1a: tells the directories of several local systems of one user apart; no secret depends on it.
std::uint32_t Hash(const std::string& text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace

NodePaths::NodePaths(std::string dir, std::string node, Users users)
    : dir_(std::move(dir)), node_(std::move(node)), base_(dir_ + "/n/" + node_), users_(users) {}

std::string NodePaths::run_directory(std::uint64_t seq) const { return fmt::format("{}/w{}", base_, seq); }
std::string NodePaths::record(std::uint64_t seq) const { return fmt::format("{}/w{}.jobd", base_, seq); }
std::string NodePaths::peer_directory(uid_t uid) const {
  return users_ == Users::kOne ? base_ : fmt::format("{}/u{}", base_, uid);
}
std::string NodePaths::peer_socket(uid_t uid, const JobKey& key) const {
  return fmt::format("{}/j{}.{}", peer_directory(uid), key.job, key.incarnation);
}
std::string NodePaths::peer_address_pattern() const {
  return "unix:" + base_ + (users_ == Users::kOne ? "/j%J" : "/u%U/j%J");
}
std::string NodePaths::shm_root(uid_t uid) const {
  return fmt::format("/dev/shm/msa-{}-{:08x}", uid, Hash(dir_));
}
std::string NodePaths::shm_node(uid_t uid) const { return shm_root(uid) + "/" + node_; }
std::string NodePaths::shm_job(uid_t uid, const JobKey& key) const {
  return fmt::format("{}/{}.{}", shm_node(uid), key.job, key.incarnation);
}

}  // namespace msa::node
