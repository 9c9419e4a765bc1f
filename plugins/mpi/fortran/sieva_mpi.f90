! sieva on a communicator, for Fortran 2008: one query, answered by all ranks together.
!
! Every procedure is called by all ranks of the communicator, with the same arguments but for what receives results, as
! sieva_mpi.h says; positions, dimensions, errors and texts are those of the module `sieva`. Who gets a result, `at`, is
! sieva_shared (each rank its share), sieva_everywhere (each rank all), or the number of a rank, which as in MPI begins at 0.
! Where an error is not looked at (no `status`), rank 0 says its words and MPI_Abort() ends the program.
module sieva_mpi
  use, intrinsic :: iso_c_binding
  use sieva_c
  use sieva_base, only: sieva_selection, sieva_source, sieva_make_options, sieva_c_text
  use sieva_mpi_base
  use sieva_mpi_index
  implicit none
  private

  public :: sieva_mpi_source, sieva_mpi_query, sieva_shared, sieva_everywhere
  public :: sieva_mpi_open, sieva_mpi_collection_open, sieva_mpi_close, sieva_mpi_here
  public :: sieva_mpi_query_text, sieva_mpi_query_free, sieva_mpi_count, sieva_mpi_share, sieva_mpi_select
  public :: sieva_mpi_read, sieva_mpi_error_text, sieva_mpi_error_rank
  public :: sieva_mpi_index_build, sieva_zonemap, sieva_bitmap, sieva_sorted

  integer(c_int32_t), parameter :: sieva_everywhere = -1, sieva_shared = -2

  ! The values of an array at the hits: sieva_mpi_read(query, 'TEMP', at, values [, missing] [, found] [, status]). Each rank reads
  ! those of its share; `values` has room for what this rank gets, and may have no elements where it gets nothing.
  interface sieva_mpi_read
    module procedure read_i8, read_i16, read_i32, read_i64, read_r32, read_r64
  end interface

  interface
    function c_open(comm, path, options, source) bind(c, name='sieva_mpi_open_f') result(code)
      import
      integer(c_int), value :: comm
      character(kind=c_char), intent(in) :: path(*)
      type(sieva_options), intent(in) :: options
      type(c_ptr), intent(inout) :: source
      integer(c_int32_t) :: code
    end function

    function c_collection(comm, catalog, collection, options, source) bind(c, name='sieva_mpi_collection_open_f') result(code)
      import
      integer(c_int), value :: comm
      character(kind=c_char), intent(in) :: catalog(*), collection(*)
      type(sieva_options), intent(in) :: options
      type(c_ptr), intent(inout) :: source
      integer(c_int32_t) :: code
    end function

    subroutine c_close(source) bind(c, name='sieva_mpi_close')
      import
      type(c_ptr), value :: source
    end subroutine

    function c_here(source) bind(c, name='sieva_mpi_source_here') result(own)
      import
      type(c_ptr), value :: source
      type(c_ptr) :: own
    end function

    function c_query(source, text, query) bind(c, name='sieva_mpi_query_text') result(code)
      import
      type(c_ptr), value :: source
      character(kind=c_char), intent(in) :: text(*)
      type(c_ptr), intent(inout) :: query
      integer(c_int32_t) :: code
    end function

    subroutine c_query_free(query) bind(c, name='sieva_mpi_query_free')
      import
      type(c_ptr), value :: query
    end subroutine

    function c_count(query, hits) bind(c, name='sieva_mpi_query_nhits') result(code)
      import
      type(c_ptr), value :: query
      integer(c_int64_t), intent(inout) :: hits
      integer(c_int32_t) :: code
    end function

    function c_share(query, first, count) bind(c, name='sieva_mpi_query_share') result(code)
      import
      type(c_ptr), value :: query
      integer(c_int64_t), intent(inout) :: first, count
      integer(c_int32_t) :: code
    end function

    function c_select(query, at, selection) bind(c, name='sieva_mpi_query_selection') result(code)
      import
      type(c_ptr), value :: query
      integer(c_int32_t), value :: at
      type(c_ptr), intent(inout) :: selection
      integer(c_int32_t) :: code
    end function

    function c_read(query, array, at, kind, values, capacity, missing, found) bind(c, name='sieva_mpi_read') result(code)
      import
      type(c_ptr), value :: query, values, missing
      character(kind=c_char), intent(in) :: array(*)
      integer(c_int32_t), value :: at, kind
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(inout) :: found
      integer(c_int32_t) :: code
    end function
  end interface

