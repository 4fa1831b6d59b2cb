#pragma once
// Origin and result buffers in the memory of a CUDA device: copied through memory of the host. Nothing is
// linked: the driver's functions are those of the libcuda that the process has loaded. CUDA is not
// initialised here and no context is made: what the process has not done itself is not needed.

#include <stddef.h>
#include <stdint.h>

struct msa_device_driver;
extern const struct msa_device_driver* msa_device_driver;

// Is libcuda in the process, or on this machine, so that it may come? At each new NAM window. Any thread.
void msa_device_look(void);

int msa_device_has(const void* address);

// Memory that only the device can read? One load where there is no CUDA.
static inline int msa_is_on_device(const void* address) {
  const struct msa_device_driver* driver = __atomic_load_n(&msa_device_driver, __ATOMIC_ACQUIRE);
  return __builtin_expect(driver != NULL, 0) && msa_device_has(address);
}

// ---- copies between host and device. All results: 0, or the driver's error.

enum msa_device_direction { kMsaToDevice, kMsaFromDevice };
struct msa_device_copy {
  const struct msa_device_driver* driver;
  enum msa_device_direction direction;
  int is_pushed;
};

// In the context of that memory, which is the thread's until msa_device_end.
void msa_device_begin(struct msa_device_copy* copy, enum msa_device_direction direction, const void* device);
int msa_device_piece(const struct msa_device_copy* copy, void* device, void* host, size_t bytes);
// `count` blocks, both sides `stride` bytes apart, which is at least `block`.
int msa_device_blocks(const struct msa_device_copy* copy, void* device, void* host, size_t stride,
                      size_t block, size_t count);
// All of it has arrived.
int msa_device_end(const struct msa_device_copy* copy);
