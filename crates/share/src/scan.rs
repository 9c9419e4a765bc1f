//! All that is asked of one step, as one scan (Scibox, section V.B): what is asked twice is evaluated and kept once, what
//! reads the same is read once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva::guard::{AllowList, Gate};
use sieva::{
    Error, ErrorKind, OpenOptions, Plan, Price, Query, QueryOptions, Result, RunOptions, Scalar, Session,
    Source, ValueType,
};
use sieva_encode::Format;
use sieva_plan::Type;
use sieva_reduce::merge::stages::{Stages, Value};

use crate::asks::check_ask;
use crate::code::Running;
use crate::made::Made;
use crate::overlap::RowsAt;
use crate::record::{Ask, Step};
use crate::steps::Place;
use crate::watch::Limits;

/// A result that some want: a plan in a format.
pub(crate) struct Unit {
    /// The number of the plan in the stages.
    plan: usize,
    pub format: Format,
    /// Code that the result is handed to.
    pub code: Option<String>,
    /// The numbers of the asks that it is for.
    pub asks: Vec<usize>,
}

/// How results are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Making {
    /// Whether code that fails is an error.
    pub strict_code: bool,
    /// Whether it is noted which rows a result has, for those that share objects.
    pub knows_rows: bool,
}

/// What has to be made of a step.
pub(crate) struct Scan {
    source: Source,
    options: QueryOptions,
    /// The plans, equal ones once, and which needs the value of which (DR6 that of DR3).
    stages: Stages,
    /// Of each plan its query, once its stage was run.
    queries: Vec<Option<Arc<Query>>>,
    pub units: Vec<Unit>,
    /// What cannot be asked of it, by the number of the ask.
    pub refused: Vec<(usize, Error)>,
}

/// Opens a step for questions that others wrote: they reach this step and what is kept beside it, and nothing else.
///
/// # Errors
/// Those of opening.
pub(crate) fn open(place: &Place, session: &Session, limits: &Limits) -> Result<Source> {
    let path = match place {
        Place::Memory(source) => return Ok(source.clone()),
        Place::File(path) => path,
    };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".sieva");
    let mut options = reaching(&[path, Path::new(&beside)], session, &limits.cancel);
    if !limits.bp_worker.is_empty() && sieva::is_bp_file(path, &options.gate)? {
        options.isolated = limits.bp_worker.clone();
    }
    Source::open(path, &options)
}

/// Options for a source whose questions reach these paths alone.
pub(crate) fn reaching(paths: &[&Path], session: &Session, cancel: &Arc<AtomicBool>) -> OpenOptions {
    let mut allowed = AllowList::default();
    paths.iter().for_each(|path| allowed.add_path(path));
    let allowed =
        allowed.with_hint("a question to a group reaches the step that it is asked of, and nothing else");
    let gate = Gate::of(Arc::new(allowed));
    let (cancel, session) = (Arc::clone(cancel), session.clone());
    OpenOptions { gate, cancel, session, ..OpenOptions::default() }
}

