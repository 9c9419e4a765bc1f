//! The plan of a collection as one of a single object: columns become arrays of the object's source, keys become their
//! values, and what only the source can tell (dates, names of enumerated values, attributes) becomes a constant.

use sieva_format::schema::{ArrayInfo, Dimension, Schema};
use sieva_plan as plan;
use sieva_plan::{Column, ColumnId, ColumnKind, Expr, Literal, Output, Plan, Scan, SortKey, Step};
use sieva_types::{DType, Error, ErrorKind, Result};

use super::from_bound::literal;
use crate::bind::{
    Meaning, Parts, RowSpace, Value, attribute, date_number, enumerated, no_time, resolve, time_units,
};
use crate::lower::Answer;
use crate::values::Scalar;

/// What the names of a collection's plan are in one object.
pub struct ObjectNames<'a> {
    /// The full path of the array that has a path within the object; none where the object lacks it.
    pub array: &'a dyn Fn(&str) -> Result<Option<String>>,
    /// What is known of a key, of `object` and of `source`. What is not known, or missing, needs a type.
    pub constant: &'a dyn Fn(&Column) -> Result<Answer>,
}

/// The plan of one object, over the source that is given, and what is known of its columns that are constants: see
/// [`crate::lower::LowerOptions::constants`]. None where the object lacks an array of the plan.
///
/// # Errors
/// `ambiguous-name` and the like for the names; `unaligned-dimensions`; `type-mismatch` and `invalid-value` for dates,
/// names of enumerated values and attributes that its arrays do not have; those of `names`.
pub fn plan_of_object(
    schema: &Schema,
    plan: &Plan,
    names: &ObjectNames<'_>,
    cross: bool,
) -> Result<Option<(Plan, Vec<Answer>)>> {
    let Some(meanings) = meanings(schema, &plan.scan.columns, names)? else { return Ok(None) };
    let asked = &plan.scan.columns;
    let mut this = OfObject { schema, names, asked, meanings, columns: Vec::new(), answers: Vec::new() };
    let steps = plan.steps.iter().map(|step| this.step(step)).collect::<Result<Vec<_>>>()?;
    let scan = this.scan(cross || plan.scan.cross)?;
    Ok(Some((Plan { scan, steps }, this.answers)))
}

/// What each column of the collection's scan names in the object; `None` of those that are constants.
fn meanings(
    schema: &Schema,
    columns: &[Column],
    names: &ObjectNames<'_>,
) -> Result<Option<Vec<Option<Meaning>>>> {
    let mut meanings = Vec::with_capacity(columns.len());
    for column in columns {
        if column.kind.is_of_object() {
            meanings.push(None);
            continue;
        }
        let Some(path) = (names.array)(&column.path)? else { return Ok(None) };
        meanings.push(Some(resolve(schema, &path)?));
    }
    Ok(Some(meanings))
}

/// A column of the object's scan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// An array of the schema; as stored.
    Array(usize, bool),
    /// The positions along a dimension of the schema.
    Position(usize),
    /// The column of the collection's scan that is one value for the object.
    Constant(usize),
}

struct OfObject<'a> {
    schema: &'a Schema,
    names: &'a ObjectNames<'a>,
    /// The collection's columns, and what they are here.
    asked: &'a [Column],
    meanings: Vec<Option<Meaning>>,
    /// The columns so far, in the order in which they are met: it gives the rows their order.
    columns: Vec<Of>,
    answers: Vec<Answer>,
}

