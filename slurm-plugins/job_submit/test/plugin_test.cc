// The plugin as slurmctld loads it, with libslurm's own allocator beneath it and descriptions of jobs as a
// broken or hostile client may send them.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

extern "C" {
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
char* slurm_xstrdup(const char* text);
void slurm_xfree(void** item);
}

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Plugin : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("MSA_JOB_SUBMIT_CONF", path_.c_str(), 1);
    Write("module cluster nodes=2\nmodule booster nodes=2 feature=fast\nnam bytes=2G\n");
    handle_ = dlopen(MSA_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle_, nullptr) << dlerror();
    submit_ = reinterpret_cast<int (*)(job_desc_msg_t*, std::uint32_t, char**)>(dlsym(handle_, "job_submit"));
    modify_ = reinterpret_cast<int (*)(job_desc_msg_t*, void*, std::uint32_t)>(dlsym(handle_, "job_modify"));
    ASSERT_NE(submit_, nullptr);
    ASSERT_NE(modify_, nullptr);
    slurm_init_job_desc_msg(&job_);
    job_.het_job_offset = NO_VAL;  // as slurmctld sets it of a plain job
  }
  void TearDown() override {
    for (char** field : {&job_.partition, &job_.features, &job_.licenses, &message_})
      slurm_xfree(reinterpret_cast<void**>(field));
    if (handle_ != nullptr) dlclose(handle_);
  }
  void Write(const std::string& text) { scratch_.Write("job_submit.conf", text); }
  void Note(std::vector<const char*> entries) {
    entries_ = std::move(entries);
    job_.spank_job_env = const_cast<char**>(entries_.data());
    job_.spank_job_env_size = static_cast<std::uint32_t>(entries_.size());
  }
  int Submit() { return submit_(&job_, 0, &message_); }

  msa::support::ScratchDirectory scratch_;
  const std::string path_ = scratch_ / "job_submit.conf";
  void* handle_ = nullptr;
  int (*submit_)(job_desc_msg_t*, std::uint32_t, char**) = nullptr;
  int (*modify_)(job_desc_msg_t*, void*, std::uint32_t) = nullptr;
  job_desc_msg_t job_{};
  char* message_ = nullptr;
  std::vector<const char*> entries_;
};

TEST_F(Plugin, SetsPartitionFeatureAndLicenceOverWhatWasThere) {
  job_.licenses = slurm_xstrdup("matlab:1");
  job_.features = slurm_xstrdup("ib");
  Note({"_SLURM_SPANK_OPTION_msa_module=booster", "MSA_SLURM_MODULE=booster", "MSA_SLURM_NAM=1G"});
  EXPECT_EQ(Submit(), SLURM_SUCCESS);
  EXPECT_STREQ(job_.features, "ib&fast");
  EXPECT_STREQ(job_.licenses, "matlab:1,nam:1");
  EXPECT_EQ(job_.partition, nullptr);
  EXPECT_EQ(message_, nullptr);
}

TEST_F(Plugin, ARefusalCarriesItsText) {
  message_ = slurm_xstrdup("of another plugin");
  job_.min_nodes = 3;
  Note({"MSA_SLURM_MODULE=cluster"});
  EXPECT_EQ(Submit(), ESLURM_INVALID_NODE_COUNT);
  EXPECT_THAT(message_, StartsWith("msa: module 'cluster': 3 nodes requested, 2 exist"));
  EXPECT_EQ(job_.partition, nullptr);
}

TEST_F(Plugin, APlainJobNeverNeedsTheFile) {
  Write("nonsense\n");
  job_.min_nodes = 1000;
  job_.array_inx = const_cast<char*>("0-9");
  EXPECT_EQ(Submit(), SLURM_SUCCESS);
  EXPECT_EQ(message_, nullptr);
  job_.het_job_offset = 0;
  job_.array_inx = nullptr;
  EXPECT_EQ(Submit(), SLURM_SUCCESS);
}

TEST_F(Plugin, ABrokenFileRefusesJobsThatNeedItAndSaysWhere) {
  Write("nonsense\n");
  Note({"MSA_SLURM_NAM=1G"});
  EXPECT_EQ(Submit(), ESLURM_NOT_SUPPORTED);
  EXPECT_THAT(message_, HasSubstr(path_ + ":1: 'nonsense' is not known"));
}

TEST_F(Plugin, WithoutTheFileAModuleIsThePartitionOfItsName) {
  unlink(path_.c_str());
  Note({"MSA_SLURM_MODULE=anything", "MSA_SLURM_NAM=9999G", "MSA_SLURM_GATEWAYS=77"});
  EXPECT_EQ(Submit(), SLURM_SUCCESS);
  EXPECT_STREQ(job_.partition, "anything");
  EXPECT_EQ(job_.licenses, nullptr);
}

TEST_F(Plugin, ADirectoryInPlaceOfTheFileIsNamed) {
  setenv("MSA_JOB_SUBMIT_CONF", scratch_.path().c_str(), 1);
  Note({"MSA_SLURM_NAM=1G"});
  EXPECT_EQ(Submit(), ESLURM_NOT_SUPPORTED);
  EXPECT_THAT(message_, HasSubstr("is no regular file"));
}

TEST_F(Plugin, DescriptionsWithHolesAreSurvived) {
  EXPECT_EQ(submit_(nullptr, 0, &message_), SLURM_SUCCESS);
  job_.spank_job_env = nullptr;
  job_.spank_job_env_size = 12;
  EXPECT_EQ(Submit(), SLURM_SUCCESS);
  job_.spank_job_env_size = NO_VAL;
  EXPECT_EQ(Submit(), SLURM_SUCCESS);
  Note({nullptr, "", "=", "MSA_SLURM_MODULE", "MSA_SLURM_MODULE=", "MSA_SLURM_MODULEX=a", nullptr});
  EXPECT_EQ(Submit(), SLURM_SUCCESS);
  EXPECT_EQ(job_.partition, nullptr);
  job_.het_job_offset = 0xfffffffd;
  EXPECT_EQ(Submit(), SLURM_SUCCESS);
  EXPECT_EQ(modify_(nullptr, nullptr, 0), SLURM_SUCCESS);
  EXPECT_EQ(modify_(&job_, nullptr, NO_VAL), SLURM_SUCCESS);
}

TEST_F(Plugin, ValuesBeyondAnySizeAreRefusedWithoutAPlaceForTheText) {
  const std::string huge = "MSA_SLURM_MODULE=" + std::string(std::size_t{1} << 20, 'm');
  Note({huge.c_str()});
  EXPECT_EQ(submit_(&job_, 0, nullptr), ESLURM_INVALID_PARTITION_NAME);
  EXPECT_EQ(Submit(), ESLURM_INVALID_PARTITION_NAME);
  EXPECT_LT(std::string(message_).size(), 8192u);
}

TEST_F(Plugin, AScriptOfOtherComponentsIsReadAtTheFirst) {
  job_.het_job_offset = 0;
  job_.script = const_cast<char*>("#!/bin/sh\n#SBATCH --nam=1G\n#SBATCH hetjob\n#SBATCH --nam=2G\ntrue\n");
  Note({"MSA_SLURM_NAM=1G"});
  EXPECT_EQ(Submit(), ESLURM_NOT_SUPPORTED);
  EXPECT_THAT(message_, HasSubstr("--nam=0:1G,1:2G"));
  job_.script = nullptr;
}

}  // namespace
