// A coupled model: atmosphere, ocean and land, and a coupler through which each gets the mean of the others'
// boundary values. The roles are components of one job, each on the module that suits it. See
// coupled_model.sh.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCoupler, kAtmosphere, kOcean, kLand, kRoles, kSteps = 10 };
static const char* const kNames[kRoles] = {"coupler", "atmosphere", "ocean", "land"};
static const double kFirst[kRoles] = {0, 10, 4, 1};

static int RoleOf(const char* name) {
  for (int role = 0; role < kRoles; ++role)
    if (strcmp(name, kNames[role]) == 0) return role;
  fprintf(stderr, "coupled_model: no role '%s'; roles are coupler, atmosphere, ocean, land\n", name);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return -1;
}

// The coupler's root: takes each model's value, gives each the mean of the others'.
static void Couple(const int roots[kRoles]) {
  double values[kRoles], sum = 0;
  for (int role = kAtmosphere; role < kRoles; ++role) {
    MPI_Recv(&values[role], 1, MPI_DOUBLE, roots[role], 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += values[role];
  }
  for (int role = kAtmosphere; role < kRoles; ++role) {
    const double others = (sum - values[role]) / (kRoles - 2);
    MPI_Send(&others, 1, MPI_DOUBLE, roots[role], 0, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  int rank, size, mine, most;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int role = RoleOf(argc > 1 ? argv[1] : "");
  MPI_Comm model;
  MPI_Comm_split(MPI_COMM_WORLD, role, rank, &model);
  MPI_Comm_rank(model, &mine);
  MPI_Comm_size(model, &most);

  // The root of each model, as a rank of the world.
  int root[kRoles], roots[kRoles];
  for (int i = 0; i < kRoles; ++i) root[i] = i == role && mine == 0 ? rank : size;
  MPI_Allreduce(root, roots, kRoles, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  for (int i = 0; i < kRoles; ++i)
    if (roots[i] == size) {
      if (rank == 0)
        fprintf(stderr, "coupled_model: nobody is the %s; start all four by one srun\n", kNames[i]);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }

  double value = kFirst[role], others = 0;
  for (int step = 0; step < kSteps; ++step) {
    if (role == kCoupler) {
      if (mine == 0) Couple(roots);
      continue;
    }
    // What a model computes: all of its processes agree on the boundary, and move half of the way.
    double sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, model);
    const double boundary = sum / most;
    if (mine == 0)
      MPI_Sendrecv(&boundary, 1, MPI_DOUBLE, roots[kCoupler], 0, &others, 1, MPI_DOUBLE, roots[kCoupler], 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(&others, 1, MPI_DOUBLE, 0, model);
    value = (boundary + others) / 2;
  }
  const char* module = getenv("MSA_MODULE");
  if (mine == 0)
    printf("%s: %d of %d processes on module %s, boundary %.2f after %d steps\n", kNames[role], most, size,
           module != NULL ? module : "?", value, kSteps);
  MPI_Comm_free(&model);
  MPI_Finalize();
  return 0;
}
