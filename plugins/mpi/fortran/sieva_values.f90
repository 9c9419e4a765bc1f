! Values of hits and of boxes, by the type of the array that they go to.
module sieva_values
  use, intrinsic :: iso_c_binding
  use sieva_c
  use sieva_base, only: sieva_source, sieva_selection, sieva_c_text, tell, reversed
  implicit none
  private

  public :: sieva_read, sieva_read_box

  ! The values of an array, or an expression, at a selection's hits: sieva_read(selection, 'TEMP', values [, missing] [, status]).
  ! `values` has room for all hits and is of a type that holds each value exactly. Missing values are NaN, or 0 of an integer
  ! type, which must then have `missing`: 1 where a value is missing.
  interface sieva_read
    module procedure read_i8, read_i16, read_i32, read_i64, read_r32, read_r64
  end interface

  ! A box of an array, its elements in array element order: sieva_read_box(source, 'TEMP', start, extent, values [, status]).
  ! `start` begins at 1; the first dimension is the fastest.
  interface sieva_read_box
    module procedure box_i8, box_i16, box_i32, box_i64, box_r32, box_r64
  end interface

contains

  ! ---- Values, by the type they are read as ----------------------------------------------------------------------

  subroutine read_any(selection, array, kind, values, room, missing, status)
    type(sieva_selection), intent(in) :: selection
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: values
    integer(c_int64_t), intent(in) :: room
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t) :: least, count
    type(c_ptr) :: marks
    marks = c_null_ptr
    least = room
    if (present(missing)) then
      marks = c_loc(missing)
      least = min(room, size(missing, kind=c_int64_t))
    end if
    call tell(c_sieva_read(selection%handle, sieva_c_text(array), kind, values, least, marks, count), status)
  end subroutine

  subroutine box_any(source, array, start, extent, kind, values, room, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(in) :: start(:), extent(:)
    integer(c_int32_t), intent(in) :: kind
    type(c_ptr), intent(in) :: values
    integer(c_int64_t), intent(in) :: room
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t) :: count
    integer(c_int32_t) :: code
    code = c_sieva_read_box(source%handle, sieva_c_text(array), int(size(start), c_int32_t), reversed(start - 1), &
                            reversed(extent), 0_c_int32_t, kind, values, room, c_null_ptr, count)
    call tell(code, status)
  end subroutine

  subroutine read_i8(selection, array, values, missing, status)
    type(sieva_selection), intent(in) :: selection
    character(len=*), intent(in) :: array
    integer(c_int8_t), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int32_t), intent(out), optional :: status
    call read_any(selection, array, sieva_i8, c_loc(values), size(values, kind=c_int64_t), missing, status)
  end subroutine

  subroutine read_i16(selection, array, values, missing, status)
    type(sieva_selection), intent(in) :: selection
    character(len=*), intent(in) :: array
    integer(c_int16_t), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int32_t), intent(out), optional :: status
    call read_any(selection, array, sieva_i16, c_loc(values), size(values, kind=c_int64_t), missing, status)
  end subroutine

  subroutine read_i32(selection, array, values, missing, status)
    type(sieva_selection), intent(in) :: selection
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int32_t), intent(out), optional :: status
    call read_any(selection, array, sieva_i32, c_loc(values), size(values, kind=c_int64_t), missing, status)
  end subroutine

  subroutine read_i64(selection, array, values, missing, status)
    type(sieva_selection), intent(in) :: selection
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int32_t), intent(out), optional :: status
    call read_any(selection, array, sieva_i64, c_loc(values), size(values, kind=c_int64_t), missing, status)
  end subroutine

  subroutine read_r32(selection, array, values, missing, status)
    type(sieva_selection), intent(in) :: selection
    character(len=*), intent(in) :: array
    real(c_float), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int32_t), intent(out), optional :: status
    call read_any(selection, array, sieva_f32, c_loc(values), size(values, kind=c_int64_t), missing, status)
  end subroutine

  subroutine read_r64(selection, array, values, missing, status)
    type(sieva_selection), intent(in) :: selection
    character(len=*), intent(in) :: array
    real(c_double), intent(out), target, contiguous :: values(:)
    integer(c_int8_t), intent(out), target, contiguous, optional :: missing(:)
    integer(c_int32_t), intent(out), optional :: status
    call read_any(selection, array, sieva_f64, c_loc(values), size(values, kind=c_int64_t), missing, status)
  end subroutine

  subroutine box_i8(source, array, start, extent, values, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(in) :: start(:), extent(:)
    integer(c_int8_t), intent(out), target, contiguous :: values(:)
    integer(c_int32_t), intent(out), optional :: status
    call box_any(source, array, start, extent, sieva_i8, c_loc(values), size(values, kind=c_int64_t), status)
  end subroutine

  subroutine box_i16(source, array, start, extent, values, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(in) :: start(:), extent(:)
    integer(c_int16_t), intent(out), target, contiguous :: values(:)
    integer(c_int32_t), intent(out), optional :: status
    call box_any(source, array, start, extent, sieva_i16, c_loc(values), size(values, kind=c_int64_t), status)
  end subroutine

  subroutine box_i32(source, array, start, extent, values, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(in) :: start(:), extent(:)
    integer(c_int32_t), intent(out), target, contiguous :: values(:)
    integer(c_int32_t), intent(out), optional :: status
    call box_any(source, array, start, extent, sieva_i32, c_loc(values), size(values, kind=c_int64_t), status)
  end subroutine

  subroutine box_i64(source, array, start, extent, values, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(in) :: start(:), extent(:)
    integer(c_int64_t), intent(out), target, contiguous :: values(:)
    integer(c_int32_t), intent(out), optional :: status
    call box_any(source, array, start, extent, sieva_i64, c_loc(values), size(values, kind=c_int64_t), status)
  end subroutine

  subroutine box_r32(source, array, start, extent, values, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(in) :: start(:), extent(:)
    real(c_float), intent(out), target, contiguous :: values(:)
    integer(c_int32_t), intent(out), optional :: status
    call box_any(source, array, start, extent, sieva_f32, c_loc(values), size(values, kind=c_int64_t), status)
  end subroutine

  subroutine box_r64(source, array, start, extent, values, status)
    type(sieva_source), intent(in) :: source
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(in) :: start(:), extent(:)
    real(c_double), intent(out), target, contiguous :: values(:)
    integer(c_int32_t), intent(out), optional :: status
    call box_any(source, array, start, extent, sieva_f64, c_loc(values), size(values, kind=c_int64_t), status)
  end subroutine

end module
