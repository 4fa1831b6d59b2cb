#pragma once
// How a task ends when its job daemon ends its world.

// From now on an order to leave (msa/base/leave_order.h) ends this process with the code that it carries, at
// once, as MPI_Abort would. Only where the program handles SIGTERM in no way of its own, and in a task of
// msa; any other SIGTERM does what it did before.
void msa_leave_on_order(void);
