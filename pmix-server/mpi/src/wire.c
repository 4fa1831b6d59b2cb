#include "wire.h"

#include <stdlib.h>
#include <string.h>

const char* const msa_keys[kMsaKeys] = {"arch",      "soft",    "host",     "wdir",     "path",   "file",
                                        "msa_nodes", "msa_ppn", "msa_wait", "msa_time", "msa_nam"};

// --------------------------------------------------------------------------------------------- writing

void msa_buffer_free(struct msa_buffer* buffer) {
  free(buffer->data);
  memset(buffer, 0, sizeof *buffer);
}

static void Put(struct msa_buffer* out, const void* bytes, size_t size) {
  if (out->failed) return;
  if (out->capacity - out->size < size) {
    size_t capacity = out->capacity < 256 ? 256 : out->capacity;
    while (capacity - out->size < size) capacity *= 2;
    char* data = realloc(out->data, capacity);
    if (data == NULL) {
      out->failed = 1;
      return;
    }
    out->data = data;
    out->capacity = capacity;
  }
  if (size > 0) memcpy(out->data + out->size, bytes, size);
  out->size += size;
}

static void PutInt(struct msa_buffer* out, uint64_t value, size_t bytes) {
  unsigned char little[8];
  for (size_t i = 0; i < bytes; ++i) little[i] = (unsigned char)(value >> (8 * i));
  Put(out, little, bytes);
}

static void PutText(struct msa_buffer* out, const char* text) {
  const size_t size = text != NULL ? strlen(text) : 0;
  if (size > UINT32_MAX) {
    out->failed = 1;
    return;
  }
  PutInt(out, size, 4);
  Put(out, text, size);
}

// Where the frame begins; its length is filled in by End.
static size_t Begin(struct msa_buffer* out, uint16_t type, uint64_t id) {
  const size_t at = out->size;
  PutInt(out, 0, 4);
  PutInt(out, type, 2);
  PutInt(out, 0, 2);
  PutInt(out, id, 8);
  return at;
}

static void End(struct msa_buffer* out, size_t at) {
  if (out->failed) return;
  const size_t length = out->size - at - kMsaHeaderBytes;
  if (length > UINT32_MAX) {
    out->failed = 1;
    return;
  }
  for (size_t i = 0; i < 4; ++i) out->data[at + i] = (char)(unsigned char)(length >> (8 * i));
}

void msa_put_hello(struct msa_buffer* out, uint64_t id, const char* nspace, uint32_t rank) {
  const size_t at = Begin(out, kMsaHello, id);
  PutInt(out, kMsaProtocolVersion, 4);
  PutText(out, nspace);
  PutInt(out, rank, 4);
  End(out, at);
}

void msa_put_ask(struct msa_buffer* out, uint64_t id, const struct msa_command* commands, uint32_t count,
                 const char* cwd, const char* search_path) {
  const size_t at = Begin(out, kMsaSpawnAsk, id);
  PutInt(out, count, 4);
  for (uint32_t i = 0; i < count; ++i) {
    PutText(out, commands[i].program);
    PutInt(out, commands[i].maxprocs, 4);
    for (int key = 0; key < kMsaKeys; ++key) PutText(out, commands[i].values[key]);
    PutInt(out, commands[i].unknown_count, 4);
    for (uint32_t u = 0; u < commands[i].unknown_count; ++u) PutText(out, commands[i].unknown[u]);
  }
  PutText(out, cwd);
  PutText(out, search_path);
  End(out, at);
}

void msa_put_text_message(struct msa_buffer* out, uint16_t type, const char* text) {
  const size_t at = Begin(out, type, 0);
  PutText(out, text);
  End(out, at);
}

// --------------------------------------------------------------------------------------------- reading

struct reader {
  const unsigned char* at;
  size_t left;
  int ok;
};

