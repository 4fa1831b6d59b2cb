#pragma once
// Origin and result buffers in the memory of a CUDA device: copied through memory of the host. Nothing is
// linked: the driver's functions are those of the libcuda that the process has loaded.

#include <stddef.h>
#include <stdint.h>

struct msa_device_driver {
  int (*pointer_attribute)(void* value, int attribute, unsigned long long pointer);  // cuPointerGetAttribute
  int (*copy)(unsigned long long to, unsigned long long from, size_t bytes);         // cuMemcpy
  int (*push)(void* context);                                                        // cuCtxPushCurrent_v2
  int (*pop)(void** context);                                                        // cuCtxPopCurrent_v2
};

// Looks whether libcuda is in the process; at each new NAM window. Any thread.
void msa_device_look(void);
// Instead of libcuda's; NULL: none. For tests.
void msa_device_use(const struct msa_device_driver* driver);

extern _Atomic(const struct msa_device_driver*) msa_device_driver;

int msa_device_has(const struct msa_device_driver* driver, const void* address);

// Memory that only the device can read? One load where there is no CUDA.
static inline int msa_is_on_device(const void* address) {
  const struct msa_device_driver* driver =
      __atomic_load_n((const struct msa_device_driver**)&msa_device_driver, __ATOMIC_ACQUIRE);
  return __builtin_expect(driver != NULL, 0) && msa_device_has(driver, address);
}

// Between host and device, in the device's own context. 0, or the driver's error.
int msa_device_copy(void* to, const void* from, size_t bytes, const void* device_address);
