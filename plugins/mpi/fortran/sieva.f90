! sieva for Fortran 2008: value queries over files, with positions and dimensions as Fortran counts them.
!
! What differs from C (sieva.h):
!   Positions   begin at 1. The position of a hit is its place in array element order, which is the order of the file: element
!               `positions(i)` of an array that holds all rows.
!   Dimensions  are given the other way round, as netCDF's Fortran interface does: the first one varies fastest. An array that
!               `ncdump` shows as TEMP(time, z, lat, lon) has shape [nlon, nlat, nz, ntime] here, and so have starts, counts and
!               the first index of `coords`.
!   Errors      `status` is optional in every procedure. Where it is there, it is 0 or the code of the error (sieva_error_text()
!               has the words); where it is not, the program ends with these words.
!   Texts       are trimmed.
module sieva
  use, intrinsic :: iso_c_binding
  use sieva_c
  use sieva_base
  use sieva_values
  use sieva_collections
  implicit none
  private

  public :: sieva_source, sieva_query, sieva_selection
  public :: sieva_open, sieva_close, sieva_array_shape
  public :: sieva_query_text, sieva_query_where, sieva_query_all, sieva_query_and, sieva_query_or, sieva_query_not
  public :: sieva_query_set_region, sieva_query_free
  public :: sieva_count, sieva_select, sieva_selection_free, sieva_selection_hits, sieva_selection_shape
  public :: sieva_positions, sieva_coords, sieva_read, sieva_read_box, sieva_histogram
  public :: sieva_selection_objects, sieva_selection_object, sieva_selection_of_object
  public :: sieva_error_text, sieva_error_name, sieva_version
  public :: sieva_gt, sieva_ge, sieva_lt, sieva_le, sieva_eq, sieva_ne

  ! Comparisons of sieva_query_where().
  integer(c_int32_t), parameter :: sieva_gt = 1, sieva_ge = 2, sieva_lt = 3, sieva_le = 4, sieva_eq = 5, sieva_ne = 6

  ! A condition on one array: sieva_query_where(source, 'TEMP', sieva_gt, 25.0, query [, status]). The comparison is of
  ! numbers, exactly: 1.7 is greater than the 1.7 of an array of real(real64).
  interface sieva_query_where
    module procedure where_i32, where_i64, where_r32, where_r64
  end interface

