/* pmix_client ACTION: what a plain PMIx program does. Exits with 0 if all went as it should, else says what
 * did not. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>

static pmix_proc_t self;
static uint32_t size;

#define CHECK(call, expected)                                                                               \
  do {                                                                                                      \
    pmix_status_t status_ = (call);                                                                         \
    if (status_ != (expected)) {                                                                            \
      fprintf(stderr, "rank %u line %d: %s: %s\n", self.rank, __LINE__, #call, PMIx_Error_string(status_)); \
      exit(1);                                                                                              \
    }                                                                                                       \
  } while (0)

static pmix_proc_t everybody(void) {
  pmix_proc_t all;
  PMIX_LOAD_PROCID(&all, self.nspace, PMIX_RANK_WILDCARD);
  return all;
}

static void put(const char* key, const char* text) {
  pmix_value_t value;
  PMIX_VALUE_LOAD(&value, text, PMIX_STRING);
  CHECK(PMIx_Put(PMIX_GLOBAL, key, &value), PMIX_SUCCESS);
  PMIX_VALUE_DESTRUCT(&value);
}

static void expect(pmix_rank_t rank, const char* key, const char* text) {
  pmix_proc_t peer;
  pmix_value_t* value = NULL;
  PMIX_LOAD_PROCID(&peer, self.nspace, rank);
  CHECK(PMIx_Get(&peer, key, NULL, 0, &value), PMIX_SUCCESS);
  if (value->type != PMIX_STRING || strcmp(value->data.string, text) != 0) {
    fprintf(stderr, "rank %u: key %s of rank %u is not '%s'\n", self.rank, key, rank, text);
    exit(1);
  }
  PMIX_VALUE_RELEASE(value);
}

static uint32_t number(pmix_rank_t rank, const char* key) {
  pmix_proc_t peer;
  pmix_value_t* value = NULL;
  uint32_t result = 0;
  pmix_status_t status;
  PMIX_LOAD_PROCID(&peer, self.nspace, rank);
  CHECK(PMIx_Get(&peer, key, NULL, 0, &value), PMIX_SUCCESS);
  PMIX_VALUE_GET_NUMBER(status, value, result, uint32_t);
  if (status != PMIX_SUCCESS) exit(1);
  PMIX_VALUE_RELEASE(value);
  return result;
}

static void fence(bool collect) {
  pmix_proc_t all = everybody();
  pmix_info_t info;
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  CHECK(PMIx_Fence(&all, 1, &info, 1), PMIX_SUCCESS);
}

/* Every rank's blob reaches every rank: in the fence (collect), or by direct modex at the first get. */
static void exchange(bool collect) {
  char key[32], text[64];
  for (int round = 0; round < 5; ++round) {
    snprintf(key, sizeof key, "round%d", round);
    snprintf(text, sizeof text, "of rank %u in round %d", self.rank, round);
    put(key, text);
    CHECK(PMIx_Commit(), PMIX_SUCCESS);
    fence(collect);
    for (pmix_rank_t rank = 0; rank < size; ++rank) {
      snprintf(text, sizeof text, "of rank %u in round %d", rank, round);
      expect(rank, key, text);
    }
    fence(false);
  }
}

static pmix_status_t lookup(const char* key, bool wait, int timeout, char* text) {
  pmix_pdata_t data;
  pmix_info_t infos[2];
  size_t count = 0;
  int all = 0;
  if (wait) {
    PMIX_INFO_LOAD(&infos[count], PMIX_WAIT, &all, PMIX_INT);
    ++count;
  }
  if (timeout > 0) {
    PMIX_INFO_LOAD(&infos[count], PMIX_TIMEOUT, &timeout, PMIX_INT);
    ++count;
  }
  PMIX_PDATA_CONSTRUCT(&data);
  PMIX_LOAD_KEY(data.key, key);
  pmix_status_t status = PMIx_Lookup(&data, 1, count > 0 ? infos : NULL, count);
  if (status == PMIX_SUCCESS && data.value.type == PMIX_STRING) strcpy(text, data.value.data.string);
  PMIX_PDATA_DESTRUCT(&data);
  return status;
}

