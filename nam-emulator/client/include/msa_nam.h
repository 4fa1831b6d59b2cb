#pragma once
/* libmsanam: regions of network attached memory. C11 and C++; link with -lmsanam (pkg-config msanam).
 *
 * A region is memory that outlives processes: segments of bytes, a name, an owner, rights. It is reached
 * through a handle. Where region and process are on one host and belong to one user (or he has the right
 * `map`), the memory is mapped and a put is a memcpy; else libfabric carries it.
 * MSA_NAM_TRANSPORT=auto|local|fabric chooses: local and fabric fail where they cannot be had.
 *
 * Where it works: in tasks of msa jobs, and in any process on the host of a NAM node of a system that it
 * finds by MSA_DIR, else in the default directory.
 *
 * Results: 0, or an enum msa_nam_error; msa_nam_error_text() tells more, in this thread, until its next call.
 * Units: bytes, milliseconds. Offsets count from the segment's first byte; one that is not in it, or a length
 * that leaves it, is MSA_NAM_ERR_RANGE, and nothing was touched. Threads: all calls may be made by any
 * thread; a handle is closed when no other thread uses it. Locks belong to the process, not to the thread.
 * fork: a child must not use its parent's handles; it opens its own.
 * Deadlines: each call returns by the handle's deadline (msa_nam_set_timeout; MSA_NAM_TIMEOUT in seconds,
 * else 30 s) with MSA_NAM_ERR_TIMEOUT or MSA_NAM_ERR_UNAVAILABLE. Restarts: when namd was restarted, handles
 * find their region again by its generation. Puts and gets are repeated until they are done; an atomic of
 * which it is not known whether it was done is MSA_NAM_ERR_UNKNOWN, never done twice. Locks survive a restart
 * of namd. A region that was resized, restored or removed meanwhile is MSA_NAM_ERR_STALE: open it again.
 * Atomicity: put and get are not atomic; accumulate, fetch_op and compare_swap are atomic for each element
 * against all others of the same type, whichever transport each takes, of all processes and jobs. Order: a
 * put is visible to others when it has returned, or, if non-blocking, when its request is complete or
 * flushed. Mapped memory: who holds a region mapped for writing can truncate its file; the next access of
 * anybody is SIGBUS then, which this library does not catch. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define MSA_NAM_VERSION 1

enum msa_nam_error {
  MSA_NAM_OK = 0,
  MSA_NAM_ERR_ARG = 1,         /* wrong whatever the state: a null pointer, a bad name, mode or type */
  MSA_NAM_ERR_NOT_FOUND = 2,   /* no such region or node */
  MSA_NAM_ERR_DENIED = 3,      /* another user's, or the lease lacks the right */
  MSA_NAM_ERR_RANGE = 4,       /* outside the segment */
  MSA_NAM_ERR_NO_SPACE = 5,    /* quota or memory; the text has the numbers */
  MSA_NAM_ERR_EXISTS = 6,      /* the name is taken */
  MSA_NAM_ERR_BUSY = 7,        /* a lock is held by another; a region to be removed is in use */
  MSA_NAM_ERR_TIMEOUT = 8,     /* the deadline has passed */
  MSA_NAM_ERR_UNAVAILABLE = 9, /* no namd, no controller, no system; may be tried again */
  MSA_NAM_ERR_STALE = 10,      /* the region has changed or the lease has ended: open it again */
  MSA_NAM_ERR_UNKNOWN = 11,    /* an atomic that may have been done */
  MSA_NAM_ERR_LOST = 12,       /* the region's memory is damaged */
  MSA_NAM_ERR_INTERNAL = 13
};

/* "MSA_NAM_ERR_RANGE". Never NULL. */
const char* msa_nam_error_name(int error);
/* Of this thread's last failed call; "" if there was none. Valid until its next call. */
const char* msa_nam_error_text(void);

/* ---- regions */

typedef struct msa_nam_region* msa_nam_region_t;

enum { MSA_NAM_READ = 1, MSA_NAM_WRITE = 2, MSA_NAM_MAP = 4 };
enum msa_nam_lifetime {
  MSA_NAM_LEASE = 0 /* ends with the job, outside a job with the handle */,
  MSA_NAM_PERSISTENT = 1
};
enum msa_nam_placement { MSA_NAM_PACK = 0, MSA_NAM_SPREAD = 1 };

