! Selections of collections: the objects of a collection that there are hits in.
module sieva_collections
  use, intrinsic :: iso_c_binding
  use sieva_base, only: sieva_selection, sieva_text_of, tell
  implicit none
  private

  public :: sieva_selection_objects, sieva_selection_object, sieva_selection_of_object

  ! sieva_object
  type, bind(c) :: object_of_c
    type(c_ptr) :: source
    type(c_ptr) :: path
    integer(c_int32_t) :: kind
    integer(c_int32_t) :: reserved
  end type

  interface
    function c_objects(selection, objects) bind(c, name='sieva_selection_objects') result(code)
      import
      type(c_ptr), value :: selection
      integer(c_int64_t), intent(inout) :: objects
      integer(c_int32_t) :: code
    end function

    function c_object(selection, index, object, number, nhits) bind(c, name='sieva_selection_object') result(code)
      import
      type(c_ptr), value :: selection
      integer(c_int64_t), value :: index
      type(object_of_c), intent(inout) :: object
      integer(c_int64_t), intent(inout) :: number, nhits
      integer(c_int32_t) :: code
    end function

    function c_of_object(selection, index, object) bind(c, name='sieva_selection_of_object') result(code)
      import
      type(c_ptr), value :: selection
      integer(c_int64_t), value :: index
      type(c_ptr), intent(inout) :: object
      integer(c_int32_t) :: code
    end function
  end interface

contains

  ! The number of objects that a selection of a collection has hits in. Positions and values come object by object; positions are
  ! those of the rows of their object.
  subroutine sieva_selection_objects(selection, objects, status)
    type(sieva_selection), intent(in) :: selection
    integer(c_int64_t), intent(out) :: objects
    integer(c_int32_t), intent(out), optional :: status
    objects = 0
    call tell(c_objects(selection%handle, objects), status)
  end subroutine

  ! Object number `index` of these, from 1: its file, its path there, and how many of the hits are its own; `number` is that among
  ! all objects of the query.
  subroutine sieva_selection_object(selection, index, source, path, hits, number, status)
    type(sieva_selection), intent(in) :: selection
    integer(c_int64_t), intent(in) :: index
    character(len=:), allocatable, intent(out) :: source, path
    integer(c_int64_t), intent(out) :: hits
    integer(c_int64_t), intent(out), optional :: number
    integer(c_int32_t), intent(out), optional :: status
    type(object_of_c) :: found
    integer(c_int64_t) :: before
    integer(c_int32_t) :: code
    hits = 0
    before = 0
    source = ''
    path = ''
    code = c_object(selection%handle, index - 1, found, before, hits)
    if (code == 0) then
      source = sieva_text_of(found%source)
      path = sieva_text_of(found%path)
    end if
    if (present(number)) number = before + 1
    call tell(code, status)
  end subroutine

  ! The hits in object number `index` of these, as a selection of its file: with shape and coordinates.
  subroutine sieva_selection_of_object(selection, index, object, status)
    type(sieva_selection), intent(in) :: selection
    integer(c_int64_t), intent(in) :: index
    type(sieva_selection), intent(out) :: object
    integer(c_int32_t), intent(out), optional :: status
    call tell(c_of_object(selection%handle, index - 1, object%handle), status)
  end subroutine

end module
