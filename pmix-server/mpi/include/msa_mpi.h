#pragma once
/* What msa adds to MPI, for C and C++. The program's own MPI and its mpi.h come first; link with -lmsampi
 * only for the functions below (tasks of msa have the library preloaded: MPI_Comm_spawn needs no header and
 * no linking). The info keys of MPI_Comm_spawn stand in spawn.md of msa's documents. */
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Info keys of MPI_Comm_spawn and MPI_Comm_spawn_multiple beyond MPI's own arch, soft, host, wdir, path,
 * file. */
#define MSA_INFO_NODES "msa_nodes" /* how many nodes the processes spread over */
#define MSA_INFO_PPN "msa_ppn"     /* most processes a node */
#define MSA_INFO_WAIT "msa_wait"   /* how long to wait for nodes: "90" (s), "5m", "1h30m"; default "0" */
#define MSA_INFO_NAM "msa_nam"     /* "64M": network attached memory for the job, beyond what it has */
#define MSA_INFO_TIME "msa_time"   /* how long the children may run; default: as the job */

/* Windows in network attached memory (windows.md): info keys of MPI_Win_allocate, MPI_Win_set_info and
 * MPI_Comm_connect, and of what MPI_Win_get_info gives back. */
#define MSA_INFO_MEM_KIND "deep_mem_kind"           /* "deep_nam" or "deep_nam_persistent" */
#define MSA_INFO_WIN_PORT_NAME "deep_win_port_name" /* for MPI_Comm_connect of a later program */
#define MSA_INFO_WIN_CONNECT "deep_win_connect"     /* "true": the port is a window's */
#define MSA_INFO_WIN_NAME "msa_win_name"            /* the region's name, as in msactl region list */
#define MSA_INFO_NAM_PLACEMENT "msa_nam_placement"  /* "pack" (default) or "spread" over NAM nodes */

/* Attributes of NAM windows, beside MPI's own (MPI_Win_get_attr): of each target its size in bytes
 * (MPI_Aint*) and its displacement unit (int*), arrays that live as long as the window. Fortran: the array's
 * address (c_f_pointer); the numbers are these. Other windows: flag is 0. */
#define MPIX_WIN_SIZES (-70001)
#define MPIX_WIN_DISP_UNITS (-70002)

/* The offload interface of DEEP. Starts the calling program, with its arguments, in `hosts` *
 * `processes_per_host` processes on the booster: MPI_Comm_spawn with arch=booster, msa_nodes and msa_ppn.
 * The children find their parents with MPI_Comm_get_parent. Collective over `spawners`, with equal arguments;
 * rank 0 asks. Returns an MPI error code, after the error handler of `spawners`, as MPI_Comm_spawn does.
 * Thread-safe as MPI_Comm_spawn. */
int deep_booster_alloc(MPI_Comm spawners, int hosts, int processes_per_host, MPI_Comm* intercomm);

/* Parts with the children: MPI_Comm_disconnect, which they have to call on their parents' communicator as
 * well. Their nodes are free once they have ended. */
int deep_booster_free(MPI_Comm* intercomm);

#ifdef __cplusplus
}
#endif
