! Compares what the Fortran modules give with loops over the whole array, with Fortran's own indices.
!
!   counts FILE
!
! The file has TEMP(z, y, x) of float32 with missing values, ID(z, y, x) of int32 and v(n) of float64.
program counts
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32, int64
  use, intrinsic :: ieee_arithmetic, only: ieee_is_nan
  use mpi
  use sieva
  use sieva_mpi
  implicit none
  integer :: failures, rank, ranks, code, argument_length
  character(len=:), allocatable :: path
  real(c_float), allocatable, target :: temp(:)
  real(c_float), pointer :: field(:, :, :)
  integer(c_int64_t), allocatable :: extent(:)
  integer(c_int32_t), allocatable :: id(:)
  logical, allocatable :: warm(:)
  integer(c_int64_t) :: n

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  failures = 0
  call get_command_argument(1, length=argument_length)
  allocate (character(len=argument_length) :: path)
  call get_command_argument(1, path)

  call read_all()
  call alone()
  call together()
  call errors()

  call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (rank == 0) print '(i0, a)', failures, ' failures'
  call MPI_Finalize(code)

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    failures = failures + 1
    print '(a, i0, 4a)', 'rank ', rank, ': ', what, ': ', sieva_error_text()
  end subroutine

  ! The whole arrays, and what the condition is true of.
  subroutine read_all()
    type(sieva_source) :: source
    call sieva_open(path, source)
    call sieva_array_shape(source, 'TEMP', extent)
    n = product(extent)
    allocate (temp(n), id(n))
    call sieva_read_box(source, 'TEMP', spread(1_c_int64_t, 1, size(extent)), extent, temp)
    call sieva_read_box(source, 'ID', spread(1_c_int64_t, 1, size(extent)), extent, id)
    field(1:extent(1), 1:extent(2), 1:extent(3)) => temp
    warm = temp > 20
    call sieva_close(source)
  end subroutine

  ! One process, module sieva.
  subroutine alone()
    type(sieva_source) :: source
    type(sieva_query) :: query, other, both, neither
    type(sieva_selection) :: selection
    integer(c_int64_t) :: hits, found, i, edges_total
    integer(c_int64_t), allocatable :: positions(:), coords(:, :), lengths(:)
    integer(c_int64_t) :: bins(4)
    real(c_double) :: edges(5)
    real(c_float), allocatable :: values(:), box(:)
    integer(c_int32_t), allocatable :: ids(:)
    call sieva_open(path, source, threads=1_c_int)
    call sieva_query_where(source, 'TEMP', sieva_gt, 20.0_c_float, query)
    call sieva_count(query, hits)
    call expect(hits == count(warm), 'count')
    call sieva_select(query, selection)
    call sieva_selection_shape(selection, lengths)
    call expect(all(lengths == extent), 'shape')
    allocate (positions(hits), coords(3, hits), values(hits), ids(hits))
    call sieva_positions(selection, positions, found=found)
    call expect(found == hits .and. all(pack([(i, i=1, n)], warm) == positions), 'positions')
    call sieva_positions(selection, positions(1:2), first=hits, found=found)
    call expect(found == 1 .and. positions(1) == findlast(), 'the last position')
    call sieva_coords(selection, coords)
    call sieva_read(selection, 'TEMP', values)
    call sieva_read(selection, 'ID', ids)
    do i = 1, hits
      call expect(field(coords(1, i), coords(2, i), coords(3, i)) == values(i), 'coordinates')
    end do
    call expect(all(pack(temp, warm) == values) .and. all(pack(id, warm) == ids), 'values')
    ! Another box of it, in Fortran's order.
    call sieva_query_set_region(query, 'TEMP', [2_c_int64_t, 1_c_int64_t, 3_c_int64_t], [5_c_int64_t, 4_c_int64_t, 2_c_int64_t])
    call sieva_count(query, hits)
    call expect(hits == count(field(2:6, 1:4, 3:4) > 20), 'region')
    allocate (box(40))
    call sieva_read_box(source, 'TEMP', [2_c_int64_t, 1_c_int64_t, 3_c_int64_t], [5_c_int64_t, 4_c_int64_t, 2_c_int64_t], box)
    call expect(same(box, reshape(field(2:6, 1:4, 3:4), [40])), 'box')
    call sieva_query_text(source, 'ID < 100', other)
    call sieva_query_and(query, other, both)
    call sieva_query_not(both, neither)
    call sieva_query_or(both, neither, query)
    call sieva_query_all(source, 'ID', query)
    call sieva_count(query, hits)
    call expect(hits == n, 'all')
    call sieva_histogram(query, 'ID', bins, edges)
    edges_total = sum(bins)
    call expect(edges_total == n .and. edges(1) == minval(id) .and. edges(5) == maxval(id), 'histogram')
    call sieva_selection_free(selection)
    call sieva_query_free(query)
    call sieva_close(source)
  end subroutine

  ! The position of the last hit.
  function findlast() result(position)
    integer(c_int64_t) :: position
    do position = n, 1, -1
      if (warm(position)) return
    end do
  end function

  ! Equal, or both missing.
  function same(a, b) result(are)
    real(c_float), intent(in) :: a(:), b(:)
    logical :: are
    are = all(a == b .or. (ieee_is_nan(a) .and. ieee_is_nan(b)))
  end function

  ! All ranks, module sieva_mpi.
  subroutine together()
    type(sieva_mpi_source) :: source
    type(sieva_mpi_query) :: query
    type(sieva_selection) :: selection
    integer(c_int64_t) :: hits, first, mine, found
    integer(c_int64_t), allocatable :: positions(:)
    integer(c_int32_t), allocatable :: ids(:), everywhere(:)
    integer(c_int8_t), allocatable :: missing(:)
    real(c_double), allocatable :: gathered(:)
    integer :: last
    call sieva_mpi_open(MPI_COMM_WORLD, path, source, memory=64_c_int64_t * 1024 * 1024)
    call sieva_mpi_query_text(source, 'TEMP > 20', query)
    call sieva_mpi_count(query, hits)
    call expect(hits == count(warm), 'count of all ranks')
    call sieva_mpi_share(query, first, mine)
    allocate (ids(mine), missing(mine), positions(mine), everywhere(hits))
    call sieva_mpi_read(query, 'ID', sieva_shared, ids, missing=missing, found=found)
    everywhere = pack(id, warm)
    call expect(found == mine .and. all(ids == everywhere(first:first + mine - 1)) .and. all(missing == 0), 'a share')
    call sieva_mpi_select(query, sieva_shared, selection)
    call sieva_positions(selection, positions)
    call expect(all(warm(positions)) .and. all(id(positions) == ids), 'positions of a share')
    call sieva_selection_free(selection)
    everywhere = 0
    call sieva_mpi_read(query, 'ID', sieva_everywhere, everywhere)
    call expect(all(everywhere == pack(id, warm)), 'values everywhere')
    last = ranks - 1
    allocate (gathered(merge(hits, 0_c_int64_t, rank == last)))
    call sieva_mpi_read(query, 'TEMP', last, gathered, found=found)
    call expect(found == size(gathered), 'number at the last rank')
    if (rank == last) call expect(all(gathered == pack(real(temp, c_double), warm)), 'values at the last rank')
    call sieva_mpi_query_free(query)
    call sieva_mpi_close(source)
  end subroutine

  ! Errors come back as numbers and words.
  subroutine errors()
    type(sieva_source) :: source
    type(sieva_mpi_source) :: all_of_it
    type(sieva_mpi_query) :: query
    type(sieva_selection) :: selection
    type(sieva_query) :: one
    integer(c_int64_t) :: coords(2, 1)
    integer(c_int32_t) :: status
    character(len=:), allocatable :: words
    call sieva_open('/nonexistent/file.h5', source, status)
    words = sieva_error_name(status)
    call expect(status == 1 .and. words == 'file-not-found', 'status of a missing file')
    words = sieva_error_text()
    call expect(index(words, '/nonexistent/file.h5') > 0, 'words of it')
    call sieva_open(path, source)
    call sieva_query_all(source, 'ID', one)
    call sieva_select(one, selection)
    call sieva_coords(selection, coords, status=status)
    words = sieva_error_text()
    call expect(status == 13 .and. index(words, 'coords') > 0, 'too few coordinates')
    call sieva_query_text(source, 'ID >', one, status)
    call expect(status == 11, 'a condition that ends too early')
    call sieva_mpi_open(MPI_COMM_WORLD, path, all_of_it)
    call sieva_mpi_query_text(all_of_it, 'none > 1', query, status)
    words = sieva_mpi_error_text()
    call expect(status == 6 .and. index(words, 'rank 0: ') == 1, 'an error of rank 0')
    call expect(sieva_mpi_error_rank() == 0, 'its rank')
    call sieva_mpi_close(all_of_it)
    call sieva_close(source)
  end subroutine
end program
