#include "window_table_calls.h"

#include "window_table.h"

void* Find(uintptr_t key) { return msa_window_find(key); }
int Insert(uintptr_t key, void* window) { return msa_window_table_insert(key, window); }
void Remove(uintptr_t key) { msa_window_table_remove(key); }
size_t Begin(uintptr_t key) { return (key * (uintptr_t)0x9e3779b97f4a7c15u) >> (64 - kMsaFirstLevelBits); }
size_t UsedSlots(void) {
  size_t used = 0;
  for (size_t at = 0; at < (size_t)1 << kMsaFirstLevelBits; ++at)
    used += atomic_load(&msa_window_slots[at].key) != 0;
  return used;
}
size_t Levels(void) {
  size_t levels = 0;
  for (struct msa_window_level* level = &msa_window_first; level != NULL; level = atomic_load(&level->next))
    ++levels;
  return levels;
}
