! What the modules of sieva share: handles, errors, texts and options between Fortran and C.
module sieva_base
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use sieva_c
  implicit none
  private

  public :: sieva_source, sieva_query, sieva_selection
  public :: sieva_error_text, sieva_error_name, sieva_version
  public :: sieva_options, sieva_make_options, sieva_c_text, sieva_text_of
  public :: tell, own_error, reversed

  ! An open file, to be closed by sieva_close().
  type :: sieva_source
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! A condition on the values of a source, to be freed by sieva_query_free().
  type :: sieva_query
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! The hits of a query, to be freed by sieva_selection_free().
  type :: sieva_selection
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! SIEVA_ERROR_INVALID_VALUE
  integer(c_int32_t), parameter :: invalid_value = 13

  ! What these modules said of the last error, where it was theirs.
  character(len=:), allocatable, save :: own_text

contains

  ! ---- Errors -----------------------------------------------------------------------------------------------------

  ! What the last call that failed said.
  function sieva_error_text() result(text)
    character(len=:), allocatable :: text
    if (allocated(own_text)) then
      text = own_text
    else
      text = sieva_text_of(c_sieva_error_message())
    end if
  end function

  ! An error that these modules find themselves.
  function own_error(text) result(code)
    character(len=*), intent(in) :: text
    integer(c_int32_t) :: code
    own_text = text
    code = invalid_value
  end function

  ! The name of a code, such as "unknown-array".
  function sieva_error_name(code) result(text)
    integer(c_int32_t), intent(in) :: code
    character(len=:), allocatable :: text
    text = sieva_text_of(c_sieva_error_name(code))
  end function

  ! The version of the library.
  function sieva_version() result(text)
    character(len=:), allocatable :: text
    text = sieva_text_of(c_sieva_version())
  end function

  ! Hands a status on, or ends the program where nobody looks at it.
  subroutine tell(code, status)
    integer(c_int32_t), intent(in) :: code
    integer(c_int32_t), intent(out), optional :: status
    if (code /= 0 .and. code /= invalid_value .and. allocated(own_text)) deallocate (own_text)
    if (present(status)) then
      status = code
    else if (code /= 0) then
      write (error_unit, '(a)') 'sieva: ' // sieva_error_text()
      error stop 1
    end if
  end subroutine

  ! A text of C.
  function sieva_text_of(at) result(text)
    type(c_ptr), intent(in) :: at
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer :: i
    call c_f_pointer(at, bytes, [c_strlen(at)])
    allocate (character(len=size(bytes)) :: text)
    do i = 1, size(bytes)
      text(i:i) = bytes(i)
    end do
  end function

  ! A text for C.
  pure function sieva_c_text(text) result(ended)
    character(len=*), intent(in) :: text
    character(len=:, kind=c_char), allocatable :: ended
    ended = trim(text) // c_null_char
  end function

  ! ---- Between Fortran and C ----------------------------------------------------------------------------------------

  ! Options of opening: memory in bytes, threads; `dims` must stay as long as they are used.
  subroutine sieva_make_options(options, memory, threads, dims)
    type(sieva_options), intent(out) :: options
    integer(c_int64_t), intent(in), optional :: memory
    integer(c_int), intent(in), optional :: threads
    character(kind=c_char), intent(in), target, optional :: dims(*)
    options%size = c_sizeof(options)
    if (present(memory)) options%memory = memory
    if (present(threads)) options%threads = threads
    if (present(dims)) options%dims = c_loc(dims)
  end subroutine

  ! The other order of dimensions.
  pure function reversed(lengths) result(other)
    integer(c_int64_t), intent(in) :: lengths(:)
    integer(c_int64_t) :: other(size(lengths))
    other = lengths(size(lengths):1:-1)
  end function

end module
