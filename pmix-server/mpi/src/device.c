#define _GNU_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// cuda.h: CUpointer_attribute, CUmemorytype, CUDA_MEMCPY2D.
enum { kContext = 1, kMemoryType = 2, kIsManaged = 8, kHostMemory = 1, kDeviceMemory = 2 };
struct end_of_blocks {
  size_t x, y;
  int type;
  void* host;
  unsigned long long device;
  void* array;
  size_t pitch;
};
struct blocks {
  struct end_of_blocks from, to;
  size_t width, height;
};

struct msa_device_driver {
  int (*pointer_attribute)(void* value, int attribute, unsigned long long pointer);  // cuPointerGetAttribute
  int (*copy)(unsigned long long to, unsigned long long from, size_t bytes);         // cuMemcpy
  int (*copy_blocks)(const struct blocks* blocks);                                   // cuMemcpy2DUnaligned_v2
  int (*synchronize)(void* stream);                                                  // cuStreamSynchronize
  int (*push)(void* context);                                                        // cuCtxPushCurrent_v2
  int (*pop)(void** context);                                                        // cuCtxPopCurrent_v2
};

// NULL: no libcuda on this machine. &cuda with its functions, or without: it may be loaded yet.
const struct msa_device_driver* msa_device_driver;

static struct msa_device_driver cuda;
static const struct msa_device_driver not_loaded;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long loads;  // of the process, when it was looked last

// The program's image and its heap: never a device's. Memory that was mapped may be unmapped and become one.
static uintptr_t image_low, image_high, heap_low;

static int CountLoads(struct dl_phdr_info* info, size_t bytes, void* count) {
  (void)bytes;
  *(unsigned long long*)count = info->dlpi_adds;
  return 1;
}

static int ReadImage(struct dl_phdr_info* info, size_t bytes, void* unused) {
  uintptr_t low = UINTPTR_MAX, high = 0;
  (void)bytes, (void)unused;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    if (begin < low) low = begin;
    if (end > high) high = end;
  }
  image_low = low;
  image_high = high;
  return 1;  // the first is the program
}

static void ReadHeap(void) {
  char text[1024], *at;
  FILE* file = fopen("/proc/self/stat", "re");
  const size_t bytes = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
  unsigned long long start = 0;
  if (file != NULL) fclose(file);
  text[bytes] = '\0';
  at = strrchr(text, ')');
  // proc(5): start_brk is field 47, the name in parentheses field 2.
  for (int field = 2; at != NULL && field < 47; ++field) at = strchr(at + 1, ' ');
  if (at != NULL && sscanf(at, "%llu", &start) == 1 && start != 0) heap_low = (uintptr_t)start;
}

static void Look(void) {
  dlerror();
  // Not loaded and not on this machine is an error, only not loaded is none.
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) {
    if (dlerror() != NULL) return;
    __atomic_store_n(&msa_device_driver, &not_loaded, __ATOMIC_RELEASE);
    return;
  }
  *(void**)&cuda.pointer_attribute = dlsym(handle, "cuPointerGetAttribute");
  *(void**)&cuda.copy = dlsym(handle, "cuMemcpy");
  *(void**)&cuda.copy_blocks = dlsym(handle, "cuMemcpy2DUnaligned_v2");
  *(void**)&cuda.synchronize = dlsym(handle, "cuStreamSynchronize");
  *(void**)&cuda.push = dlsym(handle, "cuCtxPushCurrent_v2");
  *(void**)&cuda.pop = dlsym(handle, "cuCtxPopCurrent_v2");
  if (cuda.pointer_attribute != NULL && cuda.copy != NULL && cuda.copy_blocks != NULL &&
      cuda.synchronize != NULL && cuda.push != NULL && cuda.pop != NULL)
    __atomic_store_n(&msa_device_driver, &cuda, __ATOMIC_RELEASE);
}

