#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/adapters/process/child_process.h"
#include "msa/base/clock.h"
#include "msa/support/eventually.h"
#include "msa/support/scratch_directory.h"

#include "fake_controller.h"
#include "test_client.h"

namespace msa::namd::test {

using support::Eventually;
bool Exists(const std::string& path);

// The real msa-namd of node nam0, with FakeController in front of it.
class NamdTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  struct Start {
    std::vector<std::string> options = {};
    std::vector<std::string> env = {};  // "MSA_FAULT=..."
    std::uint64_t file_size_limit = 0;  // RLIMIT_FSIZE in bytes; 0: none
    std::string fabric = "none";        // libfabric provider
  };
  void StartNamd(Start start);
  void StartNamd() { StartNamd(Start{}); }
  // The wait status, -1 if it does not end.
  int StopNamd(int signal);
  // True once it has ended by itself.
  bool NamdEnds();
  void Restart() {
    StopNamd(SIGKILL);
    StartNamd();
  }
  // A namd with one committed extent `kExtent` of two segments of 4096 bytes.
  void StartWithExtent();

  std::string Socket() const { return dir_ + "/n/nam0/namd.sock"; }
  std::string FileOf(const ExtentKey& key, Stage stage) const {
    return backing_ + "/" + ExtentFileName(key, stage);
  }
  std::string Log() const;
  std::vector<std::string> Files() const;  // in the backing directory, without its facts
  TestClient Client() { return TestClient(Socket()); }
  std::string Blob(NamRights rights = NamRights::kAll) {
    return controller_->Sign(controller_->LeaseOf(kExtent, ::geteuid(), rights));
  }

  static constexpr ExtentKey kExtent{{0x11, 0x22}, Generation(1)};
  static constexpr ExtentKey kOther{{0x33, 0x44}, Generation(1)};
  support::ScratchDirectory scratch_;
  const std::string dir_ = scratch_.path();
  std::string backing_ = scratch_ / "nam/nam0";
  std::unique_ptr<FakeController> controller_;
  ProcessHandle namd_;
};

}  // namespace msa::namd::test
