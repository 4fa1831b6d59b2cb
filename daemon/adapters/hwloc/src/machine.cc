#include "msa/adapters/hwloc/machine.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <hwloc.h>

#include "msa/adapters/process/files.h"

namespace msa {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const noexcept { hwloc_topology_destroy(topology); }
};
using TopologyPtr = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using BitmapPtr = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

// Disallowed CPUs are kept, and I/O devices too: a consumer of the XML filters as it likes, but cannot add.
Result<TopologyPtr> NewTopology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    return Status(Code::kResourceExhausted, "hwloc: no memory for a topology");
  TopologyPtr topology(raw);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  return topology;
}

// The cpuset of the cgroup (hwloc's allowed set) within the affinity that this process was started with.
BitmapPtr UsableCpus(hwloc_topology_t topology) {
  BitmapPtr usable(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  const BitmapPtr bound(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) == 0 &&
      hwloc_bitmap_intersects(usable.get(), bound.get()))
    hwloc_bitmap_and(usable.get(), usable.get(), bound.get());
  return usable;
}

// The lowest limit on the way from this process's cgroup (v2, then v1) to the root; UINT64_MAX if there is
// none.
std::uint64_t CgroupMemoryLimit() {
  std::uint64_t limit = UINT64_MAX;
  const auto cgroups = ReadFile("/proc/self/cgroup", 64 * 1024);
  if (!cgroups.ok()) return limit;
  const auto consider = [&limit](const std::string& base, std::string path, const std::string& file) {
    for (;; path = path.substr(0, path.rfind('/'))) {
      if (const auto text = ReadFile(base + path + "/" + file, 64); text.ok()) {
        std::uint64_t value = 0;
        if (std::from_chars(text->data(), text->data() + text->size(), value).ec == std::errc())
          limit = std::min(limit, value);
      }
      if (path.empty() || path.rfind('/') == std::string::npos) return;
    }
  };
  std::string_view rest = *cgroups;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto path_at = line.find(":/");
    if (path_at == std::string_view::npos) continue;
    const std::string path(line.substr(path_at + 1));
    if (line.starts_with("0::")) consider("/sys/fs/cgroup", path, "memory.max");
    if (line.find(":memory:") != std::string_view::npos)
      consider("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
  }
  return limit;
}

std::string CpuModel(hwloc_topology_t topology) {
  for (const hwloc_obj_t object :
       {hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0), hwloc_get_root_obj(topology)})
    if (object != nullptr)
      if (const char* model = hwloc_obj_get_info_by_name(object, "CPUModel")) return model;
  return {};
}

std::uint32_t CountGpus(hwloc_topology_t topology) {
  std::uint32_t display = 0;
  // A PCI class of 0x03xx (display) or 0x12xx (processing accelerator) with a vendor of compute devices: a
  // server's own VGA console (ASPEED, Matrox) is none.
  for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_pcidev(topology, device)) != nullptr;) {
    const auto& pci = device->attr->pcidev;
    const bool graphics = pci.class_id >> 8 == 0x03 || pci.class_id >> 8 == 0x12;
    const bool vendor = pci.vendor_id == 0x10de || pci.vendor_id == 0x1002 || pci.vendor_id == 0x8086;
    if (graphics && vendor) ++display;
  }
  return display;
}

}  // namespace

std::string FormatCpuSet(const CpuSet& cpus) {
  std::string out;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return out;
}

class Machine::Impl {
 public:
  explicit Impl(TopologyPtr topology) : topology_(std::move(topology)) { Describe(); }

  const MachineDescription& description() const { return description_; }
  const std::vector<CpuSet>& core_cpus() const { return core_cpus_; }

  Status WriteXml(const std::string& path) const {
    char* buffer = nullptr;
    int size = 0;
    if (hwloc_topology_export_xmlbuffer(topology_.get(), &buffer, &size, 0) != 0)
      return ErrnoError(errno, "hwloc: export topology as XML");
    // hwloc counts the closing zero.
    const Status status =
        WriteFileAtomically(path, {buffer, static_cast<std::size_t>(std::max(size - 1, 0))}, 0644);
    hwloc_free_xmlbuffer(topology_.get(), buffer);
    return status;
  }

