#pragma once
// The window calls that libmsampi interposes, as calls.h lists the others. MPI_Aint is long and MPI_Count
// long long in Open MPI and in MPICH; the _c forms exist in MPICH alone.

#ifndef MSA_WIN
#define MSA_WIN void*
#define MSA_TYPE void*
#define MSA_OP void*
#define MSA_REQUEST void*
#endif

// clang-format off
#define MSA_TRANSFER(count, from)                                                                             \
  from void* origin, count origin_count, MSA_TYPE origin_type, int target, long disp, count target_count,     \
      MSA_TYPE target_type
#define MSA_TRANSFER_ARGS origin, origin_count, origin_type, target, disp, target_count, target_type
#define MSA_FETCH(count)                                                                                      \
  const void* origin, count origin_count, MSA_TYPE origin_type, void* result, count result_count,             \
      MSA_TYPE result_type, int target, long disp, count target_count, MSA_TYPE target_type, MSA_OP op
#define MSA_FETCH_ARGS                                                                                        \
  origin, origin_count, origin_type, result, result_count, result_type, target, disp, target_count,           \
      target_type, op

#define MSA_RMA_CALLS(X, c, count)                                                                            \
  X(Put##c, (MSA_TRANSFER(count, const), MSA_WIN win), (MSA_TRANSFER_ARGS, win))                              \
  X(Get##c, (MSA_TRANSFER(count, ), MSA_WIN win), (MSA_TRANSFER_ARGS, win))                                   \
  X(Accumulate##c, (MSA_TRANSFER(count, const), MSA_OP op, MSA_WIN win), (MSA_TRANSFER_ARGS, op, win))        \
  X(Get_accumulate##c, (MSA_FETCH(count), MSA_WIN win), (MSA_FETCH_ARGS, win))                                \
  X(Rput##c, (MSA_TRANSFER(count, const), MSA_WIN win, MSA_REQUEST* request),                                 \
    (MSA_TRANSFER_ARGS, win, request))                                                                        \
  X(Rget##c, (MSA_TRANSFER(count, ), MSA_WIN win, MSA_REQUEST* request), (MSA_TRANSFER_ARGS, win, request))   \
  X(Raccumulate##c, (MSA_TRANSFER(count, const), MSA_OP op, MSA_WIN win, MSA_REQUEST* request),               \
    (MSA_TRANSFER_ARGS, op, win, request))                                                                    \
  X(Rget_accumulate##c, (MSA_FETCH(count), MSA_WIN win, MSA_REQUEST* request), (MSA_FETCH_ARGS, win, request))

#define MSA_WIN_CALLS(X)                                                                                      \
  X(Comm_connect, (const char* port, MSA_INFO info, int root, MSA_COMM comm, MSA_COMM* inter),                \
    (port, info, root, comm, inter))                                                                          \
  X(Win_allocate, (long size, int unit, MSA_INFO info, MSA_COMM comm, void* base, MSA_WIN* win),              \
    (size, unit, info, comm, base, win))                                                                      \
  X(Win_allocate_c, (long size, long unit, MSA_INFO info, MSA_COMM comm, void* base, MSA_WIN* win),           \
    (size, unit, info, comm, base, win))                                                                      \
  X(Win_create_dynamic, (MSA_INFO info, MSA_COMM comm, MSA_WIN* win), (info, comm, win))                      \
  X(Win_free, (MSA_WIN* win), (win))                                                                          \
  X(Win_get_attr, (MSA_WIN win, int key, void* value, int* flag), (win, key, value, flag))                    \
  X(Win_get_group, (MSA_WIN win, MSA_GROUP* group), (win, group))                                             \
  X(Win_get_info, (MSA_WIN win, MSA_INFO* info), (win, info))                                                 \
  X(Win_set_info, (MSA_WIN win, MSA_INFO info), (win, info))                                                  \
  X(Win_attach, (MSA_WIN win, void* base, long size), (win, base, size))                                      \
  X(Win_fence, (int assertion, MSA_WIN win), (assertion, win))                                                \
  X(Win_post, (MSA_GROUP group, int assertion, MSA_WIN win), (group, assertion, win))                         \
  X(Win_start, (MSA_GROUP group, int assertion, MSA_WIN win), (group, assertion, win))                        \
  X(Win_complete, (MSA_WIN win), (win))                                                                       \
  X(Win_wait, (MSA_WIN win), (win))                                                                           \
  X(Win_test, (MSA_WIN win, int* flag), (win, flag))                                                          \
  X(Win_lock, (int type, int target, int assertion, MSA_WIN win), (type, target, assertion, win))             \
  X(Win_unlock, (int target, MSA_WIN win), (target, win))                                                     \
  X(Win_lock_all, (int assertion, MSA_WIN win), (assertion, win))                                             \
  X(Win_unlock_all, (MSA_WIN win), (win))                                                                     \
  X(Win_flush, (int target, MSA_WIN win), (target, win))                                                      \
  X(Win_flush_all, (MSA_WIN win), (win))                                                                      \
  X(Win_flush_local, (int target, MSA_WIN win), (target, win))                                                \
  X(Win_flush_local_all, (MSA_WIN win), (win))                                                                \
  X(Win_sync, (MSA_WIN win), (win))                                                                           \
  X(Fetch_and_op, (const void* origin, void* result, MSA_TYPE type, int target, long disp, MSA_OP op,         \
                   MSA_WIN win),                                                                              \
    (origin, result, type, target, disp, op, win))                                                            \
  X(Compare_and_swap, (const void* origin, const void* compare, void* result, MSA_TYPE type, int target,      \
                       long disp, MSA_WIN win),                                                               \
    (origin, compare, result, type, target, disp, win))                                                       \
  MSA_RMA_CALLS(X, , int)                                                                                     \
  MSA_RMA_CALLS(X, _c, long long)
// clang-format on
