#pragma once
// The table of windows, for C++.
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void* Find(uintptr_t key);
int Insert(uintptr_t key, void* window);
void Remove(uintptr_t key);
size_t Begin(uintptr_t key);  // the first slot of a search
size_t UsedSlots(void);       // of the first level
size_t Levels(void);

#ifdef __cplusplus
}
#endif
