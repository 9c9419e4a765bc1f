//! The functions of `adios2_c.h` that are called, as they are declared there.

use std::ffi::{c_char, c_int, c_void};
use std::marker::{PhantomData, PhantomPinned};

/// What the library hands out, and only it looks into.
#[repr(C)]
pub struct Opaque {
    _inside: [u8; 0],
    _neither_sent_nor_moved: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `adios2_mode_readRandomAccess`.
pub const READ_RANDOM_ACCESS: c_int = 6;
/// `adios2_mode_sync`.
pub const SYNC: c_int = 5;
/// `adios2_shapeid_global_value`.
pub const GLOBAL_VALUE: c_int = 0;
/// `adios2_shapeid_global_array`.
pub const GLOBAL_ARRAY: c_int = 1;
/// `adios2_shapeid_joined_array`.
pub const JOINED_ARRAY: c_int = 2;

/// `union adios2_PrimitiveStdtypeUnion`, as long and as aligned as its `long double`.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct Value(pub [u8; 16]);

/// `adios2_blockinfo`.
#[repr(C)]
pub struct BlockInfo {
    pub writer: c_int,
    pub block: usize,
    pub start: *const usize,
    pub count: *const usize,
    pub min: Value,
    pub max: Value,
    pub value: Value,
}

/// `adios2_varinfo`.
#[repr(C)]
pub struct VariableInfo {
    pub dims: c_int,
    pub shape: *const usize,
    pub is_value: c_int,
    pub is_reverse_dims: c_int,
    pub blocks: usize,
    pub block_infos: *const BlockInfo,
}

/// Declares the table of functions, and how it is filled from a library.
macro_rules! functions {
    ({ $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?,)* }
     optional { $($optional:ident: fn($($given:ty),*) $(-> $told:ty)?,)* }) => {
        /// The functions, by their names without `adios2_`; without those that are optional, texts and
        /// blocks are not told.
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $(pub $optional: Option<unsafe extern "C" fn($($given),*) $(-> $told)?>,)*
        }

        impl Functions {
            /// Those of a library.
            ///
            /// # Errors
            /// Where one is missing that no version of the library lacks.
            ///
            /// # Safety
            /// The library is that of ADIOS2, and stays loaded as long as the functions are used.
            pub unsafe fn of(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the types are those that the library's header declares; the caller vouches for the library.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!("adios2_", stringify!($name), "\0").as_bytes())?,)*
                        $($optional: library
                            .get(concat!("adios2_", stringify!($optional), "\0").as_bytes())
                            .ok()
                            .map(|found| *found),)*
                    })
                }
            }
        }
    };
}

functions! { {
    init_serial: fn() -> *mut Opaque,
    declare_io: fn(*mut Opaque, *const c_char) -> *mut Opaque,
    set_engine: fn(*mut Opaque, *const c_char) -> c_int,
    open: fn(*mut Opaque, *const c_char, c_int) -> *mut Opaque,
    engine_get_type: fn(*mut c_char, *mut usize, *const Opaque) -> c_int,
    steps: fn(*mut usize, *const Opaque) -> c_int,
    close: fn(*mut Opaque) -> c_int,
    finalize: fn(*mut Opaque) -> c_int,
    available_variables: fn(*mut Opaque, *mut usize) -> *mut *mut c_char,
    available_attributes: fn(*mut Opaque, *mut usize) -> *mut *mut c_char,
    inquire_variable: fn(*mut Opaque, *const c_char) -> *mut Opaque,
    variable_type_string: fn(*mut c_char, *mut usize, *const Opaque) -> c_int,
    variable_shapeid: fn(*mut c_int, *const Opaque) -> c_int,
    variable_ndims: fn(*mut usize, *const Opaque) -> c_int,
    variable_shape: fn(*mut usize, *const Opaque) -> c_int,
    variable_steps: fn(*mut usize, *const Opaque) -> c_int,
    set_step_selection: fn(*mut Opaque, usize, usize) -> c_int,
    set_selection: fn(*mut Opaque, usize, *const usize, *const usize) -> c_int,
    selection_size: fn(*mut usize, *const Opaque) -> c_int,
    get: fn(*mut Opaque, *mut Opaque, *mut c_void, c_int) -> c_int,
    inquire_blockinfo: fn(*mut Opaque, *mut Opaque, usize) -> *mut VariableInfo,
    free_blockinfo: fn(*mut VariableInfo),
    inquire_attribute: fn(*mut Opaque, *const c_char) -> *mut Opaque,
    attribute_type_string: fn(*mut c_char, *mut usize, *const Opaque) -> c_int,
    attribute_is_value: fn(*mut c_int, *const Opaque) -> c_int,
    attribute_size: fn(*mut usize, *const Opaque) -> c_int,
    attribute_data: fn(*mut c_void, *mut usize, *const Opaque) -> c_int,
} optional {
    get_string: fn(*mut Opaque, *mut Opaque, *mut c_char, *mut usize) -> c_int,
    attribute_string_data: fn(*const Opaque, *mut c_char, *mut usize) -> c_int,
    attribute_string_data_array: fn(*const Opaque, *mut *mut c_char, *mut usize) -> c_int,
} }
