"""spawn_soft.c in Python, with mpi4py (Debian: python3-mpi4py).

  msactl run -m cluster -n 2 python3 spawn_soft.py
"""
import os
import sys

from mpi4py import MPI

MOST = 8


def run_parents():
    world = MPI.COMM_WORLD
    info = MPI.Info.Create()
    info["arch"] = "booster"  # a module's name or kind
    info["soft"] = "0:8:2"  # 0, 2, 4, 6 or 8
    info["msa_wait"] = "30"  # seconds
    try:
        inter = world.Spawn(sys.executable, args=[__file__], maxprocs=MOST, info=info)
    except MPI.Exception as error:
        if world.rank == 0:
            print("no children:", error.Get_error_string())
        return
    total = inter.allreduce(0) if inter.Get_remote_size() > 0 else 0
    if world.rank == 0:
        print(f"{inter.Get_remote_size()} of {MOST} children started, their ranks add up to {total}")
    inter.Disconnect()


def run_child(parents):
    print(f"child {MPI.COMM_WORLD.rank} runs on module {os.environ.get('MSA_MODULE', '?')}", flush=True)
    parents.allreduce(MPI.COMM_WORLD.rank)
    parents.Disconnect()


parent = MPI.Comm.Get_parent()
if parent == MPI.COMM_NULL:
    run_parents()
else:
    run_child(parent)
