// libmsampi.so: preloaded into every task, or linked in front of the MPI library. Plain C without an MPI, so
// that a program without MPI pays for the mapping alone. The first interposed call looks for the MPI that the
// process has loaded and loads the library that was compiled for it, from this one's directory: outside a
// task of msa too, where windows in network attached memory are all that it adds.
//
// MPI_X and PMPI_X are both defined: Open MPI's and MPICH's Fortran bindings call PMPI_X, and so does a
// profiling tool, which thereby keeps its place: MPI_X -> the tool's -> PMPI_X -> here -> the MPI's own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "fortran.h"

#define EXPORT __attribute__((visibility("default")))

enum { kNoMpi = 16 };  // MPI_ERR_OTHER of Open MPI, an error in all

static const struct {
  const char* soname;
  const char* backend;
} kKnown[] = {{"libmpi.so.40", "libmsampi-openmpi.so"}, {"libmpich.so.12", "libmsampi-mpich.so"}};

static struct msa_host host;               // the MPI's own calls
static struct msa_calls tooled;            // what MPI_X leads to where a profiling tool is present
static const struct msa_backend* backend;  // NULL: none
static const char* backend_name;           // NULL: an MPI that msa has no library for
static _Atomic(const struct msa_calls*) mpi_calls, pmpi_calls;
static pthread_once_t found = PTHREAD_ONCE_INIT;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

// A program that only looks whether these symbols are there gets a failure, not a crash.
static int NoMpi(void) {
  static const char kText[] =
      "msa: an MPI call, but no MPI library is loaded that libmsampi knows how to find\n";
  fputs(kText, stderr);
  return kNoMpi;
}

#define PREFIX "MPI_"
#define NAME_OF(name, params, args) PREFIX #name,
static const char* const kNames[] = {MSA_CALLS(NAME_OF)};
#undef NAME_OF
#define DECLARE(name, params, args) \
  EXPORT int MPI_##name params;     \
  EXPORT int PMPI_##name params;
MSA_CALLS(DECLARE)
#undef DECLARE
#define OWN_PMPI(name, params, args) (void*)&PMPI_##name,
enum { kCalls = sizeof(struct msa_calls) / sizeof(void*) };
_Static_assert(kCalls == sizeof kNames / sizeof kNames[0], "one name a call");

static void* Symbol(void* handle, const char* prefix, const char* name) {
  char full[64];
  snprintf(full, sizeof full, "%s%s", prefix, name);
  return dlsym(handle, full);
}

static const char* FileOf(const void* address, void** base) {
  Dl_info info;
  if (address == NULL || dladdr(address, &info) == 0 || info.dli_fname == NULL) return NULL;
  if (base != NULL) *base = info.dli_fbase;
  return info.dli_fname;
}

static const char* BackendFor(const char* file) {
  const char* slash = strrchr(file, '/');
  const char* name = slash != NULL ? slash + 1 : file;
  for (size_t i = 0; i < sizeof kKnown / sizeof kKnown[0]; ++i)
    if (strncmp(name, kKnown[i].soname, strlen(kKnown[i].soname)) == 0) return kKnown[i].backend;
  return NULL;
}

// The MPI behind this library in the search order; else one that somebody opened for himself (mpi4py), which
// no search order shows.
static void* FindMpi(void) {
  const char* file = FileOf(dlsym(RTLD_NEXT, "PMPI_Init"), NULL);
  if (file != NULL) {
    backend_name = BackendFor(file);
    void* handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != NULL) return handle;
  }
  for (size_t i = 0; i < sizeof kKnown / sizeof kKnown[0]; ++i) {
    void* handle = dlopen(kKnown[i].soname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) continue;
    backend_name = kKnown[i].backend;
    return handle;
  }
  return NULL;
}

static void Complain(const char* what) {
  const char* rank = getenv("MSA_RANK");
  if (rank != NULL && strcmp(rank, "0") != 0) return;  // one line a step is enough
  fprintf(stderr, "msa: %s; MPI_Comm_spawn runs without 'arch' and 'soft' here\n", what);
}

static void LoadBackend(void) {
  char path[4096], text[4400];
  const char* self = FileOf((const void*)&NoMpi, NULL);
  if (backend_name == NULL || self == NULL) return;
  const char* slash = strrchr(self, '/');
  const int folder = slash != NULL ? (int)(slash - self) + 1 : 0;
  if (snprintf(path, sizeof path, "%.*s%s", folder, self, backend_name) >= (int)sizeof path) return;
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    snprintf(text, sizeof text, "%s", dlerror());
    Complain(text);
    return;
  }
  msa_backend_entry entry;
  *(void**)&entry = dlsym(handle, MSA_BACKEND_SYMBOL);
  const struct msa_backend* got = entry != NULL ? entry(&host) : NULL;
  if (got == NULL || got->version != MSA_BACKEND_VERSION) {
    snprintf(text, sizeof text, "%s and %s are of different versions of msa", self, path);
    Complain(text);
    return;
  }
  backend = got;
}