 private:
  void AddCore(hwloc_const_cpuset_t cpus, hwloc_const_cpuset_t usable) {
    const BitmapPtr both(hwloc_bitmap_alloc());
    hwloc_bitmap_and(both.get(), cpus, usable);
    CpuSet set;
    for (int cpu = hwloc_bitmap_first(both.get()); cpu >= 0; cpu = hwloc_bitmap_next(both.get(), cpu))
      set.push_back(static_cast<std::uint32_t>(cpu));
    if (!set.empty()) core_cpus_.push_back(std::move(set));
  }

  void Describe() {
    hwloc_topology_t topology = topology_.get();
    const BitmapPtr usable = UsableCpus(topology);
    // Some virtual machines report no cores: a hardware thread counts as one then.
    const bool has_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
    const hwloc_obj_type_t unit = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology, unit, core)) != nullptr;)
      AddCore(core->cpuset, usable.get());
    description_.cores = static_cast<std::uint32_t>(core_cpus_.size());
    description_.threads = static_cast<std::uint32_t>(std::max(hwloc_bitmap_weight(usable.get()), 0));
    description_.packages = CountWithin(HWLOC_OBJ_PACKAGE, usable.get());
    description_.numa_nodes = CountWithin(HWLOC_OBJ_NUMANODE, usable.get());
    description_.gpus = CountGpus(topology);
    std::uint64_t memory = 0;
    const hwloc_const_nodeset_t allowed = hwloc_topology_get_allowed_nodeset(topology);
    for (hwloc_obj_t node = nullptr;
         (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;)
      if (hwloc_bitmap_isset(allowed, node->os_index)) memory += node->attr->numanode.local_memory;
    description_.memory = Bytes(std::min(memory, CgroupMemoryLimit()));
    description_.cpu_model = CpuModel(topology);
  }

  std::uint32_t CountWithin(hwloc_obj_type_t type, hwloc_const_cpuset_t usable) const {
    std::uint32_t count = 0;
    for (hwloc_obj_t object = nullptr;
         (object = hwloc_get_next_obj_by_type(topology_.get(), type, object)) != nullptr;)
      if (hwloc_bitmap_intersects(object->cpuset, usable)) ++count;
    return std::max(count, 1U);
  }

  TopologyPtr topology_;
  MachineDescription description_;
  std::vector<CpuSet> core_cpus_;  // of each usable core, in hwloc's logical order
};

Machine::Machine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Machine::Machine(Machine&&) noexcept = default;
Machine& Machine::operator=(Machine&&) noexcept = default;
Machine::~Machine() = default;

Result<Machine> Machine::Measure() {
  MSA_ASSIGN_OR_RETURN(TopologyPtr topology, NewTopology());
  if (hwloc_topology_load(topology.get()) != 0) return ErrnoError(errno, "hwloc: discover this machine");
  return Machine(std::make_unique<Impl>(std::move(topology)));
}

Result<Machine> Machine::FromXml(const std::string& path) {
  // 64 MiB: a machine of 4,096 cores has 8 MiB.
  MSA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, std::size_t{64} << 20));
  MSA_ASSIGN_OR_RETURN(TopologyPtr topology, NewTopology());
  if (hwloc_topology_set_xmlbuffer(topology.get(), text.c_str(), static_cast<int>(text.size()) + 1) != 0 ||
      hwloc_topology_load(topology.get()) != 0)
    return Error(Code::kInvalidArgument,
                 "hwloc: '{}' is no topology in XML; restart the node daemon, which writes it", path);
  return Machine(std::make_unique<Impl>(std::move(topology)));
}

const MachineDescription& Machine::description() const noexcept { return impl_->description(); }

Status Machine::WriteXml(const std::string& path) const { return impl_->WriteXml(path); }

Result<CpuSet> Machine::CpusOf(const std::vector<std::uint16_t>& cores) const {
  CpuSet out;
  for (const std::uint16_t core : cores) {
    if (core >= impl_->core_cpus().size())
      return Error(Code::kOutOfRange, "core {} does not exist; this machine offers {} cores, numbered from 0",
                   core, impl_->core_cpus().size());
    const CpuSet& cpus = impl_->core_cpus()[core];
    out.insert(out.end(), cpus.begin(), cpus.end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace msa