void msa_device_look(void) {
  if (__atomic_load_n(&msa_device_driver, __ATOMIC_ACQUIRE) == &cuda) return;
  pthread_mutex_lock(&mutex);
  if (image_high == 0) {
    dl_iterate_phdr(&ReadImage, NULL);
    ReadHeap();
  }
  // Counted before the look: what comes in between is seen by the next one.
  unsigned long long now = 0;
  dl_iterate_phdr(&CountLoads, &now);
  if (msa_device_driver != &cuda) Look();
  __atomic_store_n(&loads, now, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&mutex);
}

// Only where libcuda could be loaded: 35 ns.
static const struct msa_device_driver* Arrived(void) {
  unsigned long long now = 0;
  dl_iterate_phdr(&CountLoads, &now);
  if (now != __atomic_load_n(&loads, __ATOMIC_ACQUIRE)) msa_device_look();
  const struct msa_device_driver* driver = __atomic_load_n(&msa_device_driver, __ATOMIC_ACQUIRE);
  return driver == &cuda ? driver : NULL;
}

static int IsOnStack(uintptr_t at) {
  static __thread uintptr_t low, high;
  const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  if (high == 0) {
    pthread_attr_t attributes;
    void* begin = NULL;
    size_t bytes = 0;
    high = 1;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0) {
        low = (uintptr_t)begin;
        high = low + bytes;
      }
      pthread_attr_destroy(&attributes);
    }
  }
  // Above this frame alone: a thread may run on another stack than its first, and a stack may not have grown.
  return low <= frame && frame <= at && at < high;
}

int msa_device_has(const void* address) {
  const uintptr_t at = (uintptr_t)address;
  unsigned type = 0, managed = 0;
  if (address == NULL || (at >= image_low && at < image_high) || IsOnStack(at)) return 0;
  if (heap_low != 0 && at >= heap_low && at < (uintptr_t)sbrk(0)) return 0;
  const struct msa_device_driver* driver = __atomic_load_n(&msa_device_driver, __ATOMIC_ACQUIRE);
  if (driver != &cuda && (driver = Arrived()) == NULL) return 0;
  // An error is a pointer that CUDA does not know: the host's.
  if (driver->pointer_attribute(&type, kMemoryType, at) != 0 || type != kDeviceMemory) return 0;
  return driver->pointer_attribute(&managed, kIsManaged, at) != 0 || !managed;
}

void msa_device_begin(struct msa_device_copy* copy, enum msa_device_direction direction, const void* device) {
  void* context = NULL;
  copy->driver = __atomic_load_n(&msa_device_driver, __ATOMIC_ACQUIRE);
  copy->direction = direction;
  const int failed = copy->driver->pointer_attribute(&context, kContext, (uintptr_t)device);
  copy->is_pushed = failed == 0 && context != NULL && copy->driver->push(context) == 0;
}

int msa_device_piece(const struct msa_device_copy* copy, void* device, void* host, size_t bytes) {
  const uintptr_t there = (uintptr_t)device, here = (uintptr_t)host;
  return copy->direction == kMsaToDevice ? copy->driver->copy(there, here, bytes)
                                         : copy->driver->copy(here, there, bytes);
}

int msa_device_blocks(const struct msa_device_copy* copy, void* device, void* host, size_t stride,
                      size_t block, size_t count) {
  const struct end_of_blocks there = {.type = kDeviceMemory, .device = (uintptr_t)device, .pitch = stride};
  const struct end_of_blocks here = {.type = kHostMemory, .host = host, .pitch = stride};
  const int is_in = copy->direction == kMsaToDevice;
  const struct blocks blocks = {is_in ? here : there, is_in ? there : here, block, count};
  return copy->driver->copy_blocks(&blocks);
}

int msa_device_end(const struct msa_device_copy* copy) {
  void* context = NULL;
  // A copy from pageable memory returns when the driver has taken it, not when the device has it.
  const int failed = copy->direction == kMsaToDevice ? copy->driver->synchronize(NULL) : 0;
  if (copy->is_pushed) copy->driver->pop(&context);
  return failed;
}