contains

  ! ---- Sources ----------------------------------------------------------------------------------------------------

  ! Opens the file at a path, or all that match a pattern. memory: bytes that reading may take; threads: of a query; dims:
  ! names of dimensions where the file has none, as in sieva_options of sieva.h.
  subroutine sieva_open(path, source, status, memory, threads, dims)
    character(len=*), intent(in) :: path
    type(sieva_source), intent(out) :: source
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t), intent(in), optional :: memory
    integer(c_int), intent(in), optional :: threads
    character(len=*), intent(in), optional :: dims
    type(sieva_options) :: options
    character(len=:, kind=c_char), allocatable, target :: names
    if (present(dims)) then
      names = sieva_c_text(dims)
      call sieva_make_options(options, memory, threads, names)
    else
      call sieva_make_options(options, memory, threads)
    end if
    call tell(c_sieva_open(sieva_c_text(path), options, source%handle), status)
  end subroutine

  ! Closes a source; its queries and selections go on working until they are freed.
  subroutine sieva_close(source)
    type(sieva_source), intent(inout) :: source
    call c_sieva_close(source%handle)
    source%handle = c_null_ptr
  end subroutine

  ! The lengths of an array's dimensions, the fastest first.
  subroutine sieva_array_shape(source, array, lengths, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int64_t), allocatable, intent(out) :: lengths(:)
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t), pointer :: own(:)
    integer(c_int64_t) :: number
    type(sieva_array) :: found
    integer(c_int32_t) :: code
    allocate (lengths(0))
    code = c_sieva_array_find(source%handle, sieva_c_text(array), number)
    if (code == 0) code = c_sieva_array_describe(source%handle, number, found)
    if (code == 0 .and. found%rank > 0) then
      call c_f_pointer(found%shape, own, [found%rank])
      lengths = reversed(own)
    end if
    call tell(code, status)
  end subroutine

  ! ---- Queries ----------------------------------------------------------------------------------------------------

  ! A condition by its text, such as 'TEMP > 25 AND z_t < 5000'.
  subroutine sieva_query_text(source, condition, query, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: condition
    type(sieva_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_text(source%handle, sieva_c_text(condition), query%handle), status)
  end subroutine

  ! Every position of an array.
  subroutine sieva_query_all(source, array, query, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    type(sieva_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_all(source%handle, sieva_c_text(array), query%handle), status)
  end subroutine

  ! Both conditions.
  subroutine sieva_query_and(a, b, query, status)
    type(sieva_query), intent(in) :: a, b
    type(sieva_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_and(a%handle, b%handle, query%handle), status)
  end subroutine

  ! Either condition.
  subroutine sieva_query_or(a, b, query, status)
    type(sieva_query), intent(in) :: a, b
    type(sieva_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_or(a%handle, b%handle, query%handle), status)
  end subroutine

  ! The opposite.
  subroutine sieva_query_not(a, query, status)
    type(sieva_query), intent(in) :: a
    type(sieva_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_not(a%handle, query%handle), status)
  end subroutine

  ! Only rows in a box of an array: from `start` (from 1 on), `extent` of them, the fastest dimension first.
  subroutine sieva_query_set_region(query, array, start, extent, status)
    type(sieva_query), intent(inout) :: query
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(in) :: start(:), extent(:)
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int32_t) :: code
    code = c_sieva_query_set_region(query%handle, sieva_c_text(array), 1_c_int64_t, int(size(start), c_int32_t), &
                                    reversed(start - 1), reversed(extent))
    call tell(code, status)
  end subroutine

  ! Frees a query; its selections stay.
  subroutine sieva_query_free(query)
    type(sieva_query), intent(inout) :: query
    call c_sieva_query_free(query%handle)
    query%handle = c_null_ptr
  end subroutine

  ! The number of rows that satisfy the condition.
  subroutine sieva_count(query, hits, status)
    type(sieva_query), intent(in) :: query
    integer(c_int64_t), intent(out) :: hits
    integer(c_int32_t), intent(out), optional :: status
    hits = 0
    call tell(c_sieva_query_nhits(query%handle, hits), status)
  end subroutine

  ! The histogram of an array's values at the hits: size(counts) equal bins from the least to the greatest value; `edges` has
  ! one more.
  subroutine sieva_histogram(query, array, counts, edges, status)
    type(sieva_query), intent(in) :: query
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(out), contiguous :: counts(:)
    real(c_double), intent(out), contiguous :: edges(:)
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t) :: bins
    bins = min(size(counts, kind=c_int64_t), size(edges, kind=c_int64_t) - 1)
    call tell(c_sieva_query_histogram(query%handle, sieva_c_text(array), bins, counts, edges), status)
  end subroutine

  ! ---- Selections -------------------------------------------------------------------------------------------------

  ! The hits of a query.
  subroutine sieva_select(query, selection, status)
    type(sieva_query), intent(in) :: query
    type(sieva_selection), intent(out) :: selection
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_selection(query%handle, selection%handle), status)
  end subroutine

  ! Frees a selection.
  subroutine sieva_selection_free(selection)
    type(sieva_selection), intent(inout) :: selection
    call c_sieva_selection_free(selection%handle)
    selection%handle = c_null_ptr
  end subroutine

  ! The number of hits.
  subroutine sieva_selection_hits(selection, hits, status)
    type(sieva_selection), intent(in) :: selection
    integer(c_int64_t), intent(out) :: hits
    integer(c_int32_t), intent(out), optional :: status
    hits = 0
    call tell(c_sieva_selection_nhits(selection%handle, hits), status)
  end subroutine

  ! The lengths of the dimensions of the rows, the fastest first.
  subroutine sieva_selection_shape(selection, lengths, status)
    type(sieva_selection), intent(in) :: selection
    integer(c_int64_t), allocatable, intent(out) :: lengths(:)
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t), allocatable, target :: own(:)
    integer(c_int32_t) :: rank, code
    rank = 0
    code = c_sieva_selection_shape(selection%handle, rank, c_null_ptr, 0_c_int32_t)
    allocate (own(max(rank, 1)), lengths(rank))
    if (code == 0 .and. rank > 0) then
      code = c_sieva_selection_shape(selection%handle, rank, c_loc(own), rank)
      lengths = reversed(own(1:rank))
    end if
    call tell(code, status)
  end subroutine

  ! The positions of the hits from number `first` (1 where it is not given) on, as many as `positions` has room for; `found` is
  ! how many there are.
  subroutine sieva_positions(selection, positions, first, found, status)
    type(sieva_selection), intent(in) :: selection
    integer(c_int64_t), intent(out), contiguous :: positions(:)
    integer(c_int64_t), intent(in), optional :: first
    integer(c_int64_t), intent(out), optional :: found
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t) :: begin, count
    integer(c_int32_t) :: code
    begin = 1
    if (present(first)) begin = first
    count = 0
    code = c_sieva_selection_positions(selection%handle, begin - 1, size(positions, kind=c_int64_t), positions, count)
    positions(1:count) = positions(1:count) + 1
    if (present(found)) found = count
    call tell(code, status)
  end subroutine

  ! The same as coordinates: coords(:, i) are those of a hit, from 1 on, the fastest dimension first.
  subroutine sieva_coords(selection, coords, first, found, status)
    type(sieva_selection), intent(in) :: selection
    integer(c_int64_t), intent(out), contiguous :: coords(:, :)
    integer(c_int64_t), intent(in), optional :: first
    integer(c_int64_t), intent(out), optional :: found
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t) :: begin, count, i
    integer(c_int32_t) :: code, rank
    begin = 1
    if (present(first)) begin = first
    count = 0
    rank = 0
    code = c_sieva_selection_shape(selection%handle, rank, c_null_ptr, 0_c_int32_t)
    if (code == 0 .and. rank /= size(coords, 1)) code = own_error('coords has another first extent than the rows have dimensions')
    if (code == 0) code = c_sieva_selection_coords(selection%handle, begin - 1, size(coords, 2, c_int64_t), coords, count)
    do i = 1, count
      coords(:, i) = reversed(coords(:, i)) + 1
    end do
    if (present(found)) found = count
    call tell(code, status)
  end subroutine

  ! ---- Conditions, by the type of the value they compare with ------------------------------------------------------

  subroutine where_i32(source, array, op, value, query, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: op
    integer(c_int32_t), intent(in), target :: value
    type(sieva_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_create(source%handle, sieva_c_text(array), op, sieva_i32, c_loc(value), query%handle), status)
  end subroutine

  subroutine where_i64(source, array, op, value, query, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: op
    integer(c_int64_t), intent(in), target :: value
    type(sieva_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_create(source%handle, sieva_c_text(array), op, sieva_i64, c_loc(value), query%handle), status)
  end subroutine

  subroutine where_r32(source, array, op, value, query, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: op
    real(c_float), intent(in), target :: value
    type(sieva_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_create(source%handle, sieva_c_text(array), op, sieva_f32, c_loc(value), query%handle), status)
  end subroutine

  subroutine where_r64(source, array, op, value, query, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: op
    real(c_double), intent(in), target :: value
    type(sieva_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_sieva_query_create(source%handle, sieva_c_text(array), op, sieva_f64, c_loc(value), query%handle), status)
  end subroutine

end module
