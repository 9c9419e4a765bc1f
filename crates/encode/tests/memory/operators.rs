//! What is measured: every operator and every output.

use std::path::Path;
use std::sync::Arc;

use sieva::{
    BuildOptions, Bx, Error, IndexKind, Query, QueryOptions, Request, Result, RunOptions, Selection, Session,
    Source,
};
use sieva_encode::{EncodeOptions, Encoded, Format};

/// What an operator is asked to do.
pub enum Ask {
    /// These SELECTs, run at once, and the number of rows of each.
    Together(&'static [&'static str]),
    /// `count()` of a condition.
    Count(&'static str),
    /// `selection()` of a condition.
    Select(&'static str),
    /// All batches of a SELECT; so many rows at a time.
    Batches(&'static str, usize),
    /// All batches of so many quantiles, with what ends the SELECT.
    Quantiles(usize, &'static str),
    /// `read` of a value at the rows of a condition, the result no part of what is counted against the limit.
    Read(&'static str, &'static str),
    /// `read_many` of so many boxes of a sixteenth of `v`, which overlap, and of a selection of every hundredth.
    ReadMany(u64),
    /// `Query::histogram` of a value with so many bins.
    Histogram(&'static str, usize),
    /// `estimate()`, `explain()`, `explain(analyze)`.
    Estimate(&'static str),
    Explain(&'static str, bool),
    /// `build_index` of one kind.
    Index(&'static str, IndexKind),
    /// The rows of a SELECT as a file.
    Output(&'static str, &'static str),
    /// The same, deflated at a level; whole as it is made, or written first and read then.
    Deflated(&'static str, &'static str, u32, bool),
}

/// Whether a limit of 64 MiB must be enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Must {
    /// What it holds does not grow with the rows.
    Answer,
    /// What it holds grows, and more than the limit is needed: refused with `memory-limit`.
    Refuse,
}

pub struct Operator {
    pub name: &'static str,
    pub ask: Ask,
    pub must: Must,
}

const fn answers(name: &'static str, ask: Ask) -> Operator {
    Operator { name, ask, must: Must::Answer }
}

const fn refuses(name: &'static str, ask: Ask) -> Operator {
    Operator { name, ask, must: Must::Refuse }
}

const SUM: &str = "a + b + c > 1000";

const TOGETHER: &[&str] = &[
    "SELECT a WHERE a + b + c > 1000",
    "SELECT b WHERE a * 7 % 3 > b * 11 % 2",
    "SELECT a, c WHERE a - b > c LIMIT 100 OFFSET 5",
    "SELECT k, count(*), sum(a*b - c) WHERE a < b GROUP BY k",
    "SELECT count(*), max(a*b), avg(b*c) WHERE a > c",
    "SELECT DISTINCT k WHERE b > a + c",
];

/// More than have room together at 64 MiB.
const MANY: &[&str] = &["SELECT v WHERE v > 2e9 AND v % 7 < 3"; 20];

pub const OPERATORS: &[Operator] = &[
    answers("count, computed", Ask::Count(SUM)),
    answers("count, stored values", Ask::Count("v > 1e9 OR v < 1e8")),
    answers("count, texts", Ask::Count("name LIKE '%00'")),
    answers("count, one large chunk", Ask::Count("sqrt(u) + u * 2 > 5 AND u % 3 < 2")),
    answers("batches, one large chunk", Ask::Batches("SELECT u, u * 2 WHERE u % 7 < 1", 1 << 16)),
    answers("sum, one large chunk", Ask::Batches("SELECT sum(u * 2), max(sqrt(u))", 1 << 16)),
    answers("selection, computed", Ask::Select("a * 7 % 3 > b * 11 % 2")),
    answers("selection, stored values", Ask::Select("v > 2e9")),
    answers("estimate", Ask::Estimate(SUM)),
    answers("explain", Ask::Explain(SUM, false)),
    answers("explain analyze", Ask::Explain(SUM, true)),
    answers("batches, positions", Ask::Batches("SELECT idx(x), idx(y) WHERE c < 3", 1 << 16)),
    answers(
        "batches, 12 columns",
        Ask::Batches("SELECT a, b, c, a+b, a+c, b+c, a*b, a*c, b*c, a-b, a-c, b-c WHERE c < 3", 1 << 20),
    ),
    answers("batches, texts", Ask::Batches("SELECT name, v", 1 << 20)),
    answers("batches, LIMIT", Ask::Batches("SELECT a, b LIMIT 5000000", 1 << 16)),
    answers("DISTINCT, few", Ask::Batches("SELECT DISTINCT k WHERE c >= 0 AND b < 200", 1 << 16)),
    answers("DISTINCT, all", Ask::Batches("SELECT DISTINCT name", 1 << 16)),
    answers(
        "ORDER BY LIMIT, computed",
        Ask::Batches("SELECT a, b, c ORDER BY a*b - c DESC LIMIT 10", 1 << 16),
    ),
    answers("ORDER BY LIMIT, texts", Ask::Batches("SELECT name, v ORDER BY name DESC, v LIMIT 10", 1 << 16)),
    answers("ORDER BY, computed", Ask::Batches("SELECT a, b, c ORDER BY a*b - c DESC", 1 << 16)),
    answers("ORDER BY, texts", Ask::Batches("SELECT name ORDER BY name", 1 << 16)),
    answers("read", Ask::Read("c < 1", "a + b")),
    answers("read, texts", Ask::Read("v > 4e9", "name")),
    answers("read_many", Ask::ReadMany(12)),
    refuses("read_many, too much", Ask::ReadMany(2000)),
    answers("Query::histogram", Ask::Histogram("a + b + c", 1000)),
    answers(
        "count(*), count, min, max, sum, avg",
        Ask::Batches("SELECT count(*), count(a*b), min(a*b), max(a+c), sum(a-b), avg(b*c)", 1 << 16),
    ),
    answers("stddev, var", Ask::Batches("SELECT stddev(a*b), var(a+c), std(b), var_pop(c)", 1 << 16)),
    answers("min, max of texts", Ask::Batches("SELECT min(name), max(name)", 1 << 16)),
    answers(
        "count(DISTINCT), few",
        Ask::Batches("SELECT count(DISTINCT k) WHERE b < 200 AND c >= 0", 1 << 16),
    ),
    refuses("count(DISTINCT), texts", Ask::Batches("SELECT count(DISTINCT name)", 1 << 16)),
    refuses("count(DISTINCT), all", Ask::Batches("SELECT count(DISTINCT a*1e7 + b*1e3 + c)", 1 << 16)),
    refuses("median", Ask::Batches("SELECT median(a+b+c)", 1 << 16)),
    refuses("quantile", Ask::Batches("SELECT quantile(a+b+c, 0.9)", 1 << 16)),
    answers("histogram", Ask::Batches("SELECT histogram(a+b+c, 100), histogram(a, 50, 0, 100)", 1 << 16)),
    answers("2000 quantiles", Ask::Quantiles(2000, "")),
    // The groups of a dimension are finished a few at a time, those of what is computed of it are not.
    answers("500 quantiles by group", Ask::Quantiles(500, "GROUP BY x")),
    answers("500 quantiles by computed group", Ask::Quantiles(500, "GROUP BY x % 7")),
    answers("GROUP BY dimension", Ask::Batches("SELECT x, avg(b), max(c) GROUP BY x", 1 << 16)),
    answers("GROUP BY few values", Ask::Batches("SELECT k, count(*), sum(a*b - c) GROUP BY k", 1 << 16)),
    answers("GROUP BY texts", Ask::Batches("SELECT t, count(*), avg(b) WHERE c < 9 GROUP BY t", 1 << 16)),
    answers(
        "GROUP BY, HAVING",
        Ask::Batches(
            "SELECT y, count(*) AS n, sum(a) WHERE c < 9 GROUP BY y HAVING sum(a) > 5 ORDER BY n LIMIT 5",
            1 << 16,
        ),
    ),
    refuses("GROUP BY each value", Ask::Batches("SELECT v, count(*) GROUP BY v", 1 << 16)),
    refuses("GROUP BY each text", Ask::Batches("SELECT name, count(*) GROUP BY name", 1 << 16)),
    refuses("GROUP BY two dimensions", Ask::Batches("SELECT x, y, avg(c), max(c) GROUP BY x, y", 1 << 16)),
    refuses("GROUP BY, median", Ask::Batches("SELECT k, median(a*b*c) GROUP BY k", 1 << 16)),
    refuses(
        "GROUP BY, histogram",
        Ask::Batches("SELECT x, histogram(b, 10000, 0, 2000) GROUP BY x", 1 << 16),
    ),
    answers("scalar subquery", Ask::Count("a > (SELECT avg(b + c)) AND b + c < 100")),
    answers("IN of 100 000", Ask::Count("")),
    answers("netCDF", Ask::Output("SELECT a, b, a*b AS ab WHERE c < 2", "netcdf")),
    answers("netCDF, texts", Ask::Output("SELECT t, b WHERE c < 2", "netcdf")),
    answers("netCDF, ORDER BY", Ask::Output("SELECT a, b, c ORDER BY a*b - c", "netcdf")),
    answers("HDF5", Ask::Output("SELECT a, b, a*b AS ab WHERE c < 2", "hdf5")),
    answers("HDF5, texts", Ask::Output("SELECT name, v", "hdf5")),
    answers("netCDF, deflated", Ask::Deflated("SELECT a, b, a*b AS ab WHERE c < 2", "netcdf", 1, false)),
    answers("netCDF, deflated, texts", Ask::Deflated("SELECT t, b WHERE c < 2", "netcdf", 1, false)),
    answers("HDF5, deflated, read in parts", Ask::Deflated("SELECT name, v", "hdf5", 9, true)),
    answers("Arrow", Ask::Output("SELECT a, b, a*b AS ab WHERE c < 3", "arrow")),
    answers("Parquet", Ask::Output("SELECT a, b, a*b AS ab WHERE c < 3", "parquet")),
    answers("Parquet, texts", Ask::Output("SELECT name, v", "parquet")),
    answers("CSV", Ask::Output("SELECT name, v", "csv")),
    answers("JSON", Ask::Output("SELECT name, v", "json")),
    answers("table", Ask::Output("SELECT name, v", "table")),
    answers("six queries at once", Ask::Together(TOGETHER)),
    answers("twenty queries at once", Ask::Together(MANY)),
    answers("zone map", Ask::Index("v", IndexKind::ZoneMap)),
    answers("bitmap", Ask::Index("v", IndexKind::Bitmap)),
    answers("sorted replica", Ask::Index("v", IndexKind::Sorted)),
];

impl Operator {
    /// Does it; gives the bytes of a result in memory that belongs to who asked for it.
    pub fn run(&self, source: &Source, options: &QueryOptions, file: &Path) -> Result<u64> {
        match &self.ask {
            Ask::Count(condition) => {
                let text = if condition.is_empty() { many_constants() } else { (*condition).to_string() };
                source.query(Some(&text), None, options)?.count()?;
            }
            Ask::Together(texts) => {
                let queries =
                    texts.iter().map(|text| source.sql(text, options)).collect::<Result<Vec<_>>>()?;
                let run =
                    RunOptions { memory: options.memory, threads: options.threads, ..RunOptions::default() };
                let ran = Session::default().run(&queries.iter().collect::<Vec<_>>(), &run)?;
                ran.results.into_iter().collect::<Result<Vec<_>>>()?;
                queries.iter().try_for_each(|query| query.count().map(drop))?;
            }
            Ask::Select(condition) => {
                source.query(Some(condition), None, options)?.selection()?;
            }
            Ask::Quantiles(n, tail) => all_batches(&source.sql(&quantiles(*n, tail), options)?, 1 << 16)?,
            Ask::Batches(text, rows) => all_batches(&source.sql(text, options)?, *rows)?,
            Ask::Read(condition, value) => {
                let query = source.query(Some(condition), Some(&[(*value).to_string()]), options)?;
                let column = query.read(value)?;
                return Ok(column.memory_bytes());
            }
            Ask::ReadMany(n) => read_many(source, options, *n)?,
            Ask::Histogram(value, bins) => {
                let names = [(*value).to_string()];
                source.query(None, Some(&names), options)?.histogram(value, *bins)?;
            }
            Ask::Estimate(condition) => {
                source.query(Some(condition), None, options)?.estimate()?;
            }
            Ask::Explain(condition, analyze) => {
                source.query(Some(condition), None, options)?.explain(*analyze)?;
            }
            Ask::Index(array, kind) => {
                let build = BuildOptions {
                    kinds: vec![*kind],
                    memory: options.memory.unwrap_or(1 << 30),
                    ..BuildOptions::default()
                };
                source.build_index(&[(*array).to_string()], &build)?;
            }
            Ask::Output(text, format) => {
                output(source.sql(text, options)?, format, &EncodeOptions::default(), file)?;
            }
            Ask::Deflated(text, format, deflate, parts) => {
                let how = EncodeOptions { deflate: *deflate, ..EncodeOptions::default() };
                let query = source.sql(text, options)?;
                if *parts { read_parts(query, format, &how)? } else { output(query, format, &how, file)? }
            }
        }
        Ok(0)
    }
}

fn read_many(source: &Source, options: &QueryOptions, n: u64) -> Result<()> {
    let v = source.resolve("v")?;
    let all = source.schema().arrays[v].shape[0];
    let bx = |i| Bx::new(vec![i % 100 * (all / 200)], vec![all / 16]);
    let mut requests: Vec<Request> = (0..n).map(|i| Request::of_box(v, bx(i))).collect();
    let selection = Selection::from_positions(vec!["p".into()], vec![all], (0..all).step_by(100))?;
    requests.push(Request::of_positions(v, Arc::new(selection)));
    let memory = options.memory.unwrap_or(1 << 30);
    source.read_many_with(&requests, memory)?.into_iter().try_for_each(|column| column.map(drop))
}

fn all_batches(query: &Query, rows: usize) -> Result<()> {
    for batch in query.batches(rows)? {
        batch?;
    }
    Ok(())
}

fn read_parts(query: Query, format: &str, how: &EncodeOptions) -> Result<()> {
    let format = Format::named(format)?;
    let file = Encoded::new(Arc::new(query), format, how)?;
    let stream = file.stream(0..file.size()?, 0)?;
    let mut block = vec![0; sieva_encode::BLOCK];
    while stream.next_block(&mut block)?.1 > 0 {}
    Ok(())
}

fn output(query: Query, format: &str, how: &EncodeOptions, file: &Path) -> Result<()> {
    let format = Format::named(format)?;
    let written = Encoded::new(Arc::new(query), format, how)?.write(file);
    std::fs::remove_file(file).map_err(|e| Error::io("cannot remove the output", &e))?;
    written
}

fn quantiles(n: usize, tail: &str) -> String {
    let columns: Vec<String> = (0..n).map(|i| format!("quantile(a + b, {})", i as f64 / n as f64)).collect();
    format!("SELECT {} {tail}", columns.join(", "))
}

fn many_constants() -> String {
    let constants: Vec<String> = (0..100_000).map(|i| (i * 40_009).to_string()).collect();
    format!("v IN ({})", constants.join(", "))
}
