! Spawns 3 with soft=0:2 through the old Fortran binding; rank 0 prints "fortran: S of 3, remote R, text T".
program mpi_spawn_fortran
#ifndef WITH_MPIF_H
  use mpi
#endif
  implicit none
#ifdef WITH_MPIF_H
  include 'mpif.h'
#endif
  integer :: parent, inter, info, rank, remote, length, ierror, status, codes(3)
  character(len=1024) :: program_name
  character(len=MPI_MAX_ERROR_STRING) :: text
  call MPI_Init(ierror)
  call MPI_Comm_get_parent(parent, ierror)
  if (parent == MPI_COMM_NULL) then
    call get_command_argument(0, program_name)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
    call MPI_Info_create(info, ierror)
    call MPI_Info_set(info, 'soft', '0:2', ierror)
    call MPI_Info_set(info, 'arch', 'booster', ierror)
    remote = 0
    codes = -7
    call MPI_Comm_spawn(trim(program_name), MPI_ARGV_NULL, 3, info, 0, MPI_COMM_WORLD, inter, codes, status)
    text = '-'
    length = 1
    if (status == MPI_SUCCESS) then
      call MPI_Comm_remote_size(inter, remote, ierror)
      call MPI_Comm_disconnect(inter, ierror)
    else
      call MPI_Error_string(status, text, length, ierror)
    end if
    if (rank == 0) print '(a,i0,a,i0,2a)', 'fortran: ', count(codes == MPI_SUCCESS), ' of 3, remote ', remote, &
      ', text ', text(1:length)
  else
    call MPI_Comm_disconnect(parent, ierror)
  end if
  call MPI_Finalize(ierror)
end program mpi_spawn_fortran
