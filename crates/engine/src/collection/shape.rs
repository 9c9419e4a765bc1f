//! A SELECT over a collection, taken apart: what the catalog answers, what each object does, and what is put together.

use sieva_catalog::Filter;
use sieva_query::aggregate::Aggregate;
use sieva_query::ast::{Expr, Literal, OrderBy, Projection, Select, SelectItem};
use sieva_query::logical::plan_condition;
use sieva_types::{Error, ErrorKind, Result};

use super::names::{Meaning, Names};
use crate::catalog::filter::{Backslash, filter_of};

/// The parts of a query. All names in its trees are resolved.
pub(super) struct Shape {
    /// The columns.
    pub items: Vec<SelectItem>,
    /// What the catalog answers.
    pub filter: Filter,
    /// The same as conditions.
    pub pushed: Vec<Expr>,
    /// The same as text, one for each condition.
    pub filter_text: Vec<String>,
    /// What is left to be evaluated on each object.
    pub rest: Option<Expr>,
    /// The same as text.
    pub rest_text: String,
    /// The keys of the groups, with those that follow from the ones that were written; none: rows, or one group.
    pub by: Vec<Expr>,
    /// Whether rows are groups.
    pub grouped: bool,
    /// The aggregates, in the order in which binding finds them.
    pub calls: Vec<Expr>,
    pub having: Option<Expr>,
    pub order_by: Vec<OrderBy>,
    pub distinct: bool,
    pub limit: Option<u64>,
    pub offset: u64,
    /// The arrays in use; an object is the group that holds the first one.
    pub arrays: Vec<String>,
    /// Keys whose values are needed.
    pub keys: Vec<String>,
}

impl Shape {
    /// Takes a query apart.
    pub(super) fn of(names: &Names<'_>, select: &Select) -> Result<Self> {
        let (filter, (pushed, filter_text), rest) = split(names, select.condition.as_ref())?;
        let rest_text = select.condition.as_ref().map(|_| rest.1.join(" AND ")).unwrap_or_default();
        let rest = (!rest.0.is_empty()).then(|| Expr::and(rest.0));
        let items = items(names, select, rest.as_ref())?;
        let written = match &select.projection {
            Projection::Items(items) => items.as_slice(),
            Projection::All => &[],
        };
        let mark = |e: &Expr| names.resolved(&referred(e, written)?);
        let by = select.group_by.iter().map(mark).collect::<Result<Vec<_>>>()?;
        let having = select.having.as_ref().map(mark).transpose()?;
        let mut order_by = Vec::new();
        for key in &select.order_by {
            order_by.push(OrderBy { expr: mark(&key.expr)?, ..key.clone() });
        }
        let grouped = !by.is_empty() || having.is_some() || items.iter().any(|i| has_aggregate(&i.expr));
        let mut shape = Self {
            items,
            filter,
            pushed,
            filter_text,
            rest,
            rest_text,
            by,
            grouped,
            calls: Vec::new(),
            having,
            order_by,
            distinct: select.distinct,
            limit: select.limit,
            offset: select.offset.unwrap_or(0),
            arrays: Vec::new(),
            keys: Vec::new(),
        };
        shape.check(matches!(select.projection, Projection::All))?;
        if shape.grouped {
            shape.complete_keys()?;
            shape.find_calls();
        }
        shape.find_names();
        if shape.arrays.is_empty() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a query of a collection that names no array: nothing says which objects are meant",
            )
            .hint("count(flux) in place of count(*) names one; `sieva catalog find` lists objects by keys alone"));
        }
        Ok(shape)
    }

    fn check(&self, is_all: bool) -> Result<()> {
        if self.grouped {
            return match is_all {
                false => Ok(()),
                true => Err(Error::new(ErrorKind::Syntax, "SELECT * cannot be grouped")
                    .hint("name the keys and the aggregates: SELECT object, count(*) ...")),
            };
        }
        let unsupported = |what: &str, hint: &str| {
            let message = format!("{what} of the elements of a collection's objects");
            Err(Error::new(ErrorKind::Unsupported, message).hint(hint))
        };
        if !self.order_by.is_empty() {
            return unsupported(
                "ORDER BY",
                "rows come by source, object and position; sort the result, or group",
            );
        }
        if self.distinct {
            return unsupported("DISTINCT", "GROUP BY the columns gives each of their values once");
        }
        Ok(())
    }

    /// Adds the keys that follow from the object, where that is one; refuses others that vary within a group.
    fn complete_keys(&mut self) -> Result<()> {
        let has_object = self.by.contains(&Meaning::Object.expr());
        if has_object && !self.by.contains(&Meaning::Source.expr()) {
            // Objects of two sources may have one path.
            self.by.push(Meaning::Source.expr());
        }
        let mut used = Vec::new();
        for expr in self.over_groups() {
            visit_outside(expr, &self.by, &mut |e| {
                if let Some(meaning) = Meaning::of_expr(e) {
                    used.push((e.clone(), meaning));
                }
            });
        }
        for (expr, meaning) in used {
            let what = match meaning {
                Meaning::Array(path) => {
                    return Err(Error::new(
                        ErrorKind::Syntax,
                        format!(
                            "'{path}' varies within a group: it must stand in GROUP BY or in an aggregate"
                        ),
                    ));
                }
                Meaning::Object => "object".to_string(),
                Meaning::Source => "source".to_string(),
                Meaning::Key(key) => key,
            };
            if !has_object {
                return Err(Error::new(
                    ErrorKind::Syntax,
                    format!("'{what}' varies within a group: it must stand in GROUP BY or in an aggregate"),
                )
                .hint(format!("write GROUP BY {what}, or GROUP BY object")));
            }
            if !self.by.contains(&expr) {
                self.by.push(expr);
            }
        }
        Ok(())
    }

    fn find_calls(&mut self) {
        let mut calls = Vec::new();
        for expr in self.over_groups() {
            visit_outside(expr, &self.by, &mut |e| {
                if is_aggregate(e) && !calls.contains(e) {
                    calls.push(e.clone());
                }
            });
        }
        self.calls = calls;
    }

    /// The expressions that are evaluated over groups, in the order in which they are bound.
    fn over_groups(&self) -> impl Iterator<Item = &Expr> {
        let items = self.items.iter().map(|i| &i.expr);
        items.chain(&self.having).chain(self.order_by.iter().map(|k| &k.expr))
    }

    fn find_names(&mut self) {
        let (mut arrays, mut keys) = (Vec::new(), Vec::new());
        let all = self.rest.iter().chain(self.over_groups()).chain(&self.by);
        for expr in all {
            expr.walk(&mut |e| match Meaning::of_expr(e) {
                Some(Meaning::Array(path)) if !arrays.contains(&path) => arrays.push(path),
                Some(Meaning::Key(key)) if !keys.contains(&key) => keys.push(key),
                _ => {}
            });
        }
        // Tasks carry values of keys by their places: those of a query and of its plan must be in the same order.
        keys.sort_unstable();
        (self.arrays, self.keys) = (arrays, keys);
    }
}

