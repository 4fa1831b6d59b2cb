#include "rules.h"

#include <algorithm>
#include <vector>

#include "msa/topology/size_text.h"
#include "msa/topology/suggest.h"

#include "script_components.h"

namespace msa::job_submit {
namespace {

template <class T>
using Outcome = tl::expected<T, Refusal>;

template <class... Args>
tl::unexpected<Refusal> Refuse(int code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::make_unexpected(Refusal{code, fmt::format(format, std::forward<Args>(args)...)});
}

// A value for the whole job, or by component as in "0:A,1:B".
struct Part {
  std::uint32_t component = 0;
  std::string value;
};
struct Parts {
  bool by_component = false;
  std::vector<Part> parts;

  std::string Of(std::uint32_t component) const {
    for (const Part& part : parts)
      if (!by_component || part.component == component) return part.value;
    return "";
  }
};

Outcome<Parts> SplitParts(std::string_view option, std::string_view text, const Submission& job) {
  if (text.find(':') == std::string_view::npos) return Parts{false, {{0, std::string(text)}}};
  Parts out{true, {}};
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    const std::size_t colon = word.find(':');
    const auto component = colon == std::string_view::npos ? std::nullopt : ParseCount(word.substr(0, colon));
    if (!component || colon + 1 == word.size() || word.find(':', colon + 1) != std::string_view::npos)
      return Refuse(kNotSupported,
                    "{}={}: '{}' is not COMPONENT:VALUE; give one value for the job, or one for each "
                    "component as in {}=0:A,1:B",
                    option, text, word, option);
    const auto same = [&](const Part& part) { return part.component == *component; };
    if (std::any_of(out.parts.begin(), out.parts.end(), same))
      return Refuse(kNotSupported, "{}={}: component {} is there twice; leave one out", option, text,
                    *component);
    if (!job.component && *component > 0)
      return Refuse(kNotSupported,
                    "{}={}: this job has no component {}; give one value, or separate components by ':' or "
                    "'#SBATCH hetjob'",
                    option, text, *component);
    out.parts.push_back({*component, std::string(word.substr(colon + 1))});
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

// What a later component of the script says, and Slurm does not hand over.
Outcome<bool> CheckScript(const Submission& job) {
  for (const ScriptOption& option : ReadScriptOptions(job.script)) {
    if (option.component == 0) continue;
    const std::string& given = option.name == "--module" ? job.module
                               : option.name == "--nam"  ? job.nam
                                                         : job.gateways;
    if (given == option.value) continue;
    return Refuse(kNotSupported,
                  "component {}: the script's '{}={}' is not seen: of an option like this Slurm hands the "
                  "first component's value over, here '{}'; write all of them into the first component, as "
                  "in {}=0:{},{}:{}",
                  option.component, option.name, option.value, given, option.name,
                  given.empty() || given.find(':') != std::string::npos ? "..." : given, option.component,
                  option.value);
  }
  return true;
}

std::string ModuleNames(const Site& site) {
  std::vector<std::string> names;
  for (const SiteModule& module : site.modules) names.push_back(module.name);
  return ListNames(names);
}

// A module's name, else its id, else a kind.
std::vector<const SiteModule*> FindModules(const Site& site, std::string_view word) {
  for (const auto field : {&SiteModule::name, &SiteModule::id})
    for (const SiteModule& module : site.modules)
      if (module.*field == word) return {&module};
  std::vector<const SiteModule*> out;
  for (const SiteModule& module : site.modules)
    if (module.kind == word) out.push_back(&module);
  return out;
}

std::string Join(const std::vector<const SiteModule*>& modules, std::string SiteModule::*field, char by) {
  std::string out;
  for (const SiteModule* module : modules) {
    if (!out.empty()) out += by;
    out += module->*field;
  }
  return out;
}

class Judgement {
 public:
  Judgement(const Submission& job, const Site* site) : job_(job), site_(site) {
    if (job.component) where_ = fmt::format("component {}: ", *job.component);
  }

  Outcome<Decision> Run() {
    if (job_.component && job_.array)
      return Refuse(kInvalidArray,
                    "--array and a heterogeneous job exclude each other; submit the job once for each index, "
                    "or write an array of plain jobs");
    if (auto seen = CheckScript(job_); !seen) return tl::make_unexpected(seen.error());
    if (auto done = Module(); !done) return tl::make_unexpected(done.error());
    if (auto done = Nam(); !done) return tl::make_unexpected(done.error());
    if (auto done = Gateways(); !done) return tl::make_unexpected(done.error());
    return decision_;
  }

 private:
  // What stands for the whole job is counted with its first component.
  bool first() const { return job_.component.value_or(0) == 0; }

  Outcome<bool> CheckNodes(std::string_view what, std::uint64_t exist) {
    if (!job_.nodes || *job_.nodes <= exist) return true;
    return Refuse(kInvalidNodeCount,
                  "{}{}: {} nodes requested, {} exist, so the job could never start; reduce --nodes or see "
                  "'msactl module list'",
                  where_, what, *job_.nodes, exist);
  }

  Outcome<bool> Module() {
    std::string word;
    if (!job_.module.empty()) {
      auto parts = SplitParts("--module", job_.module, job_);
      if (!parts) return tl::make_unexpected(parts.error());
      word = parts->Of(job_.component.value_or(0));
    }
    if (word.empty()) return PartitionAlone();
    if (site_ == nullptr) return SetPartition(word, word);
    const auto modules = FindModules(*site_, word);
    if (modules.empty())
      return Refuse(kInvalidPartition, "{}--module={}: there is no such module; expected {}", where_, word,
                    ModuleNames(*site_));
    return Choose(word, modules);
  }

  // Other components than the user's own can wait for ever: Slurm takes what asks more than exists.
  Outcome<bool> PartitionAlone() {
    if (!job_.component || site_ == nullptr) return true;
    for (const SiteModule& module : site_->modules)
      if (!job_.partition.empty() && module.partition == job_.partition)
        return CheckNodes(fmt::format("module '{}'", module.name), module.nodes);
    return true;
  }

  Outcome<bool> Choose(std::string_view word, const std::vector<const SiteModule*>& modules) {
    std::uint64_t most = 0;
    std::uint64_t sum = 0;
    std::size_t partitions = 0;
    for (const SiteModule* module : modules) {
      if (module->kind == "nam")
        return Refuse(kInvalidPartition,
                      "{}--module={}: module '{}' holds network attached memory and runs no tasks; ask for "
                      "its memory by --nam=SIZE",
                      where_, word, module->name);
      most = std::max<std::uint64_t>(most, module->nodes);
      sum += module->nodes;
      partitions += module->partition.empty() ? 0 : 1;
    }
    if (partitions != 0 && partitions != modules.size())
      return Refuse(kInvalidPartition,
                    "{}--module={}: modules {} are partly partitions and partly features of Slurm; name one "
                    "of them",
                    where_, word, Join(modules, &SiteModule::name, ','));
    // A job lies in one of several partitions, but anywhere among nodes with one of several features.
    const std::uint64_t exist = partitions != 0 ? most : sum;
    if (auto fits = CheckNodes(fmt::format("module '{}'", word), exist); !fits) return fits;
    if (partitions != 0) return SetPartition(word, Join(modules, &SiteModule::partition, ','));
    return SetFeature(word, Join(modules, &SiteModule::feature, '|'));
  }

  Outcome<bool> SetPartition(std::string_view word, const std::string& list) {
    if (job_.partition.empty()) {
      decision_.partition = list;
      return true;
    }
    const std::string padded = "," + list + ",";
    if (padded.find("," + job_.partition + ",") != std::string::npos) return true;
    return Refuse(kInvalidPartition,
                  "{}--partition={} and --module={} contradict each other: the module is partition {}; leave "
                  "one of them out, or give the modules by component as in --module=0:A,1:B",
                  where_, job_.partition, word, list);
  }

  Outcome<bool> SetFeature(std::string_view word, const std::string& feature) {
    if (job_.features.empty()) {
      decision_.features = feature;
      return true;
    }
    if (job_.features.find_first_of("|[](),*:") != std::string::npos ||
        feature.find('|') != std::string::npos)
      return Refuse(kInvalidFeature,
                    "{}--constraint={} cannot be joined with --module={}, which is the feature {}; leave "
                    "--module out and write one --constraint",
                    where_, job_.features, word, feature);
    decision_.features = job_.features + "&" + feature;
    return true;
  }

  Outcome<bool> AddLicence(const std::string& name, std::uint64_t count, std::string_view option) {
    if (name.empty() || count == 0) return true;
    std::string licenses = decision_.licenses.value_or(job_.licenses);
    const std::string padded = "," + licenses;
    for (const char* end : {":", ",", "@", "="})
      if ((padded + ",").find("," + name + end) != std::string::npos)
        return Refuse(kInvalidLicences, "{}--licenses={} and {} both count '{}'; leave --licenses out",
                      where_, job_.licenses, option, name);
    if (!licenses.empty()) licenses += ',';
    decision_.licenses = licenses + fmt::format("{}:{}", name, count);
    return true;
  }

  Outcome<bool> Nam() {
    if (job_.nam.empty() || site_ == nullptr) return true;
    auto parts = SplitParts("--nam", job_.nam, job_);
    if (!parts) return tl::make_unexpected(parts.error());
    if (!site_->nam)
      return Refuse(kInvalidLicences, "--nam={}: this system has no network attached memory; leave --nam out",
                    job_.nam);
    std::uint64_t all = 0;
    std::uint64_t own = 0;
    for (const Part& part : parts->parts) {
      const Result<Bytes> size = ParseMemory(part.value);
      if (!size.ok())
        return Refuse(kNotSupported, "--nam={}: '{}' is not a size; expected a number as 512M or 4G",
                      job_.nam, part.value);
      const std::uint64_t granules =
          size->value / site_->granule.value + (size->value % site_->granule.value == 0 ? 0 : 1);
      // As many as there are sums up to what the site has and no more: nothing overflows.
      if (granules > site_->nam->value / site_->granule.value - all)
        return Refuse(
            kInvalidLicences,
            "--nam={}: more than the {} of network attached memory that exist (in pieces of {}), so "
            "the job could never start; ask for less",
            job_.nam, SizeText(*site_->nam), SizeText(site_->granule));
      all += granules;
      if (parts->by_component ? part.component == job_.component.value_or(0) : first()) own = granules;
    }
    return AddLicence(site_->nam_licence, own, "--nam");
  }

  Outcome<bool> Gateways() {
    if (job_.gateways.empty() || site_ == nullptr) return true;
    auto parts = SplitParts("--gateways", job_.gateways, job_);
    if (!parts) return tl::make_unexpected(parts.error());
    const std::uint32_t exist = site_->gateways.value_or(0);
    std::uint64_t all = 0;
    std::uint64_t own = 0;
    for (const Part& part : parts->parts) {
      const auto count = ParseCount(part.value);
      if (!count)
        return Refuse(kNotSupported,
                      "--gateways={}: '{}' is not a number of gateway nodes; write one as --gateways=1",
                      job_.gateways, part.value);
      all += *count;
      if (all > exist)
        return Refuse(kInvalidLicences,
                      "--gateways={}: {} exist, so the job could never start; ask for fewer", job_.gateways,
                      exist);
      if (parts->by_component ? part.component == job_.component.value_or(0) : first()) own = *count;
    }
    return AddLicence(site_->gateway_licence, own, "--gateways");
  }

  const Submission& job_;
  const Site* const site_;
  std::string where_;
  Decision decision_;
};

}  // namespace

tl::expected<Decision, Refusal> Judge(const Submission& submission, const Site* site) {
  return Judgement(submission, site).Run();
}

}  // namespace msa::job_submit