struct msa_nam_segment {
  uint64_t bytes;
  uint32_t disp_unit; /* MPI's displacement unit; 0 is taken as 1 */
  uint32_t reserved;
};

/* All zero is valid but for the segments. */
struct msa_nam_create_options {
  const char* name; /* [A-Za-z0-9][A-Za-z0-9._-]{0,126}, unique in the system; NULL: one is found */
  const struct msa_nam_segment* segments;
  uint32_t segment_count;
  uint32_t mode; /* rw bits as of a file, 0: 0600 */
  enum msa_nam_lifetime lifetime;
  enum msa_nam_placement placement;
};

/* Creates, zeroed, and opens. */
int msa_nam_create(const struct msa_nam_create_options* options, msa_nam_region_t* region);
/* `name`: a name, a port name ("msa-nam:..."), or a uuid. `rights`: READ or READ|WRITE. */
int msa_nam_open(const char* name, int rights, msa_nam_region_t* region);
/* The handle's lease, to be given to other processes of this user, which use it without asking the
 * controller: as long as this handle is open. *lease lives as long as the handle. Keep it as a password is
 * kept. */
int msa_nam_get_lease(msa_nam_region_t region, const void** lease, size_t* bytes);
int msa_nam_attach(const void* lease, size_t bytes, msa_nam_region_t* region);
/* Completes what is outstanding, frees the locks held, and detaches. The handle is gone whatever the result.
 */
int msa_nam_close(msa_nam_region_t region);
/* Removes a region: MSA_NAM_ERR_BUSY while others have it open, unless `force`. */
int msa_nam_delete(const char* name, int force);
int msa_nam_set_lifetime(msa_nam_region_t region, enum msa_nam_lifetime lifetime);
/* For all later calls with it; 0: try once, do not wait. */
int msa_nam_set_timeout(msa_nam_region_t region, uint32_t milliseconds);

enum msa_nam_transport { MSA_NAM_LOCAL = 1, MSA_NAM_FABRIC = 2 };

struct msa_nam_stat {
  char name[128];
  char port[48]; /* what MPI programs pass on */
  uint64_t bytes;
  uint32_t segment_count;
  uint32_t generation;
  int rights; /* of this handle */
  enum msa_nam_lifetime lifetime;
};
int msa_nam_stat(msa_nam_region_t region, struct msa_nam_stat* stat);

struct msa_nam_segment_stat {
  uint64_t bytes;
  uint32_t disp_unit;
  enum msa_nam_transport transport;
  void* address; /* of its memory if it is mapped, else NULL */
};
int msa_nam_segment_stat(msa_nam_region_t region, uint32_t segment, struct msa_nam_segment_stat* stat);

/* ---- put and get */

int msa_nam_put(msa_nam_region_t region, uint32_t segment, uint64_t offset, const void* from, uint64_t bytes);
int msa_nam_get(msa_nam_region_t region, uint32_t segment, uint64_t offset, void* to, uint64_t bytes);

/* `count` blocks of `block` bytes, `stride` and `local_stride` apart (negative ones too). */
struct msa_nam_strided {
  uint64_t offset;
  int64_t stride;
  int64_t local_stride;
  uint64_t block;
  uint64_t count;
};
int msa_nam_put_strided(msa_nam_region_t region, uint32_t segment, const struct msa_nam_strided* shape,
                        const void* from);
int msa_nam_get_strided(msa_nam_region_t region, uint32_t segment, const struct msa_nam_strided* shape,
                        void* to);

struct msa_nam_piece {
  uint64_t offset;
  void* local; /* not written by a put */
  uint64_t bytes;
};
int msa_nam_putv(msa_nam_region_t region, uint32_t segment, const struct msa_nam_piece* pieces, size_t count);
int msa_nam_getv(msa_nam_region_t region, uint32_t segment, const struct msa_nam_piece* pieces, size_t count);

/* ---- non-blocking: local memory stays untouched until the request is complete; `pieces` may go at once.
 * What is not complete when the timeout of its begin has passed is given up: MSA_NAM_ERR_TIMEOUT, the request
 * is complete, and local memory is not touched any more. How much of a put has arrived is not known then. */

typedef struct msa_nam_request* msa_nam_request_t;

int msa_nam_iputv(msa_nam_region_t region, uint32_t segment, const struct msa_nam_piece* pieces, size_t count,
                  msa_nam_request_t* request);
int msa_nam_igetv(msa_nam_region_t region, uint32_t segment, const struct msa_nam_piece* pieces, size_t count,
                  msa_nam_request_t* request);
