#include "client_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace msa::nam::test {

namespace {
constexpr std::uint64_t kQuota = std::uint64_t{32} << 20;
}  // namespace

pid_t Spawn(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work());
  return pid;
}

int ExitOf(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

void ClientTest::SetUp() {
  NamdTest::SetUp();
  setenv("MSA_DIR", dir_.c_str(), 1);
  setenv("MSA_NAM_TRANSPORT", transport_.c_str(), 1);
  setenv("MSA_NAM_TIMEOUT", "10", 1);
  unsetenv("MSA_JOB_SOCKET");
  StartAsMeant();
  ASSERT_TRUE(Connect());
  welcomes_ = 1;
  thread_ = std::thread([this] { Play(); });
}

void ClientTest::StartAsMeant() { StartNamd({.fabric = fabric() ? "tcp;ofi_rxm" : "none"}); }

bool ClientTest::Connect() {
  const auto hello = controller_->AwaitHello();
  if (!hello) return false;
  for (auto& [lease, granted] : leases_) granted.connection = 0;  // ended with the namd before
  Take(*hello);
  return true;
}

void ClientTest::Take(const wire::NamdHello& hello) {
  provider_ = hello.fabric_provider;
  address_ = hello.fabric_address;
  controller_->Welcome();
}

void ClientTest::TearDown() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  NamdTest::TearDown();
}

void ClientTest::OnController(const std::function<void(FakeController&)>& work) {
  bool done = false;
  MutexLock lock(mu_);
  work_.push_back([&](FakeController& controller) {
    work(controller);
    const MutexLock inner(mu_);
    done = true;
    changed_.NotifyAll();
  });
  while (!done) changed_.Wait(mu_);
}

void ClientTest::KillNamd() {
  if (namd_.pid != 0) StopNamd(SIGKILL);
}

void ClientTest::RestartNamd() {
  KillNamd();
  const int before = welcomes_;
  StartAsMeant();
  reconnect_ = true;
  ASSERT_TRUE(Eventually(namd::test::kLimit, [&] { return welcomes_ > before; }));
}

msa_nam_region_t ClientTest::Create(const char* name, std::vector<std::uint64_t> sizes) {
  std::vector<msa_nam_segment> segments;
  for (const std::uint64_t size : sizes) segments.push_back({size, 8, 0});
  msa_nam_create_options options{};
  options.name = name;
  options.segments = segments.data();
  options.segment_count = static_cast<std::uint32_t>(segments.size());
  options.lifetime = MSA_NAM_PERSISTENT;
  msa_nam_region_t region = nullptr;
  EXPECT_NAM_OK(msa_nam_create(&options, &region));
  return region;
}

msa_nam_region_t ClientTest::Open(const char* name, int rights) {
  msa_nam_region_t region = nullptr;
  EXPECT_NAM_OK(msa_nam_open(name, rights, &region));
  return region;
}

void ClientTest::ChangeGeneration(const std::string& name) {
  OnController([&](FakeController& controller) {
    Region& region = regions_.at(name);
    ExtentKey next = region.extent;
    ++next.generation.value;
    EXPECT_TRUE(controller.AllocateAndCommit(next, {4096, 4096}));
    controller.expected.erase(region.extent);
    region.extent = next;
    controller.live.clear();
    leases_.clear();
  });
}

void ClientTest::EndLeases() {
  OnController([&](FakeController& controller) {
    leases_.clear();
    controller.Revoke(std::vector(controller.live));
  });
}

bool ClientTest::LeasesAreHeld() {
  bool held = true;
  OnController([&](FakeController&) {
    for (const auto& [lease, granted] : leases_) held &= granted.connection != 0;
  });
  return held;
}

// ------------------------------------------------------------------------------------- the controller's part

void ClientTest::Play() {
  while (!stop_) {
    if (reconnect_.exchange(false)) {
      if (Connect()) ++welcomes_;
      continue;
    }
    std::vector<std::function<void(FakeController&)>> work;
    {
      const MutexLock lock(mu_);
      work.swap(work_);
    }
    for (const auto& one : work) one(*controller_);
    if (const auto request = controller_->Await<wire::NamFromLocal>(Millis(2))) Answer(*request);
    if (const auto gone = controller_->Await<wire::NamLocalGone>(Millis(0))) End(*gone);
    // Again when its fabric is up.
    if (const auto hello = controller_->Await<wire::NamdHello>(Millis(0))) Take(*hello);
  }
}

template <class M>
void ClientTest::Reply(const wire::NamFromLocal& request, const M& message) {
  controller_->Send(wire::NamToLocal{request.connection, M::kType, request.id, wire::Encode(message)});
}

void ClientTest::Refuse(const wire::NamFromLocal& request, Code code, const std::string& why) {
  Reply(request, wire::NamFailed{static_cast<std::uint8_t>(code), why});
}

void ClientTest::End(const wire::NamLocalGone& gone) {
  if (gone.client.value != 0) ++gone_clients_;
  std::vector<LeaseId> ended;
  for (const auto& [lease, granted] : leases_)
    if (granted.connection == gone.connection) ended.emplace_back(lease);
  for (const LeaseId lease : ended) leases_.erase(lease.value);
  if (!ended.empty()) controller_->Revoke(ended);
}

