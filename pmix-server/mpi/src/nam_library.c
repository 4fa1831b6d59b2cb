#define _GNU_SOURCE
#include "nam_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct msa_nam_table msa_nam;
static char failure[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Beside this library, where both are installed; else where the linker looks.
static void* Open(void) {
  static const char kName[] = "libmsanam.so";
  Dl_info info;
  char path[4096];
  if (dladdr((void*)&msa_nam_load, &info) != 0 && info.dli_fname != NULL) {
    const char* slash = strrchr(info.dli_fname, '/');
    const int folder = slash != NULL ? (int)(slash - info.dli_fname) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*s%s", folder, info.dli_fname, kName) < (int)sizeof path) {
      void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
      if (handle != NULL) return handle;
    }
  }
  void* handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) snprintf(failure, sizeof failure, "%s", dlerror());
  return handle;
}

static void Load(void) {
  static const struct {
    const char* name;
    void** function;
  } kFunctions[] = {
#define ENTRY(name) {"msa_nam_" #name, (void**)&msa_nam.name},
      MSA_NAM_FUNCTIONS(ENTRY)
#undef ENTRY
  };
  void* handle = Open();
  for (size_t i = 0; handle != NULL && i < sizeof kFunctions / sizeof kFunctions[0]; ++i) {
    *kFunctions[i].function = dlsym(handle, kFunctions[i].name);
    if (*kFunctions[i].function != NULL) continue;
    snprintf(failure, sizeof failure, "libmsanam.so has no %s: it is of another version of msa",
             kFunctions[i].name);
    return;
  }
}

const char* msa_nam_load(void) {
  pthread_once(&once, &Load);
  return failure[0] != '\0' ? failure : NULL;
}