// A tool's MPI_X comes before the MPI's own and calls PMPI_X.
static int FindTools(const void* of_mpi) {
  static void* const kOwn[] = {MSA_CALLS(OWN_PMPI)};
  void* mpi_base = NULL;
  int tools = 0;
  FileOf(of_mpi, &mpi_base);
  for (int i = 0; i < kCalls; ++i) {
    void* base = NULL;
    void* next = dlsym(RTLD_NEXT, kNames[i]);
    const int is_tool = next != NULL && FileOf(next, &base) != NULL && base != mpi_base;
    ((void**)&tooled)[i] = is_tool ? next : kOwn[i];
    tools += is_tool;
  }
  return tools;
}

static unsigned Connects(void);

static void Find(void) {
  void* mpi = FindMpi();
  void** real = (void**)&host.real;
  host.version = MSA_BACKEND_VERSION;
  host.connects = &Connects;
  for (int i = 0; i < kCalls; ++i) {
    real[i] = mpi != NULL ? Symbol(mpi, "P", kNames[i]) : NULL;
    if (real[i] == NULL) real[i] = (void*)&NoMpi;
  }
  const struct msa_calls* own = &host.real;
  if (mpi != NULL) {
    pthread_once(&loaded, &LoadBackend);
    if (backend != NULL) own = &backend->calls;
  }
  atomic_store_explicit(&pmpi_calls, own, memory_order_release);
  atomic_store_explicit(&mpi_calls, FindTools(real[0]) ? &tooled : own, memory_order_release);
}

static inline const struct msa_calls* Calls(_Atomic(const struct msa_calls*)* which) {
  const struct msa_calls* calls = atomic_load_explicit(which, memory_order_acquire);
  if (__builtin_expect(calls != NULL, 1)) return calls;
  pthread_once(&found, &Find);
  return atomic_load_explicit(which, memory_order_acquire);
}

// Relaxed: a call that is exchanged later (calls.h) answers alike for all that existed before.
#define DEFINE(name, params, args)                                                                   \
  int MPI_##name params { return __atomic_load_n(&Calls(&mpi_calls)->name, __ATOMIC_RELAXED) args; } \
  int PMPI_##name params { return __atomic_load_n(&Calls(&pmpi_calls)->name, __ATOMIC_RELAXED) args; }
MSA_CALLS(DEFINE)

// ---------------------------------------------------------------------------- DEEP's interface (msa_mpi.h)

static const struct msa_backend* Backend(void) {
  Calls(&pmpi_calls);
  pthread_once(&loaded, &LoadBackend);
  return backend;
}

EXPORT int deep_booster_alloc(void* spawners, int hosts, int processes_per_host, void** inter) {
  const struct msa_backend* b = Backend();
  return b != NULL ? b->booster_alloc(spawners, hosts, processes_per_host, inter) : NoMpi();
}

EXPORT int deep_booster_free(void** inter) {
  const struct msa_backend* b = Backend();
  return b != NULL ? b->booster_free(inter) : NoMpi();
}

int msa_fortran_attribute(const int* win, int key, intptr_t* value, int* flag) {
  const struct msa_backend* b = Backend();
  return b != NULL && b->win_attribute_of(win, key, value, flag);
}

// ------------------------------------------------------------------------------- how far a failed spawn came

// Initial-exec: this library is there from the process's start, and the MPI's threads pay no lookup.
static _Thread_local unsigned connects;

static unsigned Connects(void) { return connects; }

// PMIx_Connect is the first thing that Open MPI does after all parents know of the children.
EXPORT int PMIx_Connect(const void* procs, size_t nprocs, const void* info, size_t ninfo) {
  typedef int (*function)(const void*, size_t, const void*, size_t);
  static _Atomic(function) real;
  function call = atomic_load_explicit(&real, memory_order_acquire);
  if (call == NULL) {
    void* pmix = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD);
    *(void**)&call = dlsym(pmix != NULL ? pmix : RTLD_NEXT, "PMIx_Connect");
    if (call == NULL) return -1;  // PMIX_ERROR
    atomic_store_explicit(&real, call, memory_order_release);
  }
  ++connects;
  return call(procs, nprocs, info, ninfo);
}