impl OfObject<'_> {
    fn step(&mut self, step: &Step) -> Result<Step> {
        Ok(match step {
            Step::Filter(e) => Step::Filter(self.expr(e)?),
            Step::Having(e) => Step::Having(self.expr(e)?),
            Step::Aggregate { keys, calls } => {
                let keys = self.each(keys)?;
                let call = |c: &plan::Call| {
                    let argument = c.argument.as_ref().map(|a| self.expr(a)).transpose()?;
                    Ok(plan::Call { argument, ..c.clone() })
                };
                Step::Aggregate { keys, calls: calls.iter().map(call).collect::<Result<_>>()? }
            }
            Step::Sort(keys) => {
                let key = |k: &SortKey| Ok(SortKey { value: self.expr(&k.value)?, ..*k });
                Step::Sort(keys.iter().map(key).collect::<Result<_>>()?)
            }
            Step::Project(outputs) => {
                let output = |o: &Output| Ok(Output::new(&*o.name, self.expr(&o.value)?));
                Step::Project(outputs.iter().map(output).collect::<Result<_>>()?)
            }
            Step::Distinct | Step::Limit { .. } => step.clone(),
        })
    }

    fn each(&mut self, parts: &[Expr]) -> Result<Vec<Expr>> {
        parts.iter().map(|p| self.expr(p)).collect()
    }

    fn boxed(&mut self, e: &Expr) -> Result<Box<Expr>> {
        self.expr(e).map(Box::new)
    }

    fn expr(&mut self, e: &Expr) -> Result<Expr> {
        Ok(match e {
            Expr::Literal(_) => e.clone(),
            Expr::Column(id) => self.column(*id)?,
            Expr::Negate(a) => Expr::Negate(self.boxed(a)?),
            Expr::Binary(op, a, b) => Expr::Binary(*op, self.boxed(a)?, self.boxed(b)?),
            Expr::Compare(op, a, b) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                Expr::compare(*op, self.beside(&a, &b)?, self.beside(&b, &a)?)
            }
            Expr::In(a, list) => {
                let a = self.expr(a)?;
                let list = list.iter().map(|l| self.literal_beside(l, &a)).collect::<Result<_>>()?;
                Expr::In(Box::new(a), list)
            }
            Expr::IsNull(a) => Expr::IsNull(self.boxed(a)?),
            Expr::Like(a, pattern) => Expr::Like(self.boxed(a)?, pattern.clone()),
            Expr::And(parts) => Expr::And(self.each(parts)?),
            Expr::Or(parts) => Expr::Or(self.each(parts)?),
            Expr::Not(a) => Expr::Not(self.boxed(a)?),
            Expr::Call(function, args) => self.call(function, args)?,
            Expr::Subquery(_) => {
                let message = "a subquery in a plan of a collection";
                return Err(
                    Error::new(ErrorKind::Unsupported, message).hint("ask it first, and write its value")
                );
            }
        })
    }

    fn column(&mut self, ColumnId(id): ColumnId) -> Result<Expr> {
        let id = id as usize;
        let Some(meaning) = self.meanings.get(id) else {
            // Keys and aggregates of groups follow the scan, all columns of which were met before them.
            return Ok(column_id(id - self.meanings.len() + self.columns.len()));
        };
        match meaning {
            Some(Meaning::Array(array)) => Ok(self.listed(Of::Array(*array, false))),
            Some(Meaning::Dimension(dim)) => Ok(self.listed(Of::Position(*dim))),
            None => self.constant(id),
        }
    }

    /// A key's value. One that is missing, or not known, is a column, which has a type; so is an integer, as a literal has
    /// the type of what it stands beside.
    fn constant(&mut self, id: usize) -> Result<Expr> {
        if self.columns.contains(&Of::Constant(id)) {
            return Ok(self.listed(Of::Constant(id)));
        }
        match (self.names.constant)(&self.asked[id])? {
            Answer::Known(Scalar::Null, None) => Ok(Expr::Literal(Literal::Null)),
            Answer::Known(value, _) if !matches!(value, Scalar::Null | Scalar::I64(_)) => {
                Ok(Expr::Literal(literal(&value)?))
            }
            open => {
                self.answers.push(open);
                Ok(self.listed(Of::Constant(id)))
            }
        }
    }

    fn listed(&mut self, of: Of) -> Expr {
        let known = self.columns.iter().position(|c| *c == of);
        column_id(known.unwrap_or_else(|| {
            self.columns.push(of);
            self.columns.len() - 1
        }))
    }

    /// The array that an expression is, as it is stored or not.
    fn array(&self, e: &Expr) -> Option<&ArrayInfo> {
        let Expr::Column(ColumnId(id)) = e else { return None };
        match self.columns.get(*id as usize) {
            Some(Of::Array(array, _)) => Some(&self.schema.arrays[*array]),
            _ => None,
        }
    }

    /// A side of a comparison: a text beside a time coordinate or an enumeration is the number that it means there.
    fn beside(&self, e: &Expr, other: &Expr) -> Result<Expr> {
        match e {
            Expr::Literal(literal) => self.literal_beside(literal, other).map(Expr::Literal),
            _ => Ok(e.clone()),
        }
    }

    fn literal_beside(&self, literal: &Literal, other: &Expr) -> Result<Literal> {
        let (Literal::Text(text), Some(info)) = (literal, self.array(other)) else {
            return Ok(literal.clone());
        };
        if let Some(units) = time_units(info) {
            return Ok(Literal::Float(date_number(text, &units)?));
        }
        match enumerated(info, text)? {
            Some(number) => Ok(Literal::Int(number)),
            None if info.dtype == DType::Str => Ok(literal.clone()),
            None => Err(no_time(text, &info.path)),
        }
    }

    fn call(&mut self, function: &str, args: &[Expr]) -> Result<Expr> {
        match function {
            "raw" => self.stored(args),
            "idx" => self.position(args),
            "attr" => self.attribute(args),
            _ => Ok(Expr::Call(function.to_owned(), self.each(args)?)),
        }
    }

    /// What a column of the scan that stands for itself means.
    fn named(&self, args: &[Expr]) -> Option<Meaning> {
        let [Expr::Column(ColumnId(id)), ..] = args else { return None };
        self.meanings.get(*id as usize).copied().flatten()
    }

    fn stored(&mut self, args: &[Expr]) -> Result<Expr> {
        match (self.named(args), args.len()) {
            (Some(Meaning::Array(array)), 1) => Ok(self.listed(Of::Array(array, true))),
            _ => Err(mismatch("raw() needs the name of an array")),
        }
    }

    fn position(&mut self, args: &[Expr]) -> Result<Expr> {
        let none = || mismatch("idx() needs the name of one dimension");
        let dim = match (self.named(args), args.len()) {
            (Some(Meaning::Dimension(dim)), 1) => dim,
            // A dimension is called by its coordinate.
            (Some(Meaning::Array(array)), 1) => {
                let path = &self.schema.arrays[array].path;
                let is_its = |d: &Dimension| d.coordinate == Some(array) || d.path == *path;
                let own = self.schema.dims.iter().position(is_its);
                own.ok_or_else(none)?
            }
            _ => return Err(none()),
        };
        Ok(self.listed(Of::Position(dim)))
    }

    fn attribute(&self, args: &[Expr]) -> Result<Expr> {
        let path = |meaning: Option<Meaning>| match meaning {
            Some(Meaning::Array(array)) => Some(self.schema.arrays[array].path.as_str()),
            _ => None,
        };
        let value = match args {
            [Expr::Literal(Literal::Text(wanted))] => attribute(self.schema, None, wanted),
            [Expr::Literal(Literal::Text(of)), Expr::Literal(Literal::Text(wanted))] => {
                attribute(self.schema, Some(of), wanted)
            }
            [Expr::Column(_), Expr::Literal(Literal::Text(wanted))] if path(self.named(args)).is_some() => {
                attribute(self.schema, path(self.named(args)), wanted)
            }
            _ => Err(mismatch("attr() needs an array and the quoted name of an attribute")
                .hint("attr(TEMP, 'units'), or attr('title') for one of the source")),
        }?;
        match value {
            Value::Constant(v) => Ok(Expr::Literal(literal(&v.scalar(0))?)),
            other => {
                Err(Error::new(ErrorKind::Internal, format!("an attribute that is no constant: {other:?}")))
            }
        }
    }

    /// The scan of the columns that were met.
    fn scan(&self, cross: bool) -> Result<Scan> {
        let (mut arrays, mut dims) = (Vec::new(), Vec::new());
        for of in &self.columns {
            match of {
                Of::Array(array, _) if !arrays.contains(array) => arrays.push(*array),
                Of::Position(dim) => dims.push(*dim),
                _ => {}
            }
        }
        let parts = Parts { base: &[], arrays: &arrays, dims: &dims, cross };
        let (rows, axes) = RowSpace::of(self.schema, &parts)?;
        let path = |axis: usize| self.schema.dims[rows.dims[axis]].path.clone();
        let column = |of: &Of| match of {
            Of::Array(array, stored) => {
                let own = arrays.iter().position(|a| a == array).map_or(&[][..], |place| &axes[place]);
                Column {
                    dims: own.iter().map(|&a| path(a)).collect(),
                    ..Column::of_object(
                        &self.schema.arrays[*array].path,
                        if *stored { ColumnKind::Stored } else { ColumnKind::Value },
                    )
                }
            }
            Of::Position(dim) => Column {
                dims: rows.axis(*dim).into_iter().map(path).collect(),
                ..Column::of_object(&self.schema.dims[*dim].path, ColumnKind::Position)
            },
            Of::Constant(id) => self.asked[*id].clone(),
        };
        let columns = self.columns.iter().map(column).collect();
        Ok(Scan { rows: (0..rows.dims.len()).map(path).collect(), cross, columns, ..Scan::default() })
    }
}

fn column_id(place: usize) -> Expr {
    Expr::Column(ColumnId(u32::try_from(place).unwrap_or(u32::MAX)))
}

fn mismatch(what: &str) -> Error {
    Error::new(ErrorKind::TypeMismatch, what)
}