static void publish(const char* key, const char* text, pmix_persistence_t persistence,
                    pmix_status_t expected) {
  pmix_info_t infos[2];
  PMIX_INFO_LOAD(&infos[0], key, text, PMIX_STRING);
  PMIX_INFO_LOAD(&infos[1], PMIX_PERSISTENCE, &persistence, PMIX_PERSIST);
  CHECK(PMIx_Publish(infos, 2), expected);
}

static void store(void) {
  char text[64] = "";
  char* keys[] = {"name", NULL};
  if (self.rank == 0) {
    publish("name", "of rank 0", PMIX_PERSIST_SESSION, PMIX_SUCCESS);
    publish("name", "twice", PMIX_PERSIST_SESSION, PMIX_ERR_DUPLICATE_KEY);
    publish("once", "read once", PMIX_PERSIST_FIRST_READ, PMIX_SUCCESS);
  }
  CHECK(lookup("name", true, 0, text), PMIX_SUCCESS);
  if (strcmp(text, "of rank 0") != 0) exit(1);
  fence(false);
  if (self.rank == size - 1) {
    CHECK(lookup("once", false, 0, text), PMIX_SUCCESS);
    CHECK(lookup("once", false, 0, text), PMIX_ERR_NOT_FOUND);
    CHECK(lookup("never", true, 1, text), PMIX_ERR_TIMEOUT);
  }
  fence(false);
  if (self.rank == 0) CHECK(PMIx_Unpublish(keys, NULL, 0), PMIX_SUCCESS);
  fence(false);
  CHECK(lookup("name", false, 0, text), PMIX_ERR_NOT_FOUND);
}

static void connect_all(void) {
  pmix_proc_t all = everybody();
  CHECK(PMIx_Connect(&all, 1, NULL, 0), PMIX_SUCCESS);
  CHECK(PMIx_Disconnect(&all, 1, NULL, 0), PMIX_SUCCESS);
}

static void late_fence(void) {
  pmix_proc_t all = everybody();
  pmix_info_t info;
  int seconds = 1;
  char text[64];
  PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
  if (self.rank == 0) {
    CHECK(PMIx_Fence(&all, 1, &info, 1), PMIX_ERR_TIMEOUT);
    publish("go", "on", PMIX_PERSIST_SESSION, PMIX_SUCCESS);
  } else {
    CHECK(lookup("go", true, 0, text), PMIX_SUCCESS);
    CHECK(PMIx_Fence(&all, 1, NULL, 0), PMIX_ERR_TIMEOUT);
  }
  fence(false);
}

static void spawn(const char* program) {
  pmix_app_t app;
  pmix_nspace_t child;
  char text[64];
  PMIX_APP_CONSTRUCT(&app);
  app.cmd = strdup(program);
  app.argv = calloc(2, sizeof(char*));
  app.argv[0] = strdup(program);
  app.maxprocs = 2;
  CHECK(PMIx_Spawn(NULL, 0, &app, 1, child), PMIX_SUCCESS);
  PMIX_APP_DESTRUCT(&app);
  CHECK(lookup("child", true, 0, text), PMIX_SUCCESS);
  printf("spawned %s, it says: %s\n", child, text);
}

static void query(void) {
  pmix_query_t question;
  pmix_info_t* answers = NULL;
  size_t count = 0;
  PMIX_QUERY_CONSTRUCT(&question);
  question.keys = calloc(2, sizeof(char*));
  question.keys[0] = strdup(PMIX_QUERY_NAMESPACES);
  CHECK(PMIx_Query_info(&question, 1, &answers, &count), PMIX_SUCCESS);
  if (count != 1 || strstr(answers[0].value.data.string, self.nspace) == NULL) exit(1);
  PMIX_QUERY_DESTRUCT(&question);
  PMIX_INFO_FREE(answers, count);
}