ClientTest::Region* ClientTest::Find(const std::string& reference, std::string& name) {
  for (auto& [known, region] : regions_) {
    const std::string uuid = ToText(region.extent.uuid);
    if (reference != known && reference != uuid && reference != NamPortName(region.extent.uuid)) continue;
    name = known;
    return &region;
  }
  return nullptr;
}

void ClientTest::Grant(const wire::NamFromLocal& request, const std::string& name, NamRights rights,
                       std::optional<LeaseId> refreshed) {
  const Region& region = regions_.at(name);
  rights = static_cast<NamRights>(static_cast<int>(rights | NamRights::kMap) & ~static_cast<int>(withheld_));
  wire::NamLease lease = controller_->LeaseOf(region.extent, request.uid, rights);
  if (refreshed) {
    controller_->live.pop_back();
    lease.lease = *refreshed;
  }
  lease.name = name;
  lease.extents[0].fabric_provider = provider_;
  lease.extents[0].fabric_address = address_;
  for (auto& segment : lease.segments) segment.disp_unit = 8;
  leases_[lease.lease.value] = {name, request.connection};
  wire::NamGranted granted;
  granted.lease = lease.lease;
  granted.region.uuid = region.extent.uuid;
  granted.region.generation = region.extent.generation;
  granted.region.name = name;
  granted.region.lifetime = region.lifetime;
  granted.blob = controller_->Sign(lease);
  Reply(request, granted);
}

void ClientTest::Make(const wire::NamFromLocal& request) {
  const auto create = wire::Decode<wire::NamCreate>(request.payload);
  if (create->name == kNeverAnswered) {
    created_ = create->token;
    return;
  }
  if (regions_.contains(create->name))
    return Refuse(request, Code::kAlreadyExists, "region '" + create->name + "' exists");
  std::vector<std::uint64_t> sizes;
  std::uint64_t bytes = 0;
  for (const auto& segment : create->segments) {
    sizes.push_back(segment.bytes.value);
    bytes += segment.bytes.value;
  }
  if (bytes > kQuota)
    return Refuse(request, Code::kResourceExhausted,
                  fmt::format("{} bytes asked, quota is {}", bytes, kQuota));
  const ExtentKey extent{{7, next_uuid_++}, Generation(1)};
  if (!controller_->AllocateAndCommit(extent, sizes))
    return Refuse(request, Code::kInternal, "the NAM daemon has not made it");
  regions_[create->name] = {extent, create->lifetime};
  Grant(request, create->name, NamRights::kRead | NamRights::kWrite);
}

void ClientTest::List(const wire::NamFromLocal& request) {
  std::string name;
  const Region* region = Find(wire::Decode<wire::NamList>(request.payload)->region, name);
  if (region == nullptr) return Refuse(request, Code::kNotFound, "no such region");
  wire::NamRegionInfo info;
  info.name = name;
  info.lifetime = region->lifetime;
  info.holders.push_back({.who = "rank 3 of a.job on cn0"});
  Reply(request, wire::NamListing{{info}});
}

void ClientTest::Answer(const wire::NamFromLocal& request) {
  std::string name;
  switch (request.type) {
    case wire::NamCreate::kType:
      return Make(request);
    case wire::NamOpen::kType: {
      const auto open = wire::Decode<wire::NamOpen>(request.payload);
      if (Find(open->region, name) == nullptr) return Refuse(request, Code::kNotFound, "no such region");
      if ((open->rights & taken_) != NamRights::kNone)
        return Refuse(request, Code::kPermissionDenied, "its owner has taken that right");
      return Grant(request, name, open->rights);
    }
    case wire::NamRefresh::kType: {
      const LeaseId lease = wire::Decode<wire::NamRefresh>(request.payload)->lease;
      const auto known = leases_.find(lease.value);
      if (known == leases_.end()) return Refuse(request, Code::kNotFound, "lease has ended");
      return Grant(request, known->second.region, NamRights::kRead | NamRights::kWrite, lease);
    }
    case wire::NamWithdraw::kType:
      withdrawn_ = wire::Decode<wire::NamWithdraw>(request.payload)->token;
      return Reply(request, wire::NamDone{});
    case wire::NamClose::kType:
      ++closed_leases_;
      return Reply(request, wire::NamDone{});
    case wire::NamRemove::kType: {
      const auto remove = wire::Decode<wire::NamRemove>(request.payload);
      if (Find(remove->region, name) == nullptr) return Refuse(request, Code::kNotFound, "no such region");
      if (!remove->force) return Refuse(request, Code::kFailedPrecondition, "open by pid 7");
      regions_.erase(name);
      return Reply(request, wire::NamDone{});
    }
    case wire::NamSetLifetime::kType:
      if (Region* region = Find(wire::Decode<wire::NamSetLifetime>(request.payload)->region, name))
        region->lifetime = wire::Decode<wire::NamSetLifetime>(request.payload)->lifetime;
      return Reply(request, wire::NamDone{});
    case wire::NamList::kType:
      return List(request);
    default:
      return Refuse(request, Code::kUnimplemented, "not played");
  }
}

}  // namespace msa::nam::test
