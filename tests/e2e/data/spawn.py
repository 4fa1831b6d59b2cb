"""Dynamic processes by mpi4py: spawn from one rank and from all, talk over the intercommunicator, merge, disconnect.

Rank 0 of the parents prints what came of it, one line a fact; the lines are the same wherever and by whom it is started.
"""
import sys

from mpi4py import MPI

CHILDREN = 2


def parent():
    world = MPI.COMM_WORLD
    # From one rank alone; the others are not asked.
    if world.rank == 0:
        alone = MPI.COMM_SELF.Spawn(sys.executable, args=[__file__, "alone"], maxprocs=CHILDREN)
        alone.bcast({"word": "hello", "numbers": list(range(1000))}, root=MPI.ROOT)
        print(f"alone: {alone.remote_size} children, sum {alone.reduce(None, op=MPI.SUM, root=MPI.ROOT)}")
        alone.Disconnect()
    world.Barrier()

    # From all ranks together.
    together = world.Spawn(sys.executable, args=[__file__, "together"], maxprocs=CHILDREN, root=0)
    together.bcast((1, "two", 3.5), root=MPI.ROOT if world.rank == 0 else MPI.PROC_NULL)
    words = together.gather(None, root=MPI.ROOT if world.rank == 0 else MPI.PROC_NULL)
    merged = together.Merge(high=False)
    ranks = merged.allgather(("parent", world.rank))
    total = merged.allreduce(merged.rank + 1, op=MPI.SUM)
    if world.rank == 0:
        print(f"together: {together.remote_size} children said {words}")
        print(f"merged: size {merged.size}, sum {total}, {ranks}")
    merged.Free()
    together.Disconnect()
    sizes = world.allgather(world.size)
    if world.rank == 0:
        print(f"world: {sizes}")


def child(which):
    parents = MPI.Comm.Get_parent()
    given = parents.bcast(None, root=0)
    if which == "alone":
        parents.reduce(sum(given["numbers"]) + len(given["word"]) + MPI.COMM_WORLD.rank, op=MPI.SUM, root=0)
    else:
        parents.gather(f"{MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size} got {given}", root=0)
        merged = parents.Merge(high=True)
        merged.allgather(("child", MPI.COMM_WORLD.rank))
        merged.allreduce(merged.rank + 1, op=MPI.SUM)
        merged.Free()
    parents.Disconnect()


if len(sys.argv) > 1:
    child(sys.argv[1])
else:
    parent()
