! spawn_soft.c in Fortran, with mpi_f08.
!
!   mpif90.openmpi -o spawn_soft_f spawn_soft.f90
!   msactl run -m cluster -n 2 ./spawn_soft_f
program spawn_soft
  use mpi_f08
  implicit none
  integer, parameter :: most = 8
  type(MPI_Comm) :: parents
  call MPI_Init()
  call MPI_Comm_get_parent(parents)
  if (parents == MPI_COMM_NULL) then
    call run_parents()
  else
    call run_child()
  end if
  call MPI_Finalize()
contains
  subroutine run_parents()
    type(MPI_Comm) :: inter
    type(MPI_Info) :: info
    character(len=1024) :: program_name
    character(len=MPI_MAX_ERROR_STRING) :: text
    integer :: rank, children, total, codes(most), status, length
    call get_command_argument(0, program_name)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Info_create(info)
    call MPI_Info_set(info, 'arch', 'booster')  ! a module's name or kind
    call MPI_Info_set(info, 'soft', '0:8:2')    ! 0, 2, 4, 6 or 8
    call MPI_Info_set(info, 'msa_wait', '30')   ! seconds
    call MPI_Comm_spawn(trim(program_name), MPI_ARGV_NULL, most, info, 0, MPI_COMM_WORLD, inter, codes, status)
    call MPI_Info_free(info)
    if (status /= MPI_SUCCESS) then
      call MPI_Error_string(status, text, length)
      if (rank == 0) print '(2a)', 'no children: ', text(1:length)
      return
    end if
    call MPI_Comm_remote_size(inter, children)
    total = 0
    if (children > 0) call MPI_Allreduce(0, total, 1, MPI_INTEGER, MPI_SUM, inter)
    if (rank == 0) print '(i0,a,i0,a,i0)', count(codes == MPI_SUCCESS), ' of ', most, &
      ' children started, their ranks add up to ', total
    call MPI_Comm_disconnect(inter)
  end subroutine run_parents

  subroutine run_child()
    integer :: rank, from_parents
    character(len=64) :: module_name
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call get_environment_variable('MSA_MODULE', module_name)
    print '(a,i0,2a)', 'child ', rank, ' runs on module ', trim(module_name)
    call MPI_Allreduce(rank, from_parents, 1, MPI_INTEGER, MPI_SUM, parents)
    call MPI_Comm_disconnect(parents)
  end subroutine run_child
end program spawn_soft
