// A libcuda.so.1 for machines without a GPU. Memory of its device is mapped without any right: who touches it
// without a copy by the driver dies. What it is asked is counted: double_* below.
//   CUDA_DOUBLE=no-device   cuInit fails as without a GPU
// Copies to the device arrive when the stream is synchronised, as those from pageable memory may.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kInvalid = 1, kNotInitialized = 3, kNoDevice = 100, kInvalidContext = 201 };
enum kind { kNone, kDevice, kManaged };
typedef unsigned long long address;

struct allocation {
  address begin;
  size_t bytes;
  enum kind kind;
  void* context;
};
struct late {
  struct late* next;
  address to;
  size_t bytes;
  char data[];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct allocation allocations[64];
static struct late *first, **last = &first;
static int is_initialized;
static __thread void* stack[8];
static __thread int depth;
static char contexts[2];

int double_initialisations, double_lookups, double_copies, double_block_copies;
int double_depth(void) { return depth; }

int cuInit(unsigned flags) {
  (void)flags;
  ++double_initialisations;
  const char* how = getenv("CUDA_DOUBLE");
  if (how != NULL && strcmp(how, "no-device") == 0) return kNoDevice;
  is_initialized = 1;
  return 0;
}

// A context of its own for each of two devices; the thread's from then on.
int double_context(int device) {
  if (!is_initialized) return kNotInitialized;
  stack[depth++] = &contexts[device];
  return 0;
}

static struct allocation* Find(address at) {
  for (int i = 0; i < 64; ++i)
    if (allocations[i].kind != kNone && at - allocations[i].begin < allocations[i].bytes)
      return &allocations[i];
  return NULL;
}

static int Allocate(address* at, size_t bytes, enum kind kind) {
  if (!is_initialized) return kNotInitialized;
  if (depth == 0) return kInvalidContext;
  void* memory = mmap(NULL, bytes, kind == kDevice ? PROT_NONE : PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < 64; ++i) {
    if (allocations[i].kind != kNone) continue;
    allocations[i] = (struct allocation){(address)memory, bytes, kind, stack[depth - 1]};
    break;
  }
  pthread_mutex_unlock(&mutex);
  *at = (address)memory;
  return 0;
}
int cuMemAlloc_v2(address* at, size_t bytes) { return Allocate(at, bytes, kDevice); }
int cuMemAllocManaged(address* at, size_t bytes, unsigned flags) {
  (void)flags;
  return Allocate(at, bytes, kManaged);
}

int cuPointerGetAttribute(void* value, int attribute, address at) {
  if (!is_initialized) return kNotInitialized;
  pthread_mutex_lock(&mutex);
  ++double_lookups;
  const struct allocation* found = Find(at);
  if (found != NULL && attribute == 1) *(void**)value = found->context;
  if (found != NULL && attribute == 2) *(unsigned*)value = 2;
  if (found != NULL && attribute == 8) *(unsigned*)value = found->kind == kManaged;
  pthread_mutex_unlock(&mutex);
  return found == NULL ? kInvalid : 0;
}

int cuCtxPushCurrent_v2(void* context) {
  stack[depth++] = context;
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (depth == 0) return kInvalidContext;
  *context = stack[--depth];
  return 0;
}

static void Unlock(const struct allocation* memory, int rights) {
  if (memory != NULL && memory->kind == kDevice && mprotect((void*)memory->begin, memory->bytes, rights) != 0)
    abort();
}

static void Arrive(void) {
  while (first != NULL) {
    struct late* late = first;
    const struct allocation* memory = Find(late->to);
    first = late->next;
    Unlock(memory, PROT_READ | PROT_WRITE);
    memcpy((void*)late->to, late->data, late->bytes);
    Unlock(memory, PROT_NONE);
    free(late);
  }
  last = &first;
}

static int Copy(address to, address from, size_t bytes) {
  struct allocation *target = Find(to), *source = Find(from);
  if (target != NULL && source != NULL) abort();  // never asked for here
  const struct allocation* memory = target != NULL ? target : source;
  if (memory == NULL || memory->begin + memory->bytes - (target != NULL ? to : from) < bytes) return kInvalid;
  if (depth == 0 || stack[depth - 1] != memory->context) return kInvalidContext;
  if (target != NULL) {
    struct late* late = malloc(sizeof *late + bytes);
    if (late == NULL) abort();
    *late = (struct late){NULL, to, bytes};
    memcpy(late->data, (void*)from, bytes);
    *last = late;
    last = &late->next;
    return 0;
  }
  Arrive();  // copies of one stream are in order
  Unlock(memory, PROT_READ);
  memcpy((void*)to, (void*)from, bytes);
  Unlock(memory, PROT_NONE);
  return 0;
}

int cuMemcpy(address to, address from, size_t bytes) {
  if (!is_initialized) return kNotInitialized;
  pthread_mutex_lock(&mutex);
  ++double_copies;
  const int failed = Copy(to, from, bytes);
  pthread_mutex_unlock(&mutex);
  return failed;
}

// CUDA_MEMCPY2D.
struct blocks {
  struct end {
    size_t x, y;
    int type;
    void* host;
    address device;
    void* array;
    size_t pitch;
  } from, to;
  size_t width, height;
};

int cuMemcpy2DUnaligned_v2(const struct blocks* blocks) {
  if (!is_initialized) return kNotInitialized;
  if (blocks->from.pitch < blocks->width || blocks->to.pitch < blocks->width) return kInvalid;
  const address from = blocks->from.type == 1 ? (address)blocks->from.host : blocks->from.device;
  const address to = blocks->to.type == 1 ? (address)blocks->to.host : blocks->to.device;
  int failed = 0;
  pthread_mutex_lock(&mutex);
  ++double_block_copies;
  for (size_t row = 0; row < blocks->height && failed == 0; ++row)
    failed = Copy(to + row * blocks->to.pitch, from + row * blocks->from.pitch, blocks->width);
  pthread_mutex_unlock(&mutex);
  return failed;
}

int cuStreamSynchronize(void* stream) {
  (void)stream;
  if (depth == 0) return kInvalidContext;
  pthread_mutex_lock(&mutex);
  Arrive();
  pthread_mutex_unlock(&mutex);
  return 0;
}

// The test's own look into the device, and its fill: not counted, past the stream.
void double_peek(void* to, address from, size_t bytes) {
  const struct allocation* memory = Find(from);
  Unlock(memory, PROT_READ);
  memcpy(to, (void*)from, bytes);
  Unlock(memory, PROT_NONE);
}
void double_poke(address to, const void* from, size_t bytes) {
  const struct allocation* memory = Find(to);
  Unlock(memory, PROT_READ | PROT_WRITE);
  memcpy((void*)to, from, bytes);
  Unlock(memory, PROT_NONE);
}