contains

  ! Opens a source on all ranks of a communicator: an integer, or comm%MPI_VAL of mpi_f08. memory, threads and dims as in
  ! sieva_open(); without them a rank has its share of its node.
  subroutine sieva_mpi_open(comm, path, source, status, memory, threads, dims)
    integer, intent(in) :: comm
    character(len=*), intent(in) :: path
    type(sieva_mpi_source), intent(out) :: source
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
    call tell(c_open(int(comm, c_int), sieva_c_text(path), options, source%handle), status)
  end subroutine

  ! Opens a collection of a catalog, which rank 0 alone asks. Hits come by file, object and position; the objects of a selection are told
  ! by sieva_selection_object() of module `sieva`, on any rank. catalog: a path or a URL.
  subroutine sieva_mpi_collection_open(comm, catalog, collection, source, status, memory, threads)
    integer, intent(in) :: comm
    character(len=*), intent(in) :: catalog, collection
    type(sieva_mpi_source), intent(out) :: source
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t), intent(in), optional :: memory
    integer(c_int), intent(in), optional :: threads
    type(sieva_options) :: options
    integer(c_int32_t) :: code
    call sieva_make_options(options, memory, threads)
    code = c_collection(int(comm, c_int), sieva_c_text(catalog), sieva_c_text(collection), options, source%handle)
    call tell(code, status)
  end subroutine

  ! Closes a source, before MPI_Finalize() and after its queries were freed.
  subroutine sieva_mpi_close(source)
    type(sieva_mpi_source), intent(inout) :: source
    call c_close(source%handle)
    source%handle = c_null_ptr
  end subroutine

  ! This rank's own source, to be asked alone for names, shapes and boxes; not to be closed.
  function sieva_mpi_here(source) result(own)
    type(sieva_mpi_source), intent(in) :: source
    type(sieva_source) :: own
    own%handle = c_here(source%handle)
  end function

  ! A query by its text: a SELECT, or a condition such as 'TEMP > 25 AND z_t < 5000'.
  subroutine sieva_mpi_query_text(source, text, query, status)
    type(sieva_mpi_source), intent(in) :: source
    character(len=*), intent(in) :: text
    type(sieva_mpi_query), intent(out) :: query
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_query(source%handle, sieva_c_text(text), query%handle), status)
  end subroutine

  ! Frees a query.
  subroutine sieva_mpi_query_free(query)
    type(sieva_mpi_query), intent(inout) :: query
    call c_query_free(query%handle)
    query%handle = c_null_ptr
  end subroutine

  ! The number of rows, on all ranks.
  subroutine sieva_mpi_count(query, hits, status)
    type(sieva_mpi_query), intent(in) :: query
    integer(c_int64_t), intent(out) :: hits
    integer(c_int32_t), intent(out), optional :: status
    hits = 0
    call tell(c_count(query%handle, hits), status)
  end subroutine

  ! This rank's share of the hits: the number of its first, from 1 on, and how many there are.
  subroutine sieva_mpi_share(query, first, found, status)
    type(sieva_mpi_query), intent(in) :: query
    integer(c_int64_t), intent(out) :: first, found
    integer(c_int32_t), intent(out), optional :: status
    first = 0
    found = 0
    call tell(c_share(query%handle, first, found), status)
    first = first + 1
  end subroutine

  ! The positions of the hits, which sieva_positions() and sieva_coords() of module `sieva` give as Fortran counts them.
  subroutine sieva_mpi_select(query, at, selection, status)
    type(sieva_mpi_query), intent(in) :: query
    integer(c_int32_t), intent(in) :: at
    type(sieva_selection), intent(out) :: selection
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_select(query%handle, at, selection%handle), status)
  end subroutine

  ! ---- Values, by the type they are read as ----------------------------------------------------------------------

  subroutine read_any(query, array, at, kind, values, room, missing, found, status)
    type(sieva_mpi_query), intent(in) :: query
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: at, kind
    type(c_ptr), intent(in) :: values
    integer(c_int64_t), intent(in) :: room
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int64_t), intent(out), optional :: found
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t) :: least, count
    type(c_ptr) :: marks
    marks = c_null_ptr
    least = room
    count = 0
    if (present(missing)) then
      marks = c_loc(missing)
      least = min(room, size(missing, kind=c_int64_t))
    end if
    call tell(c_read(query%handle, sieva_c_text(array), at, kind, values, least, marks, count), status)
    if (present(found)) found = count
  end subroutine

  subroutine read_i8(query, array, at, values, missing, found, status)
    type(sieva_mpi_query), intent(in) :: query
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: at
    integer(c_int8_t), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int64_t), intent(out), optional :: found
    integer(c_int32_t), intent(out), optional :: status
    call read_any(query, array, at, sieva_i8, c_loc(values), size(values, kind=c_int64_t), missing, found, status)
  end subroutine

  subroutine read_i16(query, array, at, values, missing, found, status)
    type(sieva_mpi_query), intent(in) :: query
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: at
    integer(c_int16_t), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int64_t), intent(out), optional :: found
    integer(c_int32_t), intent(out), optional :: status
    call read_any(query, array, at, sieva_i16, c_loc(values), size(values, kind=c_int64_t), missing, found, status)
  end subroutine

  subroutine read_i32(query, array, at, values, missing, found, status)
    type(sieva_mpi_query), intent(in) :: query
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: at
    integer(c_int32_t), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int64_t), intent(out), optional :: found
    integer(c_int32_t), intent(out), optional :: status
    call read_any(query, array, at, sieva_i32, c_loc(values), size(values, kind=c_int64_t), missing, found, status)
  end subroutine

  subroutine read_i64(query, array, at, values, missing, found, status)
    type(sieva_mpi_query), intent(in) :: query
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: at
    integer(c_int64_t), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int64_t), intent(out), optional :: found
    integer(c_int32_t), intent(out), optional :: status
    call read_any(query, array, at, sieva_i64, c_loc(values), size(values, kind=c_int64_t), missing, found, status)
  end subroutine

  subroutine read_r32(query, array, at, values, missing, found, status)
    type(sieva_mpi_query), intent(in) :: query
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: at
    real(c_float), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int64_t), intent(out), optional :: found
    integer(c_int32_t), intent(out), optional :: status
    call read_any(query, array, at, sieva_f32, c_loc(values), size(values, kind=c_int64_t), missing, found, status)
  end subroutine

  subroutine read_r64(query, array, at, values, missing, found, status)
    type(sieva_mpi_query), intent(in) :: query
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: at
    real(c_double), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int64_t), intent(out), optional :: found
    integer(c_int32_t), intent(out), optional :: status
    call read_any(query, array, at, sieva_f64, c_loc(values), size(values, kind=c_int64_t), missing, found, status)
  end subroutine

end module
