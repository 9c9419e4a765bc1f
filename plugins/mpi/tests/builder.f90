! Builds indexes by all ranks: builder FILE ARRAY ARRAY
program builder
  use, intrinsic :: iso_c_binding
  use mpi
  use sieva
  use sieva_mpi
  implicit none
  type(sieva_mpi_source) :: source
  integer(c_int64_t) :: regions, replicas
  integer(c_int32_t) :: status
  character(len=1000) :: path, arrays(2)
  character(len=:), allocatable :: words
  integer :: rank, code

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call get_command_argument(1, path)
  call get_command_argument(2, arrays(1))
  call get_command_argument(3, arrays(2))
  call sieva_mpi_open(MPI_COMM_WORLD, path, source)
  call sieva_mpi_index_build(source, arrays, sieva_zonemap + sieva_bitmap, regions=regions, memory=128_c_int64_t * 1024 * 1024, &
                             region_size=65536_c_int64_t)
  call sieva_mpi_index_build(source, arrays(1:1), sieva_sorted, replicas=replicas, jobs=1_c_int)
  if (rank == 0) print '(a, i0, a, i0)', 'regions ', regions, ' replicas ', replicas
  call sieva_mpi_index_build(source, arrays(1:0), sieva_bitmap, regions=regions)
  if (rank == 0) print '(a, i0)', 'more ', regions
  call sieva_mpi_index_build(source, [character(len=4) :: 'none'], sieva_bitmap, status=status)
  words = sieva_mpi_error_text()
  if (rank == 0) print '(i0, 2a)', status, ' ', words
  call sieva_mpi_close(source)
  call MPI_Finalize(code)
end program
