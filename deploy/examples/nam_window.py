#!/usr/bin/python3
"""Windows in network attached memory from mpi4py (Debian's, on Open MPI).

  msactl run -n 2 --nam 1M /usr/bin/python3 nam_window.py               prints the port name
  msactl run -n 3 /usr/bin/python3 nam_window.py msa-nam:... [delete]   reads, in any number of processes
"""
import array
import ctypes
import sys

from mpi4py import MPI

WIN_SIZES = -70001
WIN_DISP_UNITS = -70002


def create_dynamic(region):
    """The window onto a region that Connect() gave: Win.Create_dynamic takes no Intercomm."""
    comm = MPI.Intracomm()
    ctypes.memmove(MPI._addressof(comm), MPI._addressof(region), MPI._sizeof(MPI.Comm))
    return MPI.Win.Create_dynamic(MPI.INFO_NULL, comm)


def segment_sizes(win, segments):
    """Bytes of each target (MPIX_WIN_SIZES)."""
    return list((ctypes.c_ssize_t * segments).from_address(win.Get_attr(WIN_SIZES)))


def create():
    info = MPI.Info.Create()
    info.Set("deep_mem_kind", "deep_nam_persistent")
    win = MPI.Win.Allocate(800, 8, info, MPI.COMM_WORLD)
    rank = MPI.COMM_WORLD.rank
    win.Fence()
    win.Put(array.array("d", [rank] * 100), rank)
    win.Fence()
    if rank == 0:
        print("port", win.Get_info().Get("deep_win_port_name"), flush=True)
    win.Free()


def attach(port, delete):
    region = MPI.COMM_WORLD.Connect(port)
    segments = region.Get_remote_size()
    win = create_dynamic(region)
    sizes = segment_sizes(win, segments)
    values = array.array("d", [0] * 100)
    total = 0
    for target in range(segments):
        win.Lock(target, MPI.LOCK_SHARED)
        win.Get(values, target)
        win.Unlock(target)
        total += sum(values)
    if MPI.COMM_WORLD.rank == 0:
        print(f"python: {segments} segments of {sizes}, sum {total:g}", flush=True)
    if delete:
        info = MPI.Info.Create()
        info.Set("deep_mem_kind", "deep_nam")
        win.Set_info(info)
    win.Free()
    region.Disconnect()


if len(sys.argv) > 1:
    attach(sys.argv[1], "delete" in sys.argv[2:])
else:
    create()
