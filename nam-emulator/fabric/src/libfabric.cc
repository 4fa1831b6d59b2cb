// The functions of libfabric that are symbols, found when the first is called. msa-namd is not linked with
// it: libraries that come with it (libinfinipath, libpsm2) sleep for 100 ms each while they are loaded, and a
// NAM daemon that is restarted serves its host before it needs a fabric.
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

namespace {

void* Library() {
  static void* const library = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_GLOBAL);
  return library;
}

template <class F>
F* Find(const char* name) {
  return Library() == nullptr ? nullptr : reinterpret_cast<F*>(::dlsym(Library(), name));
}

}  // namespace

extern "C" {

int fi_getinfo(uint32_t version, const char* node, const char* service, uint64_t flags,
               const struct fi_info* hints, struct fi_info** info) {
  static const auto call = Find<decltype(fi_getinfo)>("fi_getinfo");
  return call == nullptr ? -FI_ENOSYS : call(version, node, service, flags, hints, info);
}

void fi_freeinfo(struct fi_info* info) {
  static const auto call = Find<decltype(fi_freeinfo)>("fi_freeinfo");
  if (call != nullptr) call(info);
}

struct fi_info* fi_dupinfo(const struct fi_info* info) {
  static const auto call = Find<decltype(fi_dupinfo)>("fi_dupinfo");
  return call == nullptr ? nullptr : call(info);
}

int fi_fabric(struct fi_fabric_attr* attr, struct fid_fabric** fabric, void* context) {
  static const auto call = Find<decltype(fi_fabric)>("fi_fabric");
  return call == nullptr ? -FI_ENOSYS : call(attr, fabric, context);
}

const char* fi_strerror(int error) {
  static const auto call = Find<decltype(fi_strerror)>("fi_strerror");
  return call == nullptr ? "libfabric.so.1 cannot be loaded" : call(error);
}

}  // extern "C"
