//! A plan as bytes: a magic number, a version, a checksum, and the plan in its one form.

use sha2::{Digest, Sha256};
use sieva_types::wire::{Reader, Subject, Writer};
use sieva_types::{ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::expr::{BinaryOp, ColumnId, CompareOp, Expr, Literal, MAX_DEPTH, canonical_bits};
use crate::plan::{Call, Column, ColumnKind, Output, Plan, Scan, SortKey, SourceRef, Step, Type};

/// The first bytes of every plan.
pub const MAGIC: [u8; 4] = *b"SVPL";
const VERSION: u8 = 1;
/// What decoding may take.
const MOST_MEMORY: usize = 256 << 20;

const SUBJECT: Subject = Subject {
    name: "plan",
    kind: ErrorKind::InvalidValue,
    hint: "make it anew from the query: what it was sent through has changed or cut it off",
};

impl Plan {
    /// The plan in its one form, as bytes: equal questions give equal bytes.
    ///
    /// # Errors
    /// `invalid-value` for what is no plan, see [`Plan::check`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check()?;
        let mut body = Writer::default();
        write_plan(&mut body, &self.checked_form()?);
        let body = body.into_bytes();
        let mut out = Vec::with_capacity(body.len() + 13);
        out.extend_from_slice(&MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&xxh3_64(&body).to_le_bytes());
        out.extend_from_slice(&body);
        Ok(out)
    }

    /// The plan that [`Plan::to_bytes`] wrote.
    ///
    /// # Errors
    /// `invalid-value` for bytes that are no plan, damaged, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut head = Reader::new(&SUBJECT, bytes, MOST_MEMORY);
        if head.take(4)? != MAGIC {
            return Err(head.damaged("it does not begin with SVPL"));
        }
        let version = head.byte()?;
        if version != VERSION {
            return Err(head.damaged(format!("its version is {version}, this program knows {VERSION}")));
        }
        let sum = head.take(8)?;
        let body = head.take(head.left())?;
        if xxh3_64(body).to_le_bytes() != sum {
            return Err(head.damaged("its checksum is another"));
        }
        let mut r = Reader::new(&SUBJECT, body, MOST_MEMORY);
        let plan = read_plan(&mut r, MAX_DEPTH)?;
        r.finish()?;
        plan.check()?;
        // Whoever wrote it: what is kept by a plan's bytes is kept by its one form.
        plan.checked_form()
    }

    /// Its one form, which may be nested a level deeper: `x <> 1 AND x <> 2` is NOT and a list there.
    fn checked_form(&self) -> Result<Self> {
        let form = self.canonical();
        form.check()?;
        Ok(form)
    }

    /// The name of the question: 32 hexadecimal digits, the first half of the SHA-256 of its bytes.
    ///
    /// # Errors
    /// As [`Plan::to_bytes`].
    pub fn id(&self) -> Result<String> {
        let digest = Sha256::digest(self.to_bytes()?);
        Ok(digest.iter().take(16).map(|b| format!("{b:02x}")).collect())
    }
}

fn write_plan(w: &mut Writer, plan: &Plan) {
    write_scan(w, &plan.scan);
    w.list(&plan.steps, write_step);
}

fn read_plan(r: &mut Reader<'_>, depth: usize) -> Result<Plan> {
    Ok(Plan { scan: read_scan(r)?, steps: r.list(|r| read_step(r, depth))? })
}

fn write_scan(w: &mut Writer, scan: &Scan) {
    match &scan.source {
        SourceRef::Given => w.byte(0),
        SourceRef::Path(path) => {
            w.byte(1);
            w.text(path);
        }
        SourceRef::Collection(name) => {
            w.byte(2);
            w.text(name);
        }
    }
    w.list(&scan.rows, |w, dim| w.text(dim));
    w.flag(scan.cross);
    w.list(&scan.columns, |w, column| {
        w.text(&column.path);
        w.byte(code(ColumnKind::ALL, column.kind));
        w.byte(code(Type::ALL, column.value_type));
        w.list(&column.dims, |w, dim| w.text(dim));
    });
}

fn read_scan(r: &mut Reader<'_>) -> Result<Scan> {
    let source = match r.byte()? {
        0 => SourceRef::Given,
        1 => SourceRef::Path(r.text()?),
        2 => SourceRef::Collection(r.text()?),
        other => return Err(r.damaged(format!("{other} is no kind of source"))),
    };
    let rows = r.list(Reader::text)?;
    let cross = r.flag()?;
    let columns = r.list(|r| {
        Ok(Column {
            path: r.text()?,
            kind: decoded(r, ColumnKind::ALL)?,
            value_type: decoded(r, Type::ALL)?,
            dims: r.list(Reader::text)?,
        })
    })?;
    Ok(Scan { source, rows, cross, columns })
}

/// The place of a value in the list of all of its type.
fn code<T: PartialEq>(all: &[T], value: T) -> u8 {
    all.iter().position(|v| *v == value).unwrap_or(all.len()) as u8
}

fn decoded<T: Copy>(r: &mut Reader<'_>, all: &[T]) -> Result<T> {
    let code = r.byte()?;
    all.get(usize::from(code)).copied().ok_or_else(|| r.damaged(format!("{code} stands for nothing")))
}

