//! A plan as JSON, for people and for programs without our library.
//!
//! `docs/reference/plan.md` describes it. A conversion loses nothing: integers beyond 64 bits and numbers that JSON has
//! not are texts in an object.

mod expr;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sieva_types::{Error, ErrorKind, Result};

use crate::expr::MAX_DEPTH;
use crate::plan::{Call, Column, ColumnKind, Output, Plan, Scan, SortKey, SourceRef, Step, Type};
use expr::{expr_of, json_of, literal_of, literal_to};

/// The version of the form.
const VERSION: u64 = 1;
/// The longest text that is read.
const LONGEST: usize = 64 << 20;

impl Plan {
    /// The plan as JSON, as it is: see [`Plan::canonical`] for its one form.
    pub fn to_json(&self) -> String {
        let mut text = format!("{:#}", to_value(self));
        text.push('\n');
        text
    }

    /// The plan that [`Plan::to_json`] wrote, or somebody by hand.
    ///
    /// # Errors
    /// `invalid-value`, which names the place, for what is no plan.
    pub fn from_json(text: &str) -> Result<Self> {
        if text.len() > LONGEST {
            return Err(wrong(format!("it has {} bytes, more than {LONGEST}", text.len())));
        }
        // An expression is at most an object with a list.
        if nesting(text) > 2 * MAX_DEPTH + 16 {
            return Err(wrong(format!("it is nested deeper than expressions may be, which is {MAX_DEPTH}")));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        let value = Value::deserialize(&mut reader).and_then(|v| reader.end().map(|()| v));
        let plan = from_value(&value.map_err(|e| wrong(e.to_string()))?)?;
        plan.check()?;
        Ok(plan)
    }
}

fn wrong(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidValue, format!("not a plan in JSON: {}", what.into()))
        .hint("sieva plan SQL --json prints one")
}

/// How deep lists and objects are nested in a text of JSON.
fn nesting(text: &str) -> usize {
    let (mut depth, mut most, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

pub(crate) fn to_value(plan: &Plan) -> Value {
    let scan = &plan.scan;
    let source = match &scan.source {
        SourceRef::Given => Value::Null,
        SourceRef::Path(path) => json!({ "path": path }),
        SourceRef::Collection(name) => json!({ "collection": name }),
    };
    let column = |(id, c): (usize, &Column)| json!({ "id": id, "path": c.path, "kind": c.kind.name(), "type": c.value_type.name(), "dims": c.dims });
    json!({
        "sieva_plan": VERSION,
        "source": source,
        "rows": scan.rows,
        "cross": scan.cross,
        "columns": scan.columns.iter().enumerate().map(column).collect::<Vec<_>>(),
        "steps": plan.steps.iter().map(step_to).collect::<Vec<_>>(),
    })
}

fn step_to(step: &Step) -> Value {
    let what = match step {
        Step::Filter(e) | Step::Having(e) => json_of(e),
        Step::Aggregate { keys, calls } => json!({
            "keys": keys.iter().map(json_of).collect::<Vec<_>>(),
            "calls": calls.iter().map(call_to).collect::<Vec<_>>(),
        }),
        Step::Sort(keys) => {
            let key = |k: &SortKey| json!({ "value": json_of(&k.value), "descending": k.descending, "nulls_first": k.nulls_first });
            keys.iter().map(key).collect()
        }
        Step::Project(outputs) => {
            outputs.iter().map(|o| json!({ "name": o.name, "value": json_of(&o.value) })).collect()
        }
        Step::Distinct => json!({}),
        Step::Limit { count, offset } => json!({ "count": count, "offset": offset }),
    };
    json!({ step.place().0: what })
}

fn call_to(call: &Call) -> Value {
    let mut made = json!({
        "function": call.function,
        "distinct": call.distinct,
        "parameters": call.parameters.iter().map(literal_to).collect::<Vec<_>>(),
    });
    // None is none: null is a NULL that is aggregated.
    if let Some(argument) = &call.argument {
        made["argument"] = json_of(argument);
    }
    made
}

/// An object whose members are taken out one by one, so that unknown ones are noticed.
pub(crate) struct Members<'v> {
    of: &'static str,
    left: Map<String, Value>,
    all: &'v Value,
}

impl<'v> Members<'v> {
    pub(crate) fn new(of: &'static str, value: &'v Value) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self { of, left: map.clone(), all: value }),
            other => Err(wrong(format!("{of} is an object, not {}", shown(other)))),
        }
    }

    fn take<T>(&mut self, name: &str, read: impl FnOnce(&Value) -> Option<T>, wanted: &str) -> Result<T> {
        let found = self.left.remove(name);
        let found = found.ok_or_else(|| wrong(format!("{} lacks '{name}'", self.of)))?;
        read(&found)
            .ok_or_else(|| wrong(format!("'{name}' of {} is {wanted}, not {}", self.of, shown(&found))))
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String> {
        self.take(name, |v| v.as_str().map(str::to_owned), "a text")
    }

    fn flag(&mut self, name: &str) -> Result<bool> {
        self.take(name, Value::as_bool, "true or false")
    }

    fn uint(&mut self, name: &str) -> Result<u64> {
        self.take(name, Value::as_u64, "a whole number")
    }

    pub(crate) fn value(&mut self, name: &str) -> Result<Value> {
        self.take(name, |v| Some(v.clone()), "a value")
    }

    fn list<T>(&mut self, name: &str, read: impl FnMut(&Value) -> Result<T>) -> Result<Vec<T>> {
        let list = self.take(name, |v| v.as_array().cloned(), "a list")?;
        list.iter().map(read).collect()
    }

    fn one_of<T: Copy>(&mut self, name: &str, all: &[T], name_of: impl Fn(T) -> &'static str) -> Result<T> {
        let text = self.text(name)?;
        all.iter().copied().find(|&v| name_of(v) == text).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|&v| name_of(v)).collect();
            wrong(format!("'{name}' of {} is one of {}, not '{text}'", self.of, names.join(", ")))
        })
    }

    pub(crate) fn finish(self) -> Result<()> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(wrong(format!("{} has no '{name}': {}", self.of, shown(self.all)))),
        }
    }
}

