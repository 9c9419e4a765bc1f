//! The conformance suite: every case of conformance/cases, asked through the Rust API.
//!
//! The files are written by `conformance/generate.py` (`make conformance`).
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use serde_json::{Value as Json, json};
use sieva::{
    Access, BuildOptions, Bx, Column, ErrorKind, IndexKind, Learn, OpenOptions, Partial, Query, QueryOptions,
    RunOptions, Session, Source, Task, TaskKind, with_data,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files() -> PathBuf {
    std::env::var_os("SIEVA_CONFORMANCE_DIR").map_or_else(|| root().join("target/conformance"), PathBuf::from)
}

fn cases() -> Vec<(String, Json)> {
    let mut paths: Vec<_> =
        std::fs::read_dir(root().join("conformance/cases")).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        let cases: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let stem = path.file_stem().unwrap().to_string_lossy();
        let named = |case: &Json| (format!("{stem}/{}", case["name"].as_str().unwrap()), case.clone());
        out.extend(cases.as_array().unwrap().iter().map(named));
    }
    out
}

#[test]
fn every_case_has_its_answer() {
    let files = files();
    assert!(files.is_dir(), "{} is missing: `make conformance` writes the files", files.display());
    let cases = cases();
    assert!(cases.len() > 400, "{} cases", cases.len());
    let way = Way { store: None, access: Access::Auto, in_parts: false };
    let check =
        |(name, case): &(String, Json)| check(case, &files, &way).err().map(|why| format!("{name}: {why}"));
    let wrong: Vec<String> = cases.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Where augmentations are, and which of them are to be used.
struct Way {
    store: Option<PathBuf>,
    access: Access,
    /// Whether the work is done in tasks, cut anywhere and merged in any order.
    in_parts: bool,
}

#[test]
fn every_case_has_the_same_answer_by_every_access() {
    let (files, cases) = (files(), cases());
    let store = std::env::temp_dir().join(format!("sieva-conformance-{}", std::process::id()));
    let mut names: Vec<&str> = cases.iter().filter_map(|(_, case)| case["file"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().for_each(|name| index(&files.join(name), &store));
    for (access, least) in
        [(Access::Auto, 400), (Access::ZoneMap, 100), (Access::Bitmap, 100), (Access::Sorted, 60)]
    {
        let way = Way { store: Some(store.clone()), access, in_parts: false };
        let mut wrong = Vec::new();
        let mut answered = 0;
        for (name, case) in &cases {
            match check(case, &files, &way) {
                Err(why) if why.starts_with("no-index") => {}
                Err(why) => wrong.push(format!("{name}: {why}")),
                Ok(()) => answered += 1,
            }
        }
        assert!(wrong.is_empty(), "{access:?}: {} cases:\n{}", wrong.len(), wrong.join("\n"));
        assert!(answered >= least, "{access:?}: {answered} cases");
    }
    std::fs::remove_dir_all(store).unwrap();
}

#[test]
fn every_case_has_the_same_answer_in_parts() {
    let (files, way) = (files(), Way { store: None, access: Access::Auto, in_parts: true });
    let (mut wrong, mut answered) = (Vec::new(), 0);
    for (name, case) in &cases() {
        match check(case, &files, &way) {
            Err(why) if why.starts_with("unsupported") => {}
            Err(why) => wrong.push(format!("{name}: {why}")),
            Ok(()) => answered += 1,
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(answered >= 400, "{answered} cases");
}

/// The cases of each file in batches of up to seven, each batch run at once.
#[test]
fn every_case_has_the_same_answer_together() {
    let (files, cases) = (files(), cases());
    let way = Way { store: None, access: Access::Auto, in_parts: false };
    let mut sources: BTreeMap<String, Vec<&(String, Json)>> = BTreeMap::new();
    for named in &cases {
        let options = named.1.get("options").cloned().unwrap_or_default();
        sources.entry(format!("{} {options}", named.1["file"])).or_default().push(named);
    }
    let (mut wrong, mut together, mut size) = (Vec::new(), 0, 0);
    for of_file in sources.values() {
        let Ok(source) = open(&of_file[0].1, &files, &way) else { continue };
        let mut rest = &of_file[..];
        while !rest.is_empty() {
            size = size % 7 + 1;
            let (batch, others) = rest.split_at(size.min(rest.len()));
            rest = others;
            let asked: Vec<_> = batch.iter().map(|(_, case)| ask_of(case, &files, &way, &source)).collect();
            let queries: Vec<&Query> = asked.iter().flatten().collect();
            let ran = Session::default().run(&queries, &RunOptions::default()).unwrap();
            together += ran.stats.together;
            let evaluations: Vec<u64> = queries.iter().map(|q| q.stats().evaluations).collect();
            for (query, result) in queries.iter().zip(&ran.results) {
                if result.is_ok() && !query.is_grouped() {
                    query.count().ok();
                }
            }
            let again: Vec<u64> = queries.iter().map(|q| q.stats().evaluations).collect();
            // Rows that LIMIT bounds are not counted by a run.
            let counted =
                |i: &usize| !queries[*i].text().contains("LIMIT") && !queries[*i].text().contains("DISTINCT");
            assert!(
                (0..queries.len()).filter(counted).all(|i| evaluations[i] == again[i]),
                "{:?}",
                batch[0].0
            );
            for ((name, case), asked) in batch.iter().zip(asked) {
                wrong.extend(check_answer(case, asked).err().map(|why| format!("{name}: {why}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(together >= 100, "{together} queries were evaluated together");
}

/// The query, answered by tasks of random boxes, which travel as bytes and are merged in random order.
fn in_parts(query: &Query) -> sieva::Result<Query> {
    let kind = if query.is_grouped() { TaskKind::Groups } else { TaskKind::Selection };
    let mut random = query.text().bytes().fold(1_u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below.max(1)
    };
    let shape: Vec<u64> = query.rows().into_iter().map(|(_, n)| n).collect();
    let mut boxes = vec![Bx::whole(&shape)];
    for _ in 0..draw(9) {
        let at = draw(boxes.len() as u64) as usize;
        let axes: Vec<usize> = (0..shape.len()).filter(|&d| boxes[at].shape[d] > 1).collect();
        let Some(&axis) = axes.get(draw(axes.len() as u64) as usize) else { continue };
        let mut rest = boxes[at].clone();
        let cut = 1 + draw(rest.shape[axis] - 1);
        boxes[at].shape[axis] = cut;
        rest.start[axis] += cut;
        rest.shape[axis] -= cut;
        boxes.push(rest);
    }
    let mut found: Vec<Partial> = Vec::new();
    let tasks = if draw(4) == 0 {
        query.tasks(boxes.len())?
    } else {
        boxes.into_iter().map(|bx| query.task(kind, bx)).collect::<sieva::Result<_>>()?
    };
    for task in tasks {
        let task = Task::from_bytes(&task.to_bytes()?)?;
        let options = QueryOptions { threads: Some(1 + draw(2) as usize), ..QueryOptions::default() };
        let part = query.source().run_task(&task, &options)?;
        found.push(Partial::from_bytes(&part.to_bytes()?)?);
    }
    while found.len() > 1 {
        let part = found.swap_remove(draw(found.len() as u64) as usize);
        let at = draw(found.len() as u64) as usize;
        found[at].merge(part)?;
        let bytes = found[at].to_bytes()?;
        found[at] = Partial::from_bytes(&bytes)?;
    }
    query.finish(found.remove(0))
}

/// Makes every augmentation of every array of a file that can have it.
fn index(path: &Path, store: &Path) {
    let options = OpenOptions { store: Some(store.to_path_buf()), ..OpenOptions::default() };
    let Ok(source) = Source::open(path, &options) else { return };
    source.build_index(&[], &BuildOptions::default()).unwrap();
    for array in &source.schema().arrays {
        let sorted = BuildOptions { kinds: vec![IndexKind::Sorted], ..BuildOptions::default() };
        if let Err(e) = source.build_index(std::slice::from_ref(&array.path), &sorted) {
            let unable = [
                ErrorKind::TypeMismatch,
                ErrorKind::Unsupported,
                ErrorKind::CorruptFile,
                ErrorKind::FilterUnavailable,
                ErrorKind::LinkRefused,
            ];
            assert!(unable.contains(&e.kind()), "{}: {e}", path.display());
        }
    }
}

fn check(case: &Json, files: &Path, way: &Way) -> Result<(), String> {
    let mut asked = ask(case, files, way);
    if way.in_parts {
        asked = asked.and_then(|query| in_parts(&query));
        if let Err(e) = &asked
            && e.kind() == ErrorKind::Unsupported
            && case.get("error").is_none()
        {
            return Err(format!("unsupported: {e}"));
        }
    }
    check_answer(case, asked)
}

fn check_answer(case: &Json, asked: sieva::Result<Query>) -> Result<(), String> {
    if let Err(e) = &asked
        && e.kind() == ErrorKind::NoIndex
    {
        return Err(format!("no-index: {e}"));
    }
    if let Some(error) = case.get("error") {
        let e = match asked.and_then(|q| q.batches(100)?.collect::<sieva::Result<Vec<_>>>()) {
            Ok(_) => return Err("an answer where an error was expected".into()),
            Err(e) => e,
        };
        let said = format!("{} {}", e.message(), e.hint_text().unwrap_or(""));
        let (kind, message) = (error["kind"].as_str().unwrap(), error["message"].as_str().unwrap());
        return expect(e.kind().code() == kind && said.contains(message), || {
            format!("{}: {said}", e.kind().code())
        });
    }
    let query = asked.map_err(|e| e.to_string())?;
    if case.get("sql").is_some() { check_rows(case, &query) } else { check_selection(case, &query) }
}

fn ask(case: &Json, files: &Path, way: &Way) -> sieva::Result<Query> {
    ask_of(case, files, way, &open(case, files, way)?)
}

fn open(case: &Json, files: &Path, way: &Way) -> sieva::Result<Source> {
    let path = files.join(case["file"].as_str().unwrap());
    let given = case.get("options").cloned().unwrap_or_default();
    let mut options = OpenOptions {
        valid_range: given["valid_range"] == true,
        store: way.store.clone(),
        learn: Learn { share: 0.0, from: 0 },
        ..OpenOptions::default()
    };
    for (array, names) in given["dims"].as_object().into_iter().flatten() {
        let names = names.as_array().unwrap().iter().map(|n| n.as_str().unwrap().to_string());
        options.dims.push((array.clone(), names.collect()));
    }
    Source::open(&path, &options)
}

fn ask_of(case: &Json, files: &Path, way: &Way, source: &Source) -> sieva::Result<Query> {
    let path = files.join(case["file"].as_str().unwrap());
    let cross = case.get("options").is_some_and(|given| given["cross"] == true);
    let asked = QueryOptions { access: way.access, cross, ..QueryOptions::default() };
    if let Some(sql) = case.get("sql") {
        let sql = sql.as_str().unwrap().replace("{file}", &path.display().to_string());
        return source.sql(&sql, &asked);
    }
    let reads = case.get("values").and_then(Json::as_object);
    let reads: Option<Vec<String>> = reads.map(|v| v.keys().cloned().collect());
    source.query(Some(case["where"].as_str().unwrap()), reads.as_deref(), &asked)
}

fn expect(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn check_selection(case: &Json, query: &Query) -> Result<(), String> {
    let selection = query.selection().map_err(|e| e.to_string())?;
    let rows = json!([selection.dims(), selection.shape()]);
    expect(rows == json!([case["dims"], case["shape"]]), || format!("rows {rows}"))?;
    let counted = query.count().map_err(|e| e.to_string())?;
    let found = json!([selection.len(), counted]);
    expect(found == json!([case["count"], case["count"]]), || format!("counts {found}"))?;
    if counted > 0 && !selection.dims().is_empty() {
        let positions: Vec<u64> = selection.iter().collect();
        let found = json!([positions.first(), positions.last(), positions.iter().sum::<u64>()]);
        let wanted = json!([case["first"], case["last"], case["sum"]]);
        expect(found == wanted, || format!("first, last, sum {found}, expected {wanted}"))?;
    }
    for (name, values) in case.get("values").and_then(Json::as_object).into_iter().flatten() {
        let got = column_json(&query.read(name).map_err(|e| e.to_string())?);
        expect(same(&got, values, 0.0), || format!("{name} = {got}, expected {values}"))?;
    }
    Ok(())
}

fn check_rows(case: &Json, query: &Query) -> Result<(), String> {
    let batches = query.batches(7).and_then(Iterator::collect::<sieva::Result<Vec<_>>>);
    let batches = batches.map_err(|e| e.to_string())?;
    let names: Vec<&str> = query.outputs().iter().map(|o| o.name.as_str()).collect();
    expect(json!(names) == case["columns"], || format!("columns {names:?}"))?;
    let rows = batches.iter().flat_map(|b| (0..b.num_rows()).map(|i| row(b, i)));
    let rows = Json::Array(rows.collect());
    let tolerance = case.get("tolerance").and_then(Json::as_f64).unwrap_or(0.0);
    expect(same(&rows, &case["rows"], tolerance), || format!("rows {rows}, expected {}", case["rows"]))
}

/// Whether two values are the same; numbers up to a relative tolerance, zeros with their sign.
fn same(got: &Json, want: &Json, tolerance: f64) -> bool {
    match (got, want) {
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, tolerance))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w, tolerance)))
        }
        (Json::Number(a), Json::Number(b)) => match (a.as_i128(), b.as_i128(), a.as_f64(), b.as_f64()) {
            (Some(a), Some(b), ..) => a == b,
            (_, _, Some(a), Some(b)) if tolerance == 0.0 => {
                a == b && a.is_sign_negative() == b.is_sign_negative()
            }
            (_, _, Some(a), Some(b)) => (a - b).abs() <= tolerance * b.abs(),
            _ => false,
        },
        _ => got == want,
    }
}

fn float(f: f64) -> Json {
    match f {
        f if f.is_nan() => Json::Null,
        f if f.is_infinite() => json!(if f > 0.0 { "inf" } else { "-inf" }),
        f => json!(f),
    }
}

fn column_json(column: &Column) -> Json {
    let valid = |i: usize| column.valid.as_ref().is_none_or(|v| v.get(i));
    let values: Vec<Json> = match &column.data {
        sieva::Data::F32(v) => v.iter().map(|&x| float(x.into())).collect(),
        sieva::Data::F64(v) => v.iter().map(|&x| float(x)).collect(),
        other => with_data!(other, v => v.iter().map(|x| json!(x)).collect()),
    };
    Json::Array(values.into_iter().enumerate().map(|(i, v)| if valid(i) { v } else { Json::Null }).collect())
}

fn row(batch: &RecordBatch, i: usize) -> Json {
    Json::Array(batch.columns().iter().map(|c| cell(c, i)).collect())
}

fn cell(array: &dyn Array, i: usize) -> Json {
    if array.is_null(i) {
        return Json::Null;
    }
    match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(i)),
        DataType::Int8 => json!(array.as_primitive::<Int8Type>().value(i)),
        DataType::Int16 => json!(array.as_primitive::<Int16Type>().value(i)),
        DataType::Int32 => json!(array.as_primitive::<Int32Type>().value(i)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(i)),
        DataType::UInt8 => json!(array.as_primitive::<UInt8Type>().value(i)),
        DataType::UInt16 => json!(array.as_primitive::<UInt16Type>().value(i)),
        DataType::UInt32 => json!(array.as_primitive::<UInt32Type>().value(i)),
        DataType::UInt64 => json!(array.as_primitive::<UInt64Type>().value(i)),
        DataType::Float32 => float(array.as_primitive::<Float32Type>().value(i).into()),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(i)),
        DataType::Utf8 => json!(array.as_string::<i32>().value(i)),
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            json!(iso(array.as_primitive::<TimestampMicrosecondType>().value(i)))
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>().value(i);
            Json::Array((0..list.len()).map(|k| cell(&list, k)).collect())
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            Json::Object(fields.iter().zip(columns).map(|(f, c)| (f.name().clone(), cell(c, i))).collect())
        }
        other => panic!("a column of type {other}"),
    }
}

/// A timestamp as Python's `isoformat` has it (days from civil, proleptic Gregorian).
fn iso(microseconds: i64) -> String {
    let (days, rest) = (microseconds.div_euclid(86_400_000_000), microseconds.rem_euclid(86_400_000_000));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
    let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = if fraction > 0 { format!(".{fraction:06}") } else { String::new() };
    format!("{year:04}-{month:02}-{day:02}T{time}{fraction}")
}
