#include "window_table.h"

#include <pthread.h>
#include <stdlib.h>

struct msa_window_slot msa_window_slots[1 << kMsaFirstLevelBits];
struct msa_window_level msa_window_first = {msa_window_slots, kMsaFirstLevelBits, 0, NULL};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
enum { kGone = 1 };  // a key that is no window: searches go past it

static size_t Last(const struct msa_window_level* level) { return ((size_t)1 << level->bits) - 1; }
static size_t Begin(const struct msa_window_level* level, uintptr_t key) {
  return (key * (uintptr_t)0x9e3779b97f4a7c15u) >> (64 - level->bits);
}

struct msa_window* msa_window_find_further(uintptr_t key) {
  struct msa_window* found = NULL;
  for (struct msa_window_level* level = &msa_window_first; found == NULL;) {
    level = atomic_load_explicit(&level->next, memory_order_acquire);
    if (level == NULL) break;
    found = msa_window_find_in(level->slots, level->bits, key);
  }
  return found;
}

static struct msa_window_level* Grow(struct msa_window_level* last) {
  struct msa_window_level* level = calloc(1, sizeof *level);
  if (level == NULL) return NULL;
  level->bits = last->bits + 1;
  level->slots = calloc((size_t)1 << level->bits, sizeof *level->slots);
  if (level->slots == NULL) {
    free(level);
    return NULL;
  }
  atomic_store_explicit(&last->next, level, memory_order_release);
  return level;
}

int msa_window_table_insert(uintptr_t key, struct msa_window* window) {
  struct msa_window_level* level = &msa_window_first;
  pthread_mutex_lock(&mutex);
  // A quarter of each stays free: searches end soon.
  while (level != NULL && level->used > Last(level) - Last(level) / 4) {
    struct msa_window_level* next = atomic_load(&level->next);
    level = next != NULL ? next : Grow(level);
  }
  if (level != NULL) {
    size_t at = Begin(level, key);
    uintptr_t found;
    while ((found = atomic_load(&level->slots[at].key)) != 0 && found != kGone) at = (at + 1) & Last(level);
    level->used += found == 0;
    atomic_store_explicit(&level->slots[at].window, window, memory_order_relaxed);
    atomic_store_explicit(&level->slots[at].key, key, memory_order_release);
  }
  pthread_mutex_unlock(&mutex);
  return level != NULL ? 0 : -1;
}

// Does the search of a window from `at` on go past it? Between two free slots.
static int IsPassed(const struct msa_window_level* level, size_t at) {
  const size_t last = Last(level);
  for (size_t i = (at + 1) & last;; i = (i + 1) & last) {
    const uintptr_t key = atomic_load(&level->slots[i].key);
    if (key == 0) return 0;
    if (key != kGone && ((i - Begin(level, key)) & last) >= ((i - at) & last)) return 1;
  }
}

// Slots around `at` that no search needs are free again. A lookup that is under way is of a window that
// stays, whose search does not pass them, or of one that is not there.
static void Clean(struct msa_window_level* level, size_t at) {
  const size_t last = Last(level);
  while (atomic_load(&level->slots[(at + 1) & last].key) == kGone) at = (at + 1) & last;
  for (; atomic_load(&level->slots[at].key) == kGone; at = (at - 1) & last) {
    if (IsPassed(level, at)) continue;
    atomic_store(&level->slots[at].key, 0);
    --level->used;
  }
}

void msa_window_table_remove(uintptr_t key) {
  pthread_mutex_lock(&mutex);
  for (struct msa_window_level* level = &msa_window_first; level != NULL; level = atomic_load(&level->next)) {
    for (size_t at = Begin(level, key);; at = (at + 1) & Last(level)) {
      const uintptr_t found = atomic_load(&level->slots[at].key);
      if (found == 0) break;
      if (found != key) continue;
      atomic_store(&level->slots[at].key, kGone);
      atomic_store(&level->slots[at].window, NULL);
      Clean(level, at);
      pthread_mutex_unlock(&mutex);
      return;
    }
  }
  pthread_mutex_unlock(&mutex);
}
