! MPI_Comm_spawn_multiple of 2 and 1 processes through mpi_f08; rank 0 prints "f08: remote R, codes C C C".
program mpi_spawn_multiple_f08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: parent, inter
  type(MPI_Info) :: infos(2)
  character(len=256) :: commands(2)
  character(len=8) :: arguments(2, 2)
  character(len=MPI_MAX_ERROR_STRING) :: text
  integer :: rank, remote, status, length, codes(3)
  call MPI_Init()
  call MPI_Comm_get_parent(parent)
  if (parent == MPI_COMM_NULL) then
    call get_command_argument(0, commands(1))
    commands(2) = commands(1)
    arguments = ' '
    arguments(:, 1) = 'word'
    infos = MPI_INFO_NULL
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    codes = -7
    call MPI_Comm_spawn_multiple(2, commands, arguments, [2, 1], infos, 0, MPI_COMM_WORLD, inter, codes, status)
    if (status /= MPI_SUCCESS) then
      call MPI_Error_string(status, text, length)
      if (rank == 0) print '(2a)', 'f08: ', text(1:length)
    else
      call MPI_Comm_remote_size(inter, remote)
      if (rank == 0) print '(a,i0,a,3(1x,i0))', 'f08: remote ', remote, ', codes', codes
      call MPI_Comm_disconnect(inter)
    end if
  else
    call MPI_Comm_disconnect(parent)
  end if
  call MPI_Finalize()
end program mpi_spawn_multiple_f08
