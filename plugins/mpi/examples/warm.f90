! Warm water, by all ranks: how many points of an ocean model's TEMP are warmer than a limit, where the first of them is, and
! what SALT is there on average.
!
!   mpifort warm.f90 $(pkg-config --cflags --libs sieva_mpi) -o warm
!   mpirun -n 4 ./warm ocean.nc 25
!
! Dimensions are those of Fortran: the first index of TEMP is the longitude, from 1 on.
program warm
  use, intrinsic :: iso_c_binding, only: c_int64_t, c_double
  use mpi
  use sieva
  use sieva_mpi
  implicit none
  type(sieva_mpi_source) :: source
  type(sieva_mpi_query) :: query
  type(sieva_selection) :: selection
  type(sieva_source) :: here
  integer(c_int64_t), allocatable :: extent(:)
  integer(c_int64_t), allocatable :: coords(:, :)
  real(c_double), allocatable :: salt(:)
  integer(c_int64_t) :: hits, first, mine
  real(c_double) :: part(1), total(1)
  character(len=1000) :: file, limit
  integer :: rank, code

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  if (command_argument_count() /= 2) then
    if (rank == 0) print '(a)', 'usage: warm FILE LIMIT'
    call MPI_Finalize(code)
    stop 2
  end if
  call get_command_argument(1, file)
  call get_command_argument(2, limit)

  ! Without a status, an error ends the program with its words.
  call sieva_mpi_open(MPI_COMM_WORLD, file, source)
  call sieva_mpi_query_text(source, 'TEMP > ' // trim(limit) // ' AND SALT IS NOT NULL', query)
  call sieva_mpi_count(query, hits)
  call sieva_mpi_share(query, first, mine)
  allocate (salt(mine))
  call sieva_mpi_read(query, 'SALT', sieva_shared, salt)
  part(1) = sum(salt)
  call MPI_Reduce(part, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, code)

  ! What rank 0 asks alone: the first of its hits, which is the first of all.
  here = sieva_mpi_here(source)
  call sieva_array_shape(here, 'TEMP', extent)
  call sieva_mpi_select(query, sieva_shared, selection)
  if (rank == 0) then
    print '(i0, a, f0.6)', hits, ' points are warm; their salinity is ', total(1) / max(hits, 1_c_int64_t)
    if (mine > 0) then
      allocate (coords(size(extent), 1))
      call sieva_coords(selection, coords)
      print '(a, *(i0, :, " "))', 'the first is ', coords(:, 1)
      print '(a, *(i0, :, " "))', 'of ', extent
    end if
  end if

  call sieva_selection_free(selection)
  call sieva_mpi_query_free(query)
  call sieva_mpi_close(source)
  call MPI_Finalize(code)
end program