impl Scan {
    /// Plans what is wanted of a source. Nothing is read.
    ///
    /// # Errors
    /// None but for what is no plan, which no question gives.
    pub fn of(source: &Source, asks: &[&Ask], limits: &Limits) -> Result<Self> {
        let options = QueryOptions {
            memory: limits.ask_memory.or(limits.memory),
            threads: limits.threads,
            ..QueryOptions::default()
        };
        let (mut plans, mut formats, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for (number, ask) in asks.iter().enumerate() {
            limits.check()?;
            match timed(limits, limits.flag(), |flag| planned(source, ask, &with_flag(&options, flag))) {
                Ok((plan, format)) => {
                    plans.push((u32::try_from(number).unwrap_or(u32::MAX), plan));
                    formats.push((number, format));
                }
                Err(e) => refused.push((number, e)),
            }
        }
        let stages = Stages::of(&plans)?;
        let mut plan_of = vec![None; asks.len()];
        for (plan, unit) in stages.units.iter().enumerate() {
            unit.who.iter().for_each(|&who| plan_of[who as usize] = Some(plan));
        }
        let mut units: Vec<Unit> = Vec::new();
        let mut known = HashMap::new();
        for (number, format) in formats {
            let Some(plan) = plan_of[number] else { continue };
            let new = units.len();
            let at = *known.entry((plan, format.name(), &asks[number].code)).or_insert(new);
            if at == new {
                units.push(Unit { plan, format, code: asks[number].code.clone(), asks: Vec::new() });
            }
            units[at].asks.push(number);
        }
        let queries = vec![None; stages.units.len()];
        Ok(Self { source: source.clone(), options, stages, queries, units, refused })
    }

    /// Evaluates all of it: one scan for all plans that need nothing of one another, then those that need what these gave.
    /// What fails one is told again when its result is made. Asks that `is_slow` names are left to that, and so are all of a
    /// scan that takes longer than an ask may: of what is read together nobody knows whose time it is.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn run(&mut self, session: &Session, limits: &Limits, is_slow: &dyn Fn(usize) -> bool) -> Result<()> {
        let options = RunOptions {
            memory: limits.memory,
            threads: limits.threads,
            cancel: Some(Arc::clone(&limits.cancel)),
        };
        let wanted = self.wanted(is_slow);
        let mut values = HashMap::new();
        for mut stage in self.stages.stages.clone() {
            stage.retain(|&number| wanted[number]);
            for &number in &stage {
                let ready = self.stages.ready(number, &|needed| values.get(&needed).cloned());
                // Where a value could not be had the plan is run as it was asked, and says why.
                let plan = ready.unwrap_or_else(|_| self.stages.units[number].plan.clone());
                let options = with_flag(&self.options, limits.flag());
                self.queries[number] = self.source.query_plan(&plan, &options).ok().map(Arc::new);
            }
            let queries: Vec<&Query> = stage.iter().filter_map(|&n| self.queries[n].as_deref()).collect();
            let watch = limits.watch(queries.iter().map(|query| query.cancel_flag()).collect())?;
            session.run(&queries, &options)?;
            for &number in stage.iter().filter(|&&n| self.stages.units[n].is_value) {
                let scalar = self.queries[number].as_ref().and_then(|query| query.scalar().ok());
                values.extend(scalar.and_then(value).map(|value| (number, value)));
            }
            if watch.is_over() {
                stage.iter().for_each(|&number| self.queries[number] = None);
            }
        }
        Ok(())
    }

    /// The plans that somebody wants whose ask is not slow, and those whose values these need.
    fn wanted(&self, is_slow: &dyn Fn(usize) -> bool) -> Vec<bool> {
        let mut wanted = vec![false; self.stages.units.len()];
        for unit in self.units.iter().filter(|unit| unit.asks.iter().any(|&ask| !is_slow(ask))) {
            wanted[unit.plan] = true;
        }
        // Each stands behind those that it needs.
        for (number, unit) in self.stages.units.iter().enumerate().rev() {
            if wanted[number] {
                unit.needs.iter().for_each(|&needed| wanted[needed] = true);
            }
        }
        wanted
    }

    /// Whether a result was evaluated together with others.
    pub fn is_known(&self, unit: &Unit) -> bool {
        self.queries[unit.plan].is_some()
    }

    /// Makes the file of a result, in the time that an ask may take. Code that fails is an error where the group is strict.
    ///
    /// # Errors
    /// Those of the query, of its code; of limits.
    pub fn make(&self, unit: &Unit, spool: &Path, making: Making, limits: &Limits) -> Result<Made> {
        let known = self.queries[unit.plan].as_ref();
        let flag = known.map_or_else(|| limits.flag(), |query| query.cancel_flag());
        timed(limits, flag, |flag| {
            let query =
                known.map_or_else(|| self.by_itself(unit.plan, flag).map(Arc::new), |q| Ok(Arc::clone(q)));
            let query = query?;
            match &unit.code {
                None => {
                    let mut made = Made::new(Arc::clone(&query), unit.format, spool, limits)?;
                    if making.knows_rows && !made.places.is_empty() {
                        made.rows_at = RowsAt::of(&query)?;
                    }
                    Ok(made)
                }
                Some(code) => {
                    Running { strict: making.strict_code, spool, limits }.made(query, code, unit.format)
                }
            }
        })
    }

    /// The query of a plan as it was asked.
    fn by_itself(&self, plan: usize, flag: Arc<AtomicBool>) -> Result<Query> {
        self.source.query_plan(&self.stages.units[plan].plan, &with_flag(&self.options, flag))
    }
}

/// Does what takes a flag in the time that an ask may take.
fn timed<T>(
    limits: &Limits,
    flag: Arc<AtomicBool>,
    work: impl FnOnce(Arc<AtomicBool>) -> Result<T>,
) -> Result<T> {
    let watch = limits.watch(vec![Arc::clone(&flag)])?;
    work(flag).map_err(|e| match e.kind() {
        ErrorKind::Cancelled if watch.is_over() => limits.too_long(),
        _ => e,
    })
}

