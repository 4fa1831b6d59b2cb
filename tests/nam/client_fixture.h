#pragma once

#include <msa_nam.h>

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "msa/base/mutex.h"

#include "namd_fixture.h"

namespace msa::nam::test {

// For what no deadline and no lease has to end before, which take 10 s.
inline constexpr Millis kSoon{8000};

using namd::ExtentKey;
using namd::test::Eventually;
using namd::test::FakeController;

// libmsanam as a program links it, the real msa-namd, and a thread that plays the controller for both.
class ClientTest : public namd::test::NamdTest {
 protected:
  // "local" or "fabric"; the latter by tcp.
  explicit ClientTest(std::string transport = "local") : transport_(std::move(transport)) {}
  void SetUp() override;
  void TearDown() override;
  bool fabric() const { return transport_ == "fabric"; }

  // On the controller's thread; returns when it has been done.
  void OnController(const std::function<void(FakeController&)>& work);
  void KillNamd();
  // Kills it if it runs, starts it and waits until it has been welcomed.
  void RestartNamd();

  // A region of segments of these sizes; fails the test if it cannot be had.
  msa_nam_region_t Create(const char* name, std::vector<std::uint64_t> sizes);
  msa_nam_region_t Open(const char* name, int rights = MSA_NAM_READ | MSA_NAM_WRITE);
  // Its memory is made anew with the next generation, as a resize does; old leases end.
  void ChangeGeneration(const std::string& name);
  // As an owner does with `region rm --force`, or the controller with orphans.
  void EndLeases();
  // Whether each lease is held by a connection to the namd of now.
  bool LeasesAreHeld();

  struct Region {
    ExtentKey extent;
    wire::NamLifetime lifetime = wire::NamLifetime::kLease;
  };
  // Of the controller's thread.
  std::map<std::string, Region> regions_;
  NamRights withheld_ = NamRights::kNone;  // of later leases
  NamRights taken_ = NamRights::kNone;     // later opens with one of these are refused
  // A create of this name is not answered; its token, and that of the last withdrawal.
  static constexpr const char* kNeverAnswered = "never-answered";
  std::string created_, withdrawn_;
  std::atomic<int> gone_clients_{0};  // of which namd has told
  std::atomic<int> closed_leases_{0};

 private:
  void StartAsMeant();
  bool Connect();
  void Take(const wire::NamdHello& hello);
  void Play();
  void Answer(const wire::NamFromLocal& request);
  void Refuse(const wire::NamFromLocal& request, Code code, const std::string& why);
  template <class M>
  void Reply(const wire::NamFromLocal& request, const M& message);
  Region* Find(const std::string& reference, std::string& name);
  // `refreshed`: keeps its number.
  void Grant(const wire::NamFromLocal& request, const std::string& name, NamRights rights,
             std::optional<LeaseId> refreshed = {});
  void End(const wire::NamLocalGone& gone);
  void Make(const wire::NamFromLocal& request);
  void List(const wire::NamFromLocal& request);

  const std::string transport_;
  std::string provider_;  // of the last hello
  std::string address_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> reconnect_{false};
  std::atomic<int> welcomes_{0};
  Mutex mu_;
  CondVar changed_;
  std::vector<std::function<void(FakeController&)>> work_ MSA_GUARDED_BY(mu_);
  std::uint64_t next_uuid_ = 1;
  struct Granted {
    std::string region;
    std::uint64_t connection = 0;  // it ends with it
  };
  std::map<std::uint64_t, Granted> leases_;
};

// A child that runs `work`; its result is the exit status.
pid_t Spawn(const std::function<int()>& work);
int ExitOf(pid_t child);

#define ASSERT_NAM_OK(call) ASSERT_EQ((call), MSA_NAM_OK) << msa_nam_error_text()
#define EXPECT_NAM_OK(call) EXPECT_EQ((call), MSA_NAM_OK) << msa_nam_error_text()

}  // namespace msa::nam::test
