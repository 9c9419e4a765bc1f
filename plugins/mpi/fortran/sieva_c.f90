! The functions of sieva.h that the module `sieva` calls, as C has them: positions from 0 on, the slowest dimension first.
module sieva_c
  use, intrinsic :: iso_c_binding
  implicit none
  public

  ! enum sieva_type
  integer(c_int32_t), parameter :: sieva_i8 = 2, sieva_i16 = 3, sieva_i32 = 4, sieva_i64 = 5, sieva_f32 = 11, sieva_f64 = 12

  ! The first of the fields of sieva_options, whose size says that there are no more.
  type, bind(c) :: sieva_options
    integer(c_int64_t) :: size = 0
    integer(c_int64_t) :: memory = 0
    integer(c_int32_t) :: threads = 0
    integer(c_int32_t) :: access = 0
    type(c_ptr) :: store = c_null_ptr
    type(c_ptr) :: external_root = c_null_ptr
    integer(c_int32_t) :: valid_range = 0
    integer(c_int32_t) :: no_learning = 0
    type(c_ptr) :: dims = c_null_ptr
  end type

  ! sieva_array
  type, bind(c) :: sieva_array
    type(c_ptr) :: path
    integer(c_int32_t) :: value_type
    integer(c_int32_t) :: stored_type
    integer(c_int32_t) :: rank
    integer(c_int32_t) :: attributes
    type(c_ptr) :: shape
    type(c_ptr) :: dims
  end type

  interface
    function c_sieva_error_message() bind(c, name='sieva_error_message') result(code)
      import
      type(c_ptr) :: code
    end function

    function c_sieva_error_name(number) bind(c, name='sieva_error_name') result(code)
      import
      integer(c_int32_t), value :: number
      type(c_ptr) :: code
    end function

    function c_sieva_version() bind(c, name='sieva_version') result(code)
      import
      type(c_ptr) :: code
    end function

    ! Of the C library.
    pure function c_strlen(text) bind(c, name='strlen') result(code)
      import
      type(c_ptr), value, intent(in) :: text
      integer(c_size_t) :: code
    end function

    function c_sieva_open(path, options, source) bind(c, name='sieva_open') result(code)
      import
      character(kind=c_char), intent(in) :: path(*)
      type(sieva_options), intent(in) :: options
      type(c_ptr), intent(inout) :: source
      integer(c_int32_t) :: code
    end function

    subroutine c_sieva_close(source) bind(c, name='sieva_close')
      import
      type(c_ptr), value :: source
    end subroutine

    function c_sieva_array_find(source, name, number) bind(c, name='sieva_array_find') result(code)
      import
      type(c_ptr), value :: source
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), intent(out) :: number
      integer(c_int32_t) :: code
    end function

    function c_sieva_array_describe(source, number, array) bind(c, name='sieva_array_describe') result(code)
      import
      type(c_ptr), value :: source
      integer(c_int64_t), value :: number
      type(sieva_array), intent(out) :: array
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_create(source, array, op, kind, value, query) bind(c, name='sieva_query_create') result(code)
      import
      type(c_ptr), value :: source
      character(kind=c_char), intent(in) :: array(*)
      integer(c_int32_t), value :: op
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: value
      type(c_ptr), intent(inout) :: query
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_text(source, condition, query) bind(c, name='sieva_query_text') result(code)
      import
      type(c_ptr), value :: source
      character(kind=c_char), intent(in) :: condition(*)
      type(c_ptr), intent(inout) :: query
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_all(source, array, query) bind(c, name='sieva_query_all') result(code)
      import
      type(c_ptr), value :: source
      character(kind=c_char), intent(in) :: array(*)
      type(c_ptr), intent(inout) :: query
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_and(a, b, query) bind(c, name='sieva_query_and') result(code)
      import
      type(c_ptr), value :: a
      type(c_ptr), value :: b
      type(c_ptr), intent(inout) :: query
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_or(a, b, query) bind(c, name='sieva_query_or') result(code)
      import
      type(c_ptr), value :: a
      type(c_ptr), value :: b
      type(c_ptr), intent(inout) :: query
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_not(a, query) bind(c, name='sieva_query_not') result(code)
      import
      type(c_ptr), value :: a
      type(c_ptr), intent(inout) :: query
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_set_region(query, array, boxes, rank, starts, counts) &
      bind(c, name='sieva_query_set_region') result(code)
      import
      type(c_ptr), value :: query
      character(kind=c_char), intent(in) :: array(*)
      integer(c_int64_t), value :: boxes
      integer(c_int32_t), value :: rank
      integer(c_int64_t), intent(in) :: starts(*)
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_nhits(query, nhits) bind(c, name='sieva_query_nhits') result(code)
      import
      type(c_ptr), value :: query
      integer(c_int64_t), intent(out) :: nhits
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_selection(query, selection) bind(c, name='sieva_query_selection') result(code)
      import
      type(c_ptr), value :: query
      type(c_ptr), intent(inout) :: selection
      integer(c_int32_t) :: code
    end function

    function c_sieva_query_histogram(query, array, bins, counts, edges) bind(c, name='sieva_query_histogram') result(code)
      import
      type(c_ptr), value :: query
      character(kind=c_char), intent(in) :: array(*)
      integer(c_int64_t), value :: bins
      integer(c_int64_t), intent(out) :: counts(*)
      real(c_double), intent(out) :: edges(*)
      integer(c_int32_t) :: code
    end function

    subroutine c_sieva_query_free(query) bind(c, name='sieva_query_free')
      import
      type(c_ptr), value :: query
    end subroutine

    function c_sieva_selection_nhits(selection, nhits) bind(c, name='sieva_selection_nhits') result(code)
      import
      type(c_ptr), value :: selection
      integer(c_int64_t), intent(out) :: nhits
      integer(c_int32_t) :: code
    end function

    function c_sieva_selection_shape(selection, rank, lengths, capacity) bind(c, name='sieva_selection_shape') result(code)
      import
      type(c_ptr), value :: selection
      integer(c_int32_t), intent(inout) :: rank
      type(c_ptr), value :: lengths
      integer(c_int32_t), value :: capacity
      integer(c_int32_t) :: code
    end function

    function c_sieva_selection_positions(selection, first, capacity, positions, found) &
      bind(c, name='sieva_selection_positions') result(code)
      import
      type(c_ptr), value :: selection
      integer(c_int64_t), value :: first
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(out) :: positions(*)
      integer(c_int64_t), intent(out) :: found
      integer(c_int32_t) :: code
    end function

    function c_sieva_selection_coords(selection, first, capacity, coords, found) &
      bind(c, name='sieva_selection_coords') result(code)
      import
      type(c_ptr), value :: selection
      integer(c_int64_t), value :: first
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(out) :: coords(*)
      integer(c_int64_t), intent(out) :: found
      integer(c_int32_t) :: code
    end function

    subroutine c_sieva_selection_free(selection) bind(c, name='sieva_selection_free')
      import
      type(c_ptr), value :: selection
    end subroutine

    function c_sieva_read(selection, array, kind, values, capacity, missing, found) bind(c, name='sieva_read') result(code)
      import
      type(c_ptr), value :: selection
      character(kind=c_char), intent(in) :: array(*)
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: values
      integer(c_int64_t), value :: capacity
      type(c_ptr), value :: missing
      integer(c_int64_t), intent(out) :: found
      integer(c_int32_t) :: code
    end function

    function c_sieva_read_box(source, array, rank, start, extent, stored, kind, values, capacity, missing, found) &
      bind(c, name='sieva_read_box') result(code)
      import
      type(c_ptr), value :: source
      character(kind=c_char), intent(in) :: array(*)
      integer(c_int32_t), value :: rank
      integer(c_int64_t), intent(in) :: start(*)
      integer(c_int64_t), intent(in) :: extent(*)
      integer(c_int32_t), value :: stored
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: values
      integer(c_int64_t), value :: capacity
      type(c_ptr), value :: missing
      integer(c_int64_t), intent(out) :: found
      integer(c_int32_t) :: code
    end function
  end interface
end module
