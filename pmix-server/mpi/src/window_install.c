// What the first NAM window changes in the process.
#include <pthread.h>

#include "window.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int installed;

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
  const int result = msa_window_table_insert((uintptr_t)window->win, window);
  pthread_mutex_lock(&mutex);
  if (result == 0 && !installed) {
    Install();
    installed = 1;
  }
  pthread_mutex_unlock(&mutex);
  return result;
}

void msa_window_remove(struct msa_window* window) { msa_window_table_remove((uintptr_t)window->win); }
