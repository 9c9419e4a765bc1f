! Indexes that all ranks build together.
module sieva_mpi_index
  use, intrinsic :: iso_c_binding
  use sieva_mpi_base
  implicit none
  private

  public :: sieva_mpi_index_build, sieva_zonemap, sieva_bitmap, sieva_sorted

  ! Kinds of index, to be added.
  integer(c_int32_t), parameter :: sieva_zonemap = 1, sieva_bitmap = 2, sieva_sorted = 4

  ! sieva_index_options
  type, bind(c) :: index_options
    integer(c_int64_t) :: size = 0
    integer(c_int64_t) :: memory = 0
    integer(c_int32_t) :: jobs = 0
    integer(c_int32_t) :: precision = 0
    type(c_ptr) :: columns = c_null_ptr
    integer(c_int64_t) :: lock_timeout_ms = 0
    type(c_ptr) :: stop = c_null_ptr
    type(c_funptr) :: progress = c_null_funptr
    type(c_ptr) :: progress_context = c_null_ptr
    integer(c_int64_t) :: region_size = 0
  end type

  ! sieva_index_report
  type, bind(c) :: index_report
    integer(c_int64_t) :: size = 0
    integer(c_int64_t) :: regions_built = 0
    integer(c_int64_t) :: regions_kept = 0
    integer(c_int64_t) :: regions_renewed = 0
    integer(c_int64_t) :: bytes_read = 0
    integer(c_int64_t) :: replicas_built = 0
    integer(c_int64_t) :: unreadable = 0
    integer(c_int64_t) :: regions_verified = 0
    integer(c_int64_t) :: rows_verified = 0
    integer(c_int64_t) :: differences = 0
  end type

  interface
    function c_build(source, arrays, count, kinds, options, report) bind(c, name='sieva_mpi_index_build') result(code)
      import
      type(c_ptr), value :: source
      type(c_ptr), intent(in) :: arrays(*)
      integer(c_int64_t), value :: count
      integer(c_int32_t), value :: kinds
      type(index_options), intent(in) :: options
      type(index_report), intent(inout) :: report
      integer(c_int32_t) :: code
    end function
  end interface

contains

  ! Builds indexes of arrays (of no name: of all numeric ones) by all ranks, as far as they are not there. kinds: a sum of sieva_zonemap,
  ! sieva_bitmap and sieva_sorted. regions, replicas: how many were built. memory in bytes and jobs are those of each rank; without
  ! them it has its share of its node. precision: significant digits of the bounds of a bitmap's bins. region_size: bytes of a region,
  ! about; without it as the index that there is, else some 256 KiB.
  subroutine sieva_mpi_index_build(source, arrays, kinds, regions, replicas, status, memory, jobs, precision, region_size)
    type(sieva_mpi_source), intent(in) :: source
    character(len=*), intent(in) :: arrays(:)
    integer(c_int32_t), intent(in) :: kinds
    integer(c_int64_t), intent(out), optional :: regions, replicas
    integer(c_int32_t), intent(out), optional :: status
    integer(c_int64_t), intent(in), optional :: memory, region_size
    integer(c_int), intent(in), optional :: jobs, precision
    character(kind=c_char), allocatable, target :: texts(:)
    type(c_ptr), allocatable :: names(:)
    type(index_options) :: options
    type(index_report) :: report
    integer(c_int32_t) :: code
    call name_all(arrays, texts, names)
    options%size = c_sizeof(options)
    if (present(memory)) options%memory = memory
    if (present(jobs)) options%jobs = jobs
    if (present(precision)) options%precision = precision
    if (present(region_size)) options%region_size = region_size
    report%size = c_sizeof(report)
    code = c_build(source%handle, names, size(arrays, kind=c_int64_t), kinds, options, report)
    if (present(regions)) regions = report%regions_built
    if (present(replicas)) replicas = report%replicas_built
    call tell(code, status)
  end subroutine

  ! The names as C has them: one behind the other, each with its NUL, and where each begins.
  subroutine name_all(arrays, texts, names)
    character(len=*), intent(in) :: arrays(:)
    character(kind=c_char), allocatable, target, intent(out) :: texts(:)
    type(c_ptr), allocatable, intent(out) :: names(:)
    integer :: i, k, at
    allocate (texts(size(arrays) * (len(arrays) + 1) + 1), names(size(arrays) + 1))
    at = 1
    names = c_null_ptr
    do i = 1, size(arrays)
      names(i) = c_loc(texts(at))
      do k = 1, len_trim(arrays(i))
        texts(at) = arrays(i)(k:k)
        at = at + 1
      end do
      texts(at) = c_null_char
      at = at + 1
    end do
  end subroutine

end module