/// The beginning of a value's text.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

pub(crate) fn from_value(value: &Value) -> Result<Plan> {
    let mut m = Members::new("the plan", value)?;
    let version = m.uint("sieva_plan")?;
    if version != VERSION {
        return Err(wrong(format!("its version is {version}, this program knows {VERSION}")));
    }
    let source = match m.value("source")? {
        Value::Null => SourceRef::Given,
        other => {
            let mut source = Members::new("the source", &other)?;
            let found = match source.left.contains_key("collection") {
                true => SourceRef::Collection(source.text("collection")?),
                false => SourceRef::Path(source.text("path")?),
            };
            source.finish()?;
            found
        }
    };
    let scan = Scan {
        source,
        rows: m.list("rows", text_of)?,
        cross: m.flag("cross")?,
        columns: m
            .list("columns", column_of)?
            .into_iter()
            .enumerate()
            .map(in_order)
            .collect::<Result<_>>()?,
    };
    let steps = m.list("steps", step_of)?;
    m.finish()?;
    Ok(Plan { scan, steps })
}

fn text_of(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong(format!("a text is wanted, not {}", shown(value))))
}

fn column_of(value: &Value) -> Result<(u64, Column)> {
    let mut m = Members::new("a column", value)?;
    let id = m.uint("id")?;
    let column = Column {
        path: m.text("path")?,
        kind: m.one_of("kind", ColumnKind::ALL, ColumnKind::name)?,
        value_type: m.one_of("type", Type::ALL, Type::name)?,
        dims: m.list("dims", text_of)?,
    };
    m.finish()?;
    Ok((id, column))
}

/// A column that stands at the place of its id.
fn in_order((place, (id, column)): (usize, (u64, Column))) -> Result<Column> {
    if id == place as u64 {
        return Ok(column);
    }
    Err(wrong(format!("columns stand in the order of their ids: {id} at place {place}")))
}

fn step_of(value: &Value) -> Result<Step> {
    let one = value.as_object().filter(|m| m.len() == 1).and_then(|m| m.iter().next());
    let Some((name, what)) = one else {
        return Err(wrong(format!("a step is an object with its name alone, not {}", shown(value))));
    };
    let list =
        || what.as_array().ok_or_else(|| wrong(format!("the step '{name}' is a list, not {}", shown(what))));
    Ok(match name.as_str() {
        "filter" => Step::Filter(expr_of(what)?),
        "having" => Step::Having(expr_of(what)?),
        "aggregate" => {
            let mut m = Members::new("the step 'aggregate'", what)?;
            let step = Step::Aggregate { keys: m.list("keys", expr_of)?, calls: m.list("calls", call_of)? };
            m.finish()?;
            step
        }
        "sort" => Step::Sort(list()?.iter().map(sort_key_of).collect::<Result<_>>()?),
        "project" => Step::Project(list()?.iter().map(output_of).collect::<Result<_>>()?),
        "distinct" => {
            Members::new("the step 'distinct'", what)?.finish()?;
            Step::Distinct
        }
        "limit" => {
            let mut m = Members::new("the step 'limit'", what)?;
            let count = match m.value("count")? {
                Value::Null => None,
                Value::Number(n) if n.is_u64() => n.as_u64(),
                other => {
                    return Err(wrong(format!("'count' is a whole number or null, not {}", shown(&other))));
                }
            };
            let offset = m.uint("offset")?;
            m.finish()?;
            Step::Limit { count, offset }
        }
        other => return Err(wrong(format!("there is no step '{other}'"))),
    })
}

fn call_of(value: &Value) -> Result<Call> {
    let mut m = Members::new("an aggregate", value)?;
    let call = Call {
        function: m.text("function")?,
        argument: m.left.remove("argument").map(|v| expr_of(&v)).transpose()?,
        distinct: m.flag("distinct")?,
        parameters: m.list("parameters", literal_of)?,
    };
    m.finish()?;
    Ok(call)
}

fn sort_key_of(value: &Value) -> Result<SortKey> {
    let mut m = Members::new("a key of 'sort'", value)?;
    let key = SortKey {
        value: expr_of(&m.value("value")?)?,
        descending: m.flag("descending")?,
        nulls_first: m.flag("nulls_first")?,
    };
    m.finish()?;
    Ok(key)
}

fn output_of(value: &Value) -> Result<Output> {
    let mut m = Members::new("a column of 'project'", value)?;
    let output = Output { name: m.text("name")?, value: expr_of(&m.value("value")?)? };
    m.finish()?;
    Ok(output)
}
