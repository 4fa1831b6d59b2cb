#include <pthread.h>

#include "window.h"

struct msa_window_slot msa_window_slots[kMsaWindowSlots];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int windows, installed;
enum { kGone = 1 };  // a key that is no window: searches go past it

static void Install(void) {
  struct msa_calls* calls = msa_backend_calls();
  struct msa_calls wanted = *calls;
  wanted.Win_free = &msa_win_free;
  wanted.Win_get_group = &msa_win_get_group;
  wanted.Win_get_info = &msa_win_get_info;
  wanted.Win_set_info = &msa_win_set_info;
  wanted.Win_attach = &msa_win_attach;
  msa_install_rma(&wanted);
  msa_install_counts(&wanted);
  msa_install_atomics(&wanted);
  msa_install_passive(&wanted);
  msa_install_active(&wanted);
  void** from = (void**)&wanted;
  void** to = (void**)calls;
  for (size_t i = 0; i < sizeof wanted / sizeof(void*); ++i)
    if (to[i] != from[i]) __atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
}

int msa_window_insert(struct msa_window* window) {
  const uintptr_t key = (uintptr_t)window->win;
  pthread_mutex_lock(&mutex);
  // A quarter stays free: searches end soon.
  int result = windows < kMsaWindowSlots - kMsaWindowSlots / 4 ? 0 : -1;
  for (unsigned at = msa_window_hash(key); result == 0; at = (at + 1) % kMsaWindowSlots) {
    struct msa_window_slot* slot = &msa_window_slots[at];
    const uintptr_t found = atomic_load(&slot->key);
    if (found != 0 && found != kGone) continue;
    // Slots that were once used stay so: they count until they are used again.
    windows += found == 0;
    atomic_store_explicit(&slot->window, window, memory_order_relaxed);
    atomic_store_explicit(&slot->key, key, memory_order_release);
    break;
  }
  if (result == 0 && !installed) {
    Install();
    installed = 1;
  }
  pthread_mutex_unlock(&mutex);
  return result;
}

void msa_window_remove(struct msa_window* window) {
  const uintptr_t key = (uintptr_t)window->win;
  pthread_mutex_lock(&mutex);
  for (unsigned at = msa_window_hash(key);; at = (at + 1) % kMsaWindowSlots) {
    struct msa_window_slot* slot = &msa_window_slots[at];
    const uintptr_t found = atomic_load(&slot->key);
    if (found == 0) break;
    if (found != key) continue;
    atomic_store(&slot->key, kGone);
    atomic_store(&slot->window, NULL);
    break;
  }
  pthread_mutex_unlock(&mutex);
}