static uint64_t GetInt(struct reader* in, size_t bytes) {
  if (!in->ok || in->left < bytes) {
    in->ok = 0;
    return 0;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= (uint64_t)in->at[i] << (8 * i);
  in->at += bytes;
  in->left -= bytes;
  return value;
}

static char* GetText(struct reader* in) {
  const size_t size = GetInt(in, 4);
  if (!in->ok || size > in->left || memchr(in->at, '\0', size) != NULL) {
    in->ok = 0;
    return NULL;
  }
  char* text = malloc(size + 1);
  if (text == NULL) {
    in->ok = 0;
    return NULL;
  }
  memcpy(text, in->at, size);
  text[size] = '\0';
  in->at += size;
  in->left -= size;
  return text;
}

// How many elements of at least `bytes` each follow; never more than the rest can hold.
static uint32_t GetCount(struct reader* in, size_t bytes) {
  const uint64_t count = GetInt(in, 4);
  if (in->ok && count <= in->left / bytes) return (uint32_t)count;
  in->ok = 0;
  return 0;
}

static char** GetTexts(struct reader* in, uint32_t* count) {
  const uint32_t announced = GetCount(in, 4);
  char** texts = announced > 0 ? calloc(announced, sizeof *texts) : NULL;
  if (texts == NULL) {
    in->ok = in->ok && announced == 0;
    return NULL;
  }
  for (*count = 0; *count < announced; ++*count) {
    texts[*count] = GetText(in);
    if (texts[*count] == NULL) break;
  }
  return texts;
}

struct msa_header msa_get_header(const unsigned char* bytes) {
  struct reader in = {bytes, kMsaHeaderBytes, 1};
  struct msa_header header;
  header.length = (uint32_t)GetInt(&in, 4);
  header.type = (uint16_t)GetInt(&in, 2);
  header.flags = (uint16_t)GetInt(&in, 2);
  header.id = GetInt(&in, 8);
  return header;
}

int msa_get_welcome(const void* payload, size_t size, struct msa_welcome* welcome) {
  struct reader in = {payload, size, 1};
  memset(welcome, 0, sizeof *welcome);
  welcome->version = kMsaProtocolVersion;
  // Fields that an older sender does not know are missing at the end.
  if (in.left > 0) welcome->version = (uint32_t)GetInt(&in, 4);
  if (in.left > 0) welcome->job = GetInt(&in, 8);
  if (in.left > 0) welcome->step = (uint32_t)GetInt(&in, 4);
  if (in.left > 0) free(GetText(&in));
  if (in.ok && in.left > 0) welcome->world_size = (uint32_t)GetInt(&in, 4);
  return in.ok ? 0 : -1;
}

static void GetCounts(struct reader* in, struct msa_verdict* v) {
  const uint32_t announced = GetCount(in, 4);
  if (announced == 0) return;
  v->counts = calloc(announced, sizeof *v->counts);
  if (v->counts == NULL) {
    in->ok = 0;
    return;
  }
  for (; v->count_count < announced; ++v->count_count) v->counts[v->count_count] = (uint32_t)GetInt(in, 4);
}

int msa_get_verdict(const void* payload, size_t size, struct msa_verdict* verdict) {
  struct reader in = {payload, size, 1};
  memset(verdict, 0, sizeof *verdict);
  if (in.left > 0) verdict->refusal = (uint8_t)GetInt(&in, 1);
  char** const texts[] = {&verdict->reason, &verdict->ticket, &verdict->nspace};
  for (int i = 0; i < 3; ++i) {
    *texts[i] = in.left > 0 ? GetText(&in) : calloc(1, 1);
    if (*texts[i] == NULL) in.ok = 0;
    if (!in.ok) return -1;
  }
  if (in.left > 0) GetCounts(&in, verdict);
  if (in.ok && in.left > 0) verdict->programs = GetTexts(&in, &verdict->program_count);
  if (in.ok && in.left > 0) verdict->wdirs = GetTexts(&in, &verdict->wdir_count);
  return in.ok ? 0 : -1;
}

static void FreeTexts(char** texts, uint32_t count) {
  for (uint32_t i = 0; texts != NULL && i < count; ++i) free(texts[i]);
  free(texts);
}

void msa_verdict_free(struct msa_verdict* v) {
  free(v->reason);
  free(v->ticket);
  free(v->nspace);
  free(v->counts);
  FreeTexts(v->programs, v->program_count);
  FreeTexts(v->wdirs, v->wdir_count);
  memset(v, 0, sizeof *v);
}