/// Whether it is the call of an aggregate.
fn is_aggregate(expr: &Expr) -> bool {
    matches!(expr, Expr::Call { function, .. } if Aggregate::is_name(function))
}

fn has_aggregate(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= is_aggregate(e));
    found
}

/// Visits an expression and what is below it, but neither keys nor what is within aggregates.
fn visit_outside<'e>(expr: &'e Expr, keys: &[Expr], visit: &mut impl FnMut(&'e Expr)) {
    if keys.contains(expr) {
        return;
    }
    visit(expr);
    if !is_aggregate(expr) {
        for child in expr.children() {
            visit_outside(child, keys, visit);
        }
    }
}

/// Conditions and their texts.
type Conditions = (Vec<Expr>, Vec<String>);

/// The conditions of a WHERE that the catalog answers, with their texts, and the others.
fn split(names: &Names<'_>, condition: Option<&Expr>) -> Result<(Filter, Conditions, Conditions)> {
    let parts = match condition {
        None => Vec::new(),
        Some(Expr::And(parts)) => parts.iter().collect(),
        Some(one) => vec![one],
    };
    let (mut filters, mut pushed, mut rest) = (Vec::new(), Conditions::default(), Conditions::default());
    for part in parts {
        let resolved = names.resolved(part)?;
        let (columns, condition) = plan_condition(&resolved, &Meaning::column_of)?;
        match filter_of(&columns, &condition, Backslash::Stands) {
            Ok(filter) => {
                filters.push(filter);
                pushed.0.push(resolved);
                pushed.1.push(part.to_string());
            }
            Err(_) => {
                rest.0.push(resolved);
                rest.1.push(if matches!(part, Expr::Or(_)) { format!("({part})") } else { part.to_string() });
            }
        }
    }
    let filter = if filters.is_empty() { Filter::All } else { Filter::And(filters) };
    Ok((filter, pushed, rest))
}

/// The columns; `*` is the object, its source, and the arrays of the condition.
fn items(names: &Names<'_>, select: &Select, rest: Option<&Expr>) -> Result<Vec<SelectItem>> {
    if let Projection::Items(items) = &select.projection {
        let resolved = items.iter().map(|i| {
            Ok(SelectItem { expr: names.resolved(&i.expr)?, alias: i.alias.clone(), text: i.text.clone() })
        });
        return resolved.collect();
    }
    let item = |expr: Expr, text: &str| SelectItem { expr, alias: None, text: text.to_string() };
    let mut all = vec![item(Meaning::Object.expr(), "object"), item(Meaning::Source.expr(), "source")];
    if let Some(rest) = rest {
        rest.walk(&mut |e| {
            if let Some(Meaning::Array(path)) = Meaning::of_expr(e)
                && !all.iter().any(|i| i.expr == *e)
            {
                all.push(item(e.clone(), &path));
            }
        });
    }
    Ok(all)
}

/// What GROUP BY, HAVING and ORDER BY mean by a column's number or its alias.
fn referred(expr: &Expr, items: &[SelectItem]) -> Result<Expr> {
    match expr {
        Expr::Literal(Literal::Int(n)) => {
            let item = usize::try_from(*n).ok().and_then(|n| n.checked_sub(1)).and_then(|i| items.get(i));
            item.map(|i| i.expr.clone()).ok_or_else(|| {
                let message = format!("there is no column {n}; SELECT has {}", items.len());
                Error::new(ErrorKind::InvalidValue, message)
            })
        }
        Expr::Name(name) => {
            let aliased = items.iter().find(|i| i.alias.as_deref() == Some(name.text.as_str()));
            Ok(aliased.map_or_else(|| expr.clone(), |i| i.expr.clone()))
        }
        other => other.clone().try_map_children(&mut |child| match child {
            // Only alone is an integer the number of a column.
            Expr::Literal(_) => Ok(child.clone()),
            _ => referred(child, items),
        }),
    }
}