/* *done is 1 when it is complete; then the result is the transfer's, and the request is gone. */
int msa_nam_test(msa_nam_request_t request, int* done);
/* Until complete or given up, after this call's timeout at the latest. The request is gone. */
int msa_nam_wait(msa_nam_request_t request);
/* Completes all that this process has outstanding at a segment, ~0u: at all; one timeout for all of it.
 * Requests stay to be tested. */
int msa_nam_flush(msa_nam_region_t region, uint32_t segment);

/* ---- atomics: op and type as in the enums; see "Atomicity" above */

enum msa_nam_op {
  MSA_NAM_REPLACE = 0,
  MSA_NAM_NO_OP,
  MSA_NAM_SUM,
  MSA_NAM_PROD,
  MSA_NAM_MIN,
  MSA_NAM_MAX,
  MSA_NAM_LAND,
  MSA_NAM_LOR,
  MSA_NAM_LXOR,
  MSA_NAM_BAND,
  MSA_NAM_BOR,
  MSA_NAM_BXOR,
  MSA_NAM_MINLOC,
  MSA_NAM_MAXLOC
};
enum msa_nam_type {
  MSA_NAM_INT8 = 0,
  MSA_NAM_UINT8,
  MSA_NAM_INT16,
  MSA_NAM_UINT16,
  MSA_NAM_INT32,
  MSA_NAM_UINT32,
  MSA_NAM_INT64,
  MSA_NAM_UINT64,
  MSA_NAM_FLOAT,
  MSA_NAM_DOUBLE,
  MSA_NAM_LONG_DOUBLE,
  MSA_NAM_FLOAT_COMPLEX,
  MSA_NAM_DOUBLE_COMPLEX,
  MSA_NAM_LONG_DOUBLE_COMPLEX,
  MSA_NAM_FLOAT_INT,
  MSA_NAM_DOUBLE_INT,
  MSA_NAM_LONG_INT,
  MSA_NAM_TWO_INT,
  MSA_NAM_SHORT_INT,
  MSA_NAM_LONG_DOUBLE_INT,
  MSA_NAM_BYTE
};
/* 0: no such type. */
size_t msa_nam_type_bytes(enum msa_nam_type type);

int msa_nam_accumulate(msa_nam_region_t region, uint32_t segment, uint64_t offset, enum msa_nam_op op,
                       enum msa_nam_type type, const void* operand, size_t count);
/* *result (count elements) is what was there before each update. operand may be NULL for MSA_NAM_NO_OP. */
int msa_nam_get_accumulate(msa_nam_region_t region, uint32_t segment, uint64_t offset, enum msa_nam_op op,
                           enum msa_nam_type type, const void* operand, void* result, size_t count);
int msa_nam_compare_swap(msa_nam_region_t region, uint32_t segment, uint64_t offset, enum msa_nam_type type,
                         const void* compare, const void* operand, void* result);
int msa_nam_fetch_add(msa_nam_region_t region, uint32_t segment, uint64_t offset, int64_t operand,
                      int64_t* result);
int msa_nam_swap(msa_nam_region_t region, uint32_t segment, uint64_t offset, int64_t operand,
                 int64_t* result);

/* ---- locks of a segment, across processes and jobs; freed within 1 s when their process is gone */

enum msa_nam_lock_mode { MSA_NAM_SHARED = 1, MSA_NAM_EXCLUSIVE = 2 };
/* Waits until the deadline: MSA_NAM_ERR_TIMEOUT names the holder. A process holds one lock of a segment at a
 * time: a second one is MSA_NAM_ERR_ARG. While another process holds it exclusively, atomics wait for it too.
 * Who waits for an exclusive lock comes after those who share it when he asks: new ones wait for him. */
int msa_nam_lock(msa_nam_region_t region, uint32_t segment, enum msa_nam_lock_mode mode);
/* Does not wait for a holder, and keeps nobody out: MSA_NAM_ERR_BUSY. That is said too, after a second, of a
 * namd that does not answer, as it is being restarted: try again. MSA_NAM_ERR_UNAVAILABLE: tries have found
 * none for the handle's timeout. */
int msa_nam_try_lock(msa_nam_region_t region, uint32_t segment, enum msa_nam_lock_mode mode);
/* Completes what is outstanding at the segment, then frees. */
int msa_nam_unlock(msa_nam_region_t region, uint32_t segment);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
