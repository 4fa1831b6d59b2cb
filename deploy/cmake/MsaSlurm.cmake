# Slurm's headers and library: MSA_SLURM_INCLUDE, MSA_LIBSLURM.
find_path(MSA_SLURM_INCLUDE slurm/spank.h)
find_library(MSA_LIBSLURM slurm)
if(NOT MSA_SLURM_INCLUDE OR NOT MSA_LIBSLURM)
  message(FATAL_ERROR "slurm/spank.h or libslurm.so was not found; install Slurm's development files, of the release that your cluster runs "
    "(Debian: apt-get install libslurm-dev), or name them by -DMSA_SLURM_INCLUDE=DIR and -DMSA_LIBSLURM=FILE")
endif()