fn with_flag(options: &QueryOptions, flag: Arc<AtomicBool>) -> QueryOptions {
    QueryOptions { cancel: Some(flag), ..options.clone() }
}

/// The plan of an ask, and the format of its result.
fn planned(source: &Source, ask: &Ask, options: &QueryOptions) -> Result<(Plan, Format)> {
    // By whoever wrote it there.
    check_ask(ask)?;
    let format = Format::named(&ask.format)?;
    Ok((source.sql(&ask.sql, options)?.logical_plan()?, format))
}

/// A value as plans have it; a histogram is none.
fn value((value, of): (Scalar, Option<ValueType>)) -> Option<Value> {
    let type_of = |t: ValueType| match t {
        ValueType::Bool => Type::Bool,
        ValueType::I64 => Type::Int64,
        ValueType::U64 => Type::UInt64,
        ValueType::F64 => Type::Float64,
        ValueType::Str => Type::Text,
    };
    Some(match value {
        Scalar::Null => Value::Missing(of.map(type_of)),
        Scalar::Bool(v) => Value::Bool(v),
        Scalar::I64(v) => Value::Int(v),
        Scalar::U64(v) => Value::UInt(v),
        Scalar::F64(v) => Value::Float(v),
        Scalar::Str(v) => Value::Text(v),
        Scalar::Histogram { .. } => return None,
    })
}

/// What a pass would do with a step.
#[derive(Clone, Debug)]
pub struct PlannedStep {
    /// The step.
    pub step: Step,
    /// What would be made of it.
    pub units: Vec<PlannedUnit>,
    /// What cannot be asked of it: the user, the name of the ask, and why.
    pub refused: Vec<(String, String, Error)>,
}

/// A result that would be made, or a value that one needs.
#[derive(Clone, Debug)]
pub struct PlannedUnit {
    /// The question, in its one form.
    pub sql: String,
    /// The scan in which it is evaluated, from 0: those of later ones need values of earlier ones.
    pub stage: usize,
    /// Its format, and who gets it: users and the names of their asks. None where only its value is needed.
    pub given: Vec<(&'static str, Vec<(String, String)>)>,
    /// What it takes by itself, with the values that it needs.
    pub price: Price,
}

impl PlannedStep {
    /// The plan of a scan.
    ///
    /// # Errors
    /// `cancelled`.
    pub(crate) fn of(step: Step, scan: &Scan, who: &[(String, String)], limits: &Limits) -> Result<Self> {
        let who = |number: &usize| who[*number].clone();
        let mut refused: Vec<(String, String, Error)> = Vec::new();
        let mut refuse = |(user, ask): (String, String), e: &Error| refused.push((user, ask, e.clone()));
        scan.refused.iter().for_each(|(number, e)| refuse(who(number), e));
        let mut units = Vec::new();
        for (number, unit) in scan.stages.units.iter().enumerate() {
            let given: Vec<&Unit> = scan.units.iter().filter(|unit| unit.plan == number).collect();
            limits.check()?;
            let price =
                |flag| scan.by_itself(number, flag).and_then(|q| Ok((q.text().to_owned(), q.price()?)));
            match timed(limits, limits.flag(), price) {
                Err(e) => given.iter().flat_map(|u| &u.asks).for_each(|number| refuse(who(number), &e)),
                Ok((sql, price)) => {
                    let is_over = |u: &&Unit| is_too_large(u, price.bytes_returned.low, limits);
                    let (over, given): (Vec<&Unit>, Vec<&Unit>) = given.into_iter().partition(is_over);
                    let asks = over.iter().flat_map(|u| &u.asks);
                    asks.for_each(|number| refuse(who(number), &limits.too_large()));
                    if given.is_empty() && !over.is_empty() {
                        continue;
                    }
                    let given = given.iter().map(|u| (u.format.name(), u.asks.iter().map(who).collect()));
                    units.push(PlannedUnit { sql, stage: unit.stage, given: given.collect(), price });
                }
            }
        }
        Ok(Self { step, units, refused })
    }
}

/// Whether a result of so many bytes of values at least exceeds what one may have. Formats that compress or are text may take less
/// than the values do: of these the pass tells.
fn is_too_large(unit: &Unit, values: u64, limits: &Limits) -> bool {
    let is_plain = unit.code.is_none() && matches!(unit.format.name(), "netcdf" | "hdf5" | "arrow");
    is_plain && limits.size.is_some_and(|most| values > most)
}