fn write_step(w: &mut Writer, step: &Step) {
    w.byte(step.place().1);
    match step {
        Step::Filter(e) | Step::Having(e) => write_expr(w, e),
        Step::Aggregate { keys, calls } => {
            w.list(keys, write_expr);
            w.list(calls, |w, call| {
                w.text(&call.function);
                w.option(call.argument.as_ref(), write_expr);
                w.flag(call.distinct);
                w.list(&call.parameters, write_literal);
            });
        }
        Step::Sort(keys) => w.list(keys, |w, key| {
            write_expr(w, &key.value);
            w.flag(key.descending);
            w.flag(key.nulls_first);
        }),
        Step::Project(outputs) => w.list(outputs, |w, output| {
            w.text(&output.name);
            write_expr(w, &output.value);
        }),
        Step::Distinct => {}
        Step::Limit { count, offset } => {
            w.option(*count, Writer::uint);
            w.uint(*offset);
        }
    }
}

fn read_step(r: &mut Reader<'_>, depth: usize) -> Result<Step> {
    let expr = |r: &mut Reader<'_>| read_expr(r, depth);
    Ok(match r.byte()? {
        0 => Step::Filter(expr(r)?),
        1 => Step::Aggregate {
            keys: r.list(expr)?,
            calls: r.list(|r| {
                Ok(Call {
                    function: r.text()?,
                    argument: r.option(expr)?,
                    distinct: r.flag()?,
                    parameters: r.list(read_literal)?,
                })
            })?,
        },
        2 => Step::Having(expr(r)?),
        3 => Step::Sort(
            r.list(|r| Ok(SortKey { value: expr(r)?, descending: r.flag()?, nulls_first: r.flag()? }))?,
        ),
        4 => Step::Project(r.list(|r| Ok(Output { name: r.text()?, value: expr(r)? }))?),
        5 => Step::Distinct,
        6 => Step::Limit { count: r.option(Reader::uint)?, offset: r.uint()? },
        other => return Err(r.damaged(format!("{other} is no step"))),
    })
}

fn write_literal(w: &mut Writer, literal: &Literal) {
    match literal {
        Literal::Null => w.byte(0),
        Literal::Bool(v) => w.byte(1 + u8::from(*v)),
        Literal::Int(v) => {
            w.byte(3);
            w.int(*v);
        }
        Literal::Float(v) => {
            w.byte(4);
            w.float(f64::from_bits(canonical_bits(*v)));
        }
        Literal::Text(v) => {
            w.byte(5);
            w.text(v);
        }
    }
}

fn read_literal(r: &mut Reader<'_>) -> Result<Literal> {
    Ok(match r.byte()? {
        0 => Literal::Null,
        code @ (1 | 2) => Literal::Bool(code == 2),
        3 => Literal::Int(r.int()?),
        4 => Literal::Float(r.float()?),
        5 => Literal::Text(r.text()?),
        other => return Err(r.damaged(format!("{other} is no kind of literal"))),
    })
}

fn write_expr(w: &mut Writer, expr: &Expr) {
    match expr {
        Expr::Literal(literal) => {
            w.byte(0);
            write_literal(w, literal);
        }
        Expr::Column(id) => {
            w.byte(1);
            w.uint(u64::from(id.0));
        }
        Expr::Negate(_) => w.byte(2),
        Expr::Binary(op, ..) => {
            w.byte(3);
            w.byte(code(BinaryOp::ALL, *op));
        }
        Expr::Compare(op, ..) => {
            w.byte(4);
            w.byte(code(CompareOp::ALL, *op));
        }
        Expr::In(_, list) => {
            w.byte(5);
            w.list(list, write_literal);
        }
        Expr::IsNull(_) => w.byte(6),
        Expr::Like(_, pattern) => {
            w.byte(7);
            w.text(pattern);
        }
        Expr::And(parts) => {
            w.byte(8);
            w.uint(parts.len() as u64);
        }
        Expr::Or(parts) => {
            w.byte(9);
            w.uint(parts.len() as u64);
        }
        Expr::Not(_) => w.byte(10),
        Expr::Call(function, parts) => {
            w.byte(11);
            w.text(function);
            w.uint(parts.len() as u64);
        }
        Expr::Subquery(plan) => {
            w.byte(12);
            write_plan(w, plan);
        }
    }
    expr.children().into_iter().for_each(|c| write_expr(w, c));
}

fn read_expr(r: &mut Reader<'_>, depth: usize) -> Result<Expr> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(r.damaged(format!("expressions are nested deeper than {MAX_DEPTH}")));
    };
    let child = |r: &mut Reader<'_>| {
        r.charge_values::<Expr>(1)?;
        Ok(Box::new(read_expr(r, depth)?))
    };
    let parts = |r: &mut Reader<'_>| r.list(|r| read_expr(r, depth));
    Ok(match r.byte()? {
        0 => Expr::Literal(read_literal(r)?),
        1 => {
            let id = r.uint()?;
            Expr::Column(ColumnId(u32::try_from(id).map_err(|_| r.damaged(format!("{id} is no column")))?))
        }
        2 => Expr::Negate(child(r)?),
        3 => Expr::Binary(decoded(r, BinaryOp::ALL)?, child(r)?, child(r)?),
        4 => Expr::Compare(decoded(r, CompareOp::ALL)?, child(r)?, child(r)?),
        5 => {
            let list = r.list(read_literal)?;
            Expr::In(child(r)?, list)
        }
        6 => Expr::IsNull(child(r)?),
        7 => {
            let pattern = r.text()?;
            Expr::Like(child(r)?, pattern)
        }
        8 => Expr::And(parts(r)?),
        9 => Expr::Or(parts(r)?),
        10 => Expr::Not(child(r)?),
        11 => Expr::Call(r.text()?, parts(r)?),
        12 => {
            r.charge_values::<Plan>(1)?;
            Expr::Subquery(Box::new(read_plan(r, depth)?))
        }
        other => return Err(r.damaged(format!("{other} is no kind of expression"))),
    })
}
