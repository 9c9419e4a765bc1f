! Hits in a collection, by all ranks, as the Fortran modules give them.
!
!   stars CATALOG COLLECTION ARRAY
!
! Each rank tells the objects of its share of ARRAY > 0, how many hits are in each, the first position in the first of them, and the sum
! of the values.
program stars
  use, intrinsic :: iso_c_binding
  use mpi
  use sieva
  use sieva_mpi
  implicit none
  type(sieva_mpi_source) :: source
  type(sieva_mpi_query) :: query
  type(sieva_selection) :: mine, one
  integer(c_int64_t) :: hits, first, count, found, objects, own, number, i, total
  integer(c_int64_t), allocatable :: positions(:), lengths(:)
  integer(c_int32_t) :: status
  real(c_double), allocatable :: values(:)
  character(len=:), allocatable :: catalog, collection, array, file, path, words
  integer :: rank, ranks, code, r

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  catalog = argument(1)
  collection = argument(2)
  array = argument(3)

  call sieva_mpi_collection_open(MPI_COMM_WORLD, catalog, 'none', source, status)
  words = sieva_mpi_error_text()
  if (status /= 8 .or. index(words, 'rank 0: ') /= 1) print '(2a)', 'no error of rank 0: ', words
  call sieva_mpi_collection_open(MPI_COMM_WORLD, catalog, collection, source)
  call sieva_mpi_query_text(source, 'SELECT ' // array // ' WHERE ' // array // ' > 0', query)
  call sieva_mpi_share(query, first, count)
  call sieva_mpi_count(query, hits)
  allocate (values(count), positions(count))
  call sieva_mpi_read(query, array, sieva_shared, values, found=found)
  call sieva_mpi_select(query, sieva_shared, mine)
  call sieva_positions(mine, positions)
  call sieva_selection_objects(mine, objects)
  total = 0
  do r = 0, ranks - 1
    if (r == rank) then
      print '(a, i0, a, i0, a, i0, a, i0, a, es24.16)', 'rank ', rank, ' first ', first, ' count ', count, ' of ', hits, &
        ' sum ', sum(values)
      do i = 1, objects
        call sieva_selection_object(mine, i, file, path, own, number=number)
        total = total + own
        print '(a, i0, 4a, i0)', 'object ', number, ' ', file(index(file, '/', back=.true.) + 1:), ' ' // path, ' ', own
      end do
      if (objects > 0) then
        call sieva_selection_of_object(mine, 1_c_int64_t, one)
        call sieva_selection_shape(one, lengths)
        print '(a, i0, a, i0, a, i0)', 'rank ', rank, ' position ', positions(1), ' of ', lengths(1)
        call sieva_selection_free(one)
      end if
    end if
    flush (6)
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end do
  if (total /= count .or. found /= count) print '(a)', 'objects have not all hits'
  call sieva_selection_free(mine)
  call sieva_mpi_query_free(query)
  call sieva_mpi_close(source)
  call MPI_Finalize(code)

contains

  function argument(number) result(text)
    integer, intent(in) :: number
    character(len=:), allocatable :: text
    integer :: length
    call get_command_argument(number, length=length)
    allocate (character(len=length) :: text)
    call get_command_argument(number, text)
  end function
end program
