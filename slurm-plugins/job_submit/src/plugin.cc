// The job_submit plugin of msa, loaded by slurmctld (JobSubmitPlugins=msa). Built against libslurm-dev's
// public headers alone. It runs under slurmctld's locks: it reads one small file and nothing else, calls no
// daemon, and whatever fails inside it lets the job through as it came.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

extern "C" {
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
}

#include "msa/base/unique_fd.h"

#include "rules.h"

#define MSA_EXPORT __attribute__((visibility("default")))

extern "C" {
// Of libslurm, and in slurmctld; in no public header. What slurmctld frees must come of its own allocator.
char* slurm_xstrdup(const char* text);
void slurm_xfree(void** item);
void slurm_error(const char* format, ...) __attribute__((format(printf, 1, 2)));

// 'extern': a const of C++ is otherwise seen by nobody, and every submission fails with "Unspecified error".
MSA_EXPORT extern const char plugin_name[];
MSA_EXPORT extern const char plugin_type[];
MSA_EXPORT extern const uint32_t plugin_version;
const char plugin_name[] = "modules, network attached memory and gateways of msa";
const char plugin_type[] = "job_submit/msa";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
}

namespace {

using namespace msa;              // NOLINT: a plugin's one file
using namespace msa::job_submit;  // NOLINT

static_assert(kInvalidPartition == ESLURM_INVALID_PARTITION_NAME);
static_assert(kInvalidNodeCount == ESLURM_INVALID_NODE_COUNT);
static_assert(kInvalidFeature == ESLURM_INVALID_FEATURE);
static_assert(kNotSupported == ESLURM_NOT_SUPPORTED);
static_assert(kInvalidLicences == ESLURM_INVALID_LICENSES);
static_assert(kInvalidArray == ESLURM_INVALID_ARRAY);

// Sizes of what comes from a user's client, which slurmctld has unpacked but not judged.
constexpr std::size_t kMaxValue = 4096, kMaxScript = std::size_t{4} << 20;

std::string Text(const char* text, std::size_t limit = kMaxValue) {
  return text == nullptr ? std::string() : std::string(text, strnlen(text, limit));
}

// Of what the SPANK plugin has noted in the submitting command.
std::string Noted(const job_desc_msg_t& job, const char* name) {
  if (job.spank_job_env == nullptr || job.spank_job_env_size == NO_VAL) return "";
  const std::size_t size = strlen(name);
  for (std::uint32_t i = 0; i < job.spank_job_env_size; ++i) {
    const char* entry = job.spank_job_env[i];
    if (entry != nullptr && strncmp(entry, name, size) == 0 && entry[size] == '=')
      return Text(entry + size + 1);
  }
  return "";
}

Submission Read(const job_desc_msg_t& job) {
  Submission out;
  out.module = Noted(job, "MSA_SLURM_MODULE");
  out.nam = Noted(job, "MSA_SLURM_NAM");
  out.gateways = Noted(job, "MSA_SLURM_GATEWAYS");
  if (job.het_job_offset != NO_VAL) out.component = job.het_job_offset;
  if (job.min_nodes != NO_VAL) out.nodes = job.min_nodes;
  if (!out.concerns_us()) return out;
  out.partition = Text(job.partition);
  out.features = Text(job.features);
  out.licenses = Text(job.licenses);
  out.array = job.array_inx != nullptr;
  if (out.component) out.script = Text(job.script, kMaxScript);
  return out;
}

// nullopt: there is no such file.
Result<std::optional<Site>> ReadSite() {
  const char* named = getenv("MSA_JOB_SUBMIT_CONF");
  const std::string path = named != nullptr && *named != '\0' ? named : kSiteFile;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENOENT) return std::optional<Site>();
  if (!fd) return ErrnoError(errno, "open " + path);
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return Error(Code::kInvalidArgument, "{} is no regular file", path);
  std::string text;
  char part[16384];
  while (text.size() <= kMaxSiteBytes) {
    const ssize_t n = read(fd.get(), part, sizeof(part));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read " + path);
    if (n == 0) break;
    text.append(part, static_cast<std::size_t>(n));
  }
  MSA_ASSIGN_OR_RETURN(Site site, ParseSite(text, path));
  return std::optional<Site>(std::move(site));
}

void Replace(char** field, const std::optional<std::string>& value) {
  if (!value) return;
  slurm_xfree(reinterpret_cast<void**>(field));
  *field = slurm_xstrdup(value->c_str());
}

int Refuse(const std::string& text, int code, char** message) {
  if (message != nullptr) {
    slurm_xfree(reinterpret_cast<void**>(message));
    *message = slurm_xstrdup(("msa: " + text).c_str());
  }
  return code;
}

int Submit(job_desc_msg_t* job, char** message) {
  const Submission submission = Read(*job);
  if (!submission.concerns_us()) return SLURM_SUCCESS;
  const Result<std::optional<Site>> site = ReadSite();
  if (!site.ok()) {
    // A component without options of ours is left to Slurm.
    if (submission.module.empty() && submission.nam.empty() && submission.gateways.empty())
      return SLURM_SUCCESS;
    return Refuse("the administrator's file cannot be used: " + site.status().message(), ESLURM_NOT_SUPPORTED,
                  message);
  }
  const auto decision = Judge(submission, *site ? &**site : nullptr);
  if (!decision) return Refuse(decision.error().text, decision.error().code, message);
  Replace(&job->partition, decision->partition);
  Replace(&job->features, decision->features);
  Replace(&job->licenses, decision->licenses);
  return SLURM_SUCCESS;
}

}  // namespace

extern "C" {

MSA_EXPORT int init() { return SLURM_SUCCESS; }
MSA_EXPORT int fini() { return SLURM_SUCCESS; }

MSA_EXPORT int job_submit(job_desc_msg_t* job, std::uint32_t /*uid*/, char** message) noexcept {
  if (job == nullptr) return SLURM_SUCCESS;
  try {
    return Submit(job, message);
  } catch (const std::exception& error) {
    slurm_error("job_submit/msa: the job goes on as it came: %s", error.what());
  } catch (...) {
    slurm_error("job_submit/msa: the job goes on as it came");
  }
  return SLURM_SUCCESS;
}

// Changes of a job are Slurm's own affair. The job's record is opaque here.
MSA_EXPORT int job_modify(job_desc_msg_t* /*job*/, void* /*record*/, std::uint32_t /*uid*/) noexcept {
  return SLURM_SUCCESS;
}
}
