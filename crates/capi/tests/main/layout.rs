//! Numbers and structs of the header are those of the library: a program in C asserts each of them.

use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

use sieva_c::attributes::Described;
use sieva_c::catalog::Added;
use sieva_c::describe::{Array, Dim};
use sieva_c::group_passes::{Followed, PACKING, ProduceOptions, Produced};
use sieva_c::index_options::{IndexOptions, IndexReport};
use sieva_c::objects::Object;
use sieva_c::options::{FunctionOf, Options};
use sieva_c::plan::{Price, Stats};
use sieva_c::read_many::Part;
use sieva_c::result::ResultOptions;
use sieva_c::{guard, index, objects, status, types};

use crate::toolchain::{root, run, scratch};

/// Adds an assertion of C11.
fn assert_in_c(program: &mut String, what: &str, value: i64) {
    writeln!(program, "_Static_assert({what} == {value}, \"{what} is {value}\");").unwrap();
}

#[test]
fn numbers_and_layouts_agree() {
    let mut c = String::from("#include <sieva.h>\n");
    for (name, code) in status::CODES {
        let name = name.to_str().unwrap().to_uppercase().replace('-', "_");
        assert_in_c(&mut c, &format!("SIEVA_ERROR_{name}"), code.into());
    }
    assert_in_c(&mut c, "SIEVA_OK", status::OK.into());
    assert_in_c(&mut c, "SIEVA_PENDING", status::PENDING.into());
    for (dtype, number) in types::TYPES {
        let name = format!("{dtype:?}").to_uppercase();
        assert_in_c(&mut c, &format!("SIEVA_{name}"), number.into());
    }
    for (op, number) in types::OPERATORS {
        let name = match op.symbol() {
            ">" => "GT",
            ">=" => "GE",
            "<" => "LT",
            "<=" => "LE",
            "=" => "EQ",
            _ => "NE",
        };
        assert_in_c(&mut c, &format!("SIEVA_{name}"), number.into());
    }
    for (access, number) in types::ACCESS {
        assert_in_c(&mut c, &format!("SIEVA_ACCESS_{}", access.name().to_uppercase()), number.into());
    }
    for ((name, _), (_, number)) in sieva::FetchWay::NAMED.iter().zip(types::FETCH) {
        assert_in_c(&mut c, &format!("SIEVA_FETCH_{}", name.to_uppercase()), number.into());
    }
    for (kind, number) in index::KINDS {
        assert_in_c(&mut c, &format!("SIEVA_INDEX_{}", format!("{kind:?}").to_uppercase()), number.into());
    }
    for (kind, number) in objects::KINDS {
        assert_in_c(&mut c, &format!("SIEVA_{}S", format!("{kind:?}").to_uppercase()), number.into());
    }
    for (name, purpose) in guard::PURPOSES {
        assert_in_c(&mut c, &format!("SIEVA_PURPOSE_{name}"), purpose as i64);
    }
    for (packing, number) in PACKING {
        let name = format!("{packing:?}").to_uppercase();
        assert_in_c(&mut c, &format!("SIEVA_PACKING_{name}"), number.into());
    }
    assert_in_c(&mut c, "SIEVA_OBJECTS", objects::ANY.into());
    macro_rules! layout {
        ($rust:ty, $c:literal, $($field:ident),*) => {
            assert_in_c(&mut c, concat!("sizeof(", $c, ")"), size_of::<$rust>() as i64);
            $(assert_in_c(
                &mut c,
                concat!("offsetof(", $c, ", ", stringify!($field), ")"),
                offset_of!($rust, $field) as i64,
            );)*
        };
    }
    layout!(
        Options,
        "sieva_options",
        memory,
        threads,
        access,
        store,
        external_root,
        valid_range,
        no_learning,
        dims,
        isolated,
        cross,
        worker,
        user,
        subject,
        stop,
        allow,
        may_open,
        may_open_context,
        public_only,
        reserved2,
        spill,
        fetch,
        reserved3,
        join,
        manifest,
        manifest_bytes,
        striping,
        functions,
        function_count
    );
    layout!(FunctionOf, "sieva_function", name, code, bytes);
    layout!(
        IndexOptions,
        "sieva_index_options",
        memory,
        jobs,
        precision,
        columns,
        lock_timeout_ms,
        stop,
        progress,
        progress_context,
        region_size
    );
    layout!(
        IndexReport,
        "sieva_index_report",
        regions_built,
        regions_kept,
        regions_renewed,
        bytes_read,
        replicas_built,
        unreadable,
        regions_verified,
        rows_verified,
        differences
    );
    layout!(ResultOptions, "sieva_result_options", format, spool, spool_limit);
    layout!(
        Stats,
        "sieva_stats",
        tiles_scanned,
        tiles_skipped,
        bytes_read,
        requests,
        index_bytes_read,
        select_seconds
    );
    layout!(Price, "sieva_price", rows, bytes_read, bytes_returned, requests, seconds);
    layout!(Array, "sieva_array", path, value_type, stored_type, rank, attributes, shape, dims);
    layout!(
        Part,
        "sieva_part",
        array,
        selection,
        start,
        count,
        rank,
        stored,
        code,
        values,
        capacity,
        missing,
        read
    );
    layout!(
        ProduceOptions,
        "sieva_produce_options",
        memory,
        ask_memory,
        result_size,
        object_size,
        ask_time,
        prices,
        settle_ms,
        threads,
        packing,
        spool,
        stop
    );
    layout!(
        Produced,
        "sieva_produced",
        steps,
        answers,
        failed,
        objects,
        bytes,
        deleted,
        waiting,
        deferred,
        troubles
    );
    layout!(Followed, "sieva_followed", files, bytes, failures, troubles);
    layout!(Dim, "sieva_dimension", path, length, unlimited, reserved);
    layout!(Described, "sieva_attribute", name, count, reserved);
    layout!(Added, "sieva_added", added, replaced, unchanged, objects, others, damaged, unreadable);
    layout!(Object, "sieva_object", source, path, kind, reserved);
    let file = scratch("layout").join("layout.c");
    std::fs::write(&file, c).unwrap();
    run(Command::new("cc").args(["-std=c11", "-fsyntax-only", "-I"]).arg(root().join("include")).arg(file));
}
