! What the modules for communicators share: handles and errors.
module sieva_mpi_base
  use, intrinsic :: iso_c_binding
  use sieva_base, only: sieva_text_of
  implicit none
  private

  public :: sieva_mpi_source, sieva_mpi_query
  public :: sieva_mpi_error_text, sieva_mpi_error_rank, tell

  ! A source that all ranks have opened, to be closed by sieva_mpi_close().
  type :: sieva_mpi_source
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! A question of all ranks, to be freed by sieva_mpi_query_free().
  type :: sieva_mpi_query
    type(c_ptr) :: handle = c_null_ptr
  end type

  interface
    function c_error_message() bind(c, name='sieva_mpi_error_message') result(text)
      import
      type(c_ptr) :: text
    end function

    function c_error_rank() bind(c, name='sieva_mpi_error_rank') result(rank)
      import
      integer(c_int32_t) :: rank
    end function

    subroutine c_end() bind(c, name='sieva_mpi_end_f')
    end subroutine
  end interface

contains

  ! What the last call that failed said, with the number of the rank: "rank 2: ...".
  function sieva_mpi_error_text() result(text)
    character(len=:), allocatable :: text
    text = sieva_text_of(c_error_message())
  end function

  ! The rank that failed.
  function sieva_mpi_error_rank() result(rank)
    integer(c_int32_t) :: rank
    rank = c_error_rank()
  end function

  ! Hands a status on, or ends the program where nobody looks at it.
  subroutine tell(code, status)
    integer(c_int32_t), intent(in) :: code
    integer(c_int32_t), intent(out), optional :: status
    if (present(status)) then
      status = code
    else if (code /= 0) then
      call c_end()
    end if
  end subroutine

end module