static void job_data(void) {
  pmix_rank_t rank;
  if (number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE) != size) exit(2);
  if (number(self.rank, PMIX_APPNUM) != 0) exit(3);
  for (rank = 0; rank < size; ++rank) {
    pmix_proc_t peer;
    pmix_value_t* value = NULL;
    PMIX_LOAD_PROCID(&peer, self.nspace, rank);
    CHECK(PMIx_Get(&peer, PMIX_HOSTNAME, NULL, 0, &value), PMIX_SUCCESS);
    if (self.rank == 0)
      printf("rank %u on %s local %u node %u\n", rank, value->data.string, number(rank, PMIX_LOCAL_RANK),
             number(rank, PMIX_NODE_RANK));
    PMIX_VALUE_RELEASE(value);
  }
}

static volatile int told;
static void on_event(size_t id, pmix_status_t status, const pmix_proc_t* source, pmix_info_t infos[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void* cbdata) {
  (void)id, (void)source, (void)infos, (void)ninfo, (void)results, (void)nresults;
  if (done != NULL) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
  if (status == PMIX_ERR_JOB_ABORTED) told = 1;
}

static void event(void) {
  pmix_status_t code = PMIX_ERR_JOB_ABORTED;
  pmix_status_t handler = PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL);
  if (handler < 0) exit(4);
  publish("listening", "yes", PMIX_PERSIST_SESSION, PMIX_SUCCESS);
  while (!told) usleep(1000);
}

// The server has all that this process has sent, once it has answered.
static void known_here(void) {
  pmix_data_range_t range = PMIX_RANGE_NAMESPACE;
  pmix_pdata_t nothing;
  pmix_info_t info;
  PMIX_PDATA_CONSTRUCT(&nothing);
  PMIX_LOAD_KEY(nothing.key, "nothing");
  PMIX_INFO_LOAD(&info, PMIX_RANGE, &range, PMIX_DATA_RANGE);
  CHECK(PMIx_Lookup(&nothing, 1, &info, 1), PMIX_ERR_NOT_FOUND);
}

static void gathered(pmix_status_t status, void* data) { (void)status, (void)data; }

int main(int argc, char** argv) {
  const char* action = argc > 1 ? argv[1] : "child";
  // A pipe of the test may be gone before a rank that is being ended: that is not its death.
  signal(SIGPIPE, SIG_IGN);
  CHECK(PMIx_Init(&self, NULL, 0), PMIX_SUCCESS);
  size = number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
  if (strcmp(action, "fence") == 0) exchange(true);
  if (strcmp(action, "modex") == 0) exchange(false);
  if (strcmp(action, "store") == 0) store();
  if (strcmp(action, "connect") == 0) connect_all();
  if (strcmp(action, "timeout") == 0) late_fence();
  if (strcmp(action, "query") == 0) query();
  if (strcmp(action, "job") == 0) job_data();
  if (strcmp(action, "spawn") == 0 && self.rank == 0) spawn(argv[0]);
  if (strcmp(action, "child") == 0 && self.rank == 0)
    publish("child", "hello", PMIX_PERSIST_SESSION, PMIX_SUCCESS);
  if (strcmp(action, "event") == 0) event();
  if (strcmp(action, "dropped") == 0) publish("dropped", "x", PMIX_PERSIST_SESSION, PMIX_ERROR);
  if (strcmp(action, "abort") == 0) {
    if (self.rank == size - 1) PMIx_Abort(9, "no reason", NULL, 0);
    pause();
  }
  if (strcmp(action, "killed") == 0) {
    pmix_proc_t all = everybody();
    if (self.rank == size - 1) raise(SIGKILL);
    PMIx_Fence(&all, 1, NULL, 0);
    pause();
  }
  // gather N: every Nth rank stays out of the fence in which the others wait.
  if (strcmp(action, "gather") == 0) {
    const uint32_t n = argc > 2 ? (uint32_t)atoi(argv[2]) : size;
    pmix_proc_t all = everybody();
    if (self.rank % n != n - 1) CHECK(PMIx_Fence_nb(&all, 1, NULL, 0, gathered, NULL), PMIX_SUCCESS);
    known_here();
    printf("up %d of %u\n", (int)getpid(), size);
    fflush(stdout);
    for (;;) pause();
  }
  CHECK(PMIx_Finalize(NULL, 0), PMIX_SUCCESS);
  return 0;
}
