#define _GNU_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

// cuda.h: CUpointer_attribute, CUmemorytype.
enum { kContext = 1, kMemoryType = 2, kIsManaged = 8, kDeviceMemory = 2 };

_Atomic(const struct msa_device_driver*) msa_device_driver;

static struct msa_device_driver cuda;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void msa_device_use(const struct msa_device_driver* driver) { atomic_store(&msa_device_driver, driver); }

void msa_device_look(void) {
  if (atomic_load(&msa_device_driver) != NULL) return;
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return;
  pthread_mutex_lock(&mutex);
  *(void**)&cuda.pointer_attribute = dlsym(handle, "cuPointerGetAttribute");
  *(void**)&cuda.copy = dlsym(handle, "cuMemcpy");
  *(void**)&cuda.push = dlsym(handle, "cuCtxPushCurrent_v2");
  *(void**)&cuda.pop = dlsym(handle, "cuCtxPopCurrent_v2");
  if (cuda.pointer_attribute != NULL && cuda.copy != NULL && cuda.push != NULL && cuda.pop != NULL)
    atomic_store(&msa_device_driver, &cuda);
  pthread_mutex_unlock(&mutex);
}

int msa_device_has(const struct msa_device_driver* driver, const void* address) {
  const unsigned long long pointer = (unsigned long long)(uintptr_t)address;
  unsigned type = 0, managed = 0;
  // An error is a pointer that CUDA does not know: the host's.
  if (address == NULL || driver->pointer_attribute(&type, kMemoryType, pointer) != 0) return 0;
  if (type != kDeviceMemory) return 0;
  return driver->pointer_attribute(&managed, kIsManaged, pointer) != 0 || !managed;
}

int msa_device_copy(void* to, const void* from, size_t bytes, const void* device_address) {
  const struct msa_device_driver* driver = atomic_load(&msa_device_driver);
  void* context = NULL;
  int failed = driver->pointer_attribute(&context, kContext, (unsigned long long)(uintptr_t)device_address);
  const int is_pushed = failed == 0 && context != NULL && driver->push(context) == 0;
  failed = driver->copy((unsigned long long)(uintptr_t)to, (unsigned long long)(uintptr_t)from, bytes);
  if (is_pushed) driver->pop(&context);
  return failed;
}
