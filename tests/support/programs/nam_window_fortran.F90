! A persistent window made, attached and deleted from Fortran: mpif.h (WITH_MPIF_H), mpi_f08 (WITH_F08), else `use mpi`. Prints
! "fortran: base mapped|null, segments S, sizes ok".
program nam_window_fortran
#ifdef WITH_F08
  use mpi_f08
#elif !defined(WITH_MPIF_H)
  use mpi
#endif
  use, intrinsic :: iso_c_binding
  implicit none
#ifdef WITH_MPIF_H
  include 'mpif.h'
#endif
#ifdef WITH_F08
  type(MPI_Info) :: info
  type(MPI_Win) :: window, attached
  type(MPI_Comm) :: inter
  type(c_ptr) :: base
#else
  integer :: info, window, attached, inter
  integer(MPI_ADDRESS_KIND) :: base
#endif
  integer, parameter :: sizes_key = -70001, units_key = -70002
  integer :: rank, ranks, ierror, i, remote
  integer(MPI_ADDRESS_KIND) :: bytes, attribute, place
  integer(MPI_ADDRESS_KIND), pointer :: sizes(:)
  integer, pointer :: units(:)
  double precision :: values(16), back(16)
  character(len=MPI_MAX_INFO_VAL) :: port
  logical :: flag, good
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call MPI_Info_create(info, ierror)
  call MPI_Info_set(info, 'deep_mem_kind', 'deep_nam_persistent', ierror)
  bytes = 128
  call MPI_Win_allocate(bytes, 8, info, MPI_COMM_WORLD, base, window, ierror)
  good = .true.
  call MPI_Win_get_attr(window, MPI_WIN_SIZE, attribute, flag, ierror)
  good = good .and. flag .and. attribute == 128
  call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, attribute, flag, ierror)
  good = good .and. flag .and. attribute == 8
  call MPI_Win_get_attr(window, MPI_WIN_BASE, place, flag, ierror)
#ifdef WITH_F08
  good = good .and. flag .and. place == transfer(base, place)
#else
  good = good .and. flag .and. place == base
#endif
  values = [(rank * 100.0d0 + i, i = 1, 16)]
  call MPI_Win_fence(0, window, ierror)
  attribute = 0
  call MPI_Put(values, 16, MPI_DOUBLE_PRECISION, rank, attribute, 16, MPI_DOUBLE_PRECISION, window, ierror)
  call MPI_Win_fence(0, window, ierror)
  call MPI_Info_free(info, ierror)
  call MPI_Win_get_info(window, info, ierror)
  port = ' '
  call MPI_Info_get(info, 'deep_win_port_name', MPI_MAX_INFO_VAL - 1, port, flag, ierror)
  good = good .and. flag
  call MPI_Info_free(info, ierror)
  call MPI_Win_free(window, ierror)

  call MPI_Comm_connect(trim(port), MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, ierror)
  call MPI_Comm_remote_size(inter, remote, ierror)
  good = good .and. remote == ranks
  call MPI_Win_create_dynamic(MPI_INFO_NULL, inter, attached, ierror)
  call MPI_Win_get_attr(attached, sizes_key, attribute, flag, ierror)
  good = good .and. flag
  call c_f_pointer(transfer(attribute, c_null_ptr), sizes, [remote])
  call MPI_Win_get_attr(attached, units_key, attribute, flag, ierror)
  call c_f_pointer(transfer(attribute, c_null_ptr), units, [remote])
  good = good .and. flag .and. all(sizes == 128) .and. all(units == 8)
  back = 0
  attribute = 0
  i = mod(rank + 1, ranks)
  call MPI_Win_lock(MPI_LOCK_SHARED, i, 0, attached, ierror)
  call MPI_Get(back, 16, MPI_DOUBLE_PRECISION, i, attribute, 16, MPI_DOUBLE_PRECISION, attached, ierror)
  call MPI_Win_unlock(i, attached, ierror)
  good = good .and. all(back == values - rank * 100.0d0 + i * 100.0d0 + 0 * back)
  call MPI_Info_create(info, ierror)
  call MPI_Info_set(info, 'deep_mem_kind', 'deep_nam', ierror)
  call MPI_Win_set_info(attached, info, ierror)
  call MPI_Win_free(attached, ierror)
  call MPI_Comm_disconnect(inter, ierror)
  if (rank == 0 .and. good) print '(a,a,a,i0,a)', 'fortran: base ', merge('null  ', 'mapped', place == 0), &
    ', segments ', remote, ', sizes ok'
  if (.not. good) print '(a,i0)', 'fortran: wrong at rank ', rank
  call MPI_Finalize(ierror)
end program nam_window_fortran
