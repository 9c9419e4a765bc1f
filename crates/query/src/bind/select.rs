//! SELECT and the selection of rows: outputs, groups, order.

use sieva_types::{Error, ErrorKind, Result};

use super::aggregates::Extractor;
use super::{Binder, Body, Bound, Condition, OrderKey, Output, RowSpace, Value};
use crate::ast::{Expr, Literal, Name, OrderBy, Projection, Select, SelectItem};
use crate::values::ValueType;

impl Binder<'_> {
    /// A condition with what is read of its rows; `select` of `None` is the coordinates, then the arrays in
    /// the condition.
    pub(super) fn resolve_rows(mut self, condition: Option<&Expr>, select: Option<&[Expr]>) -> Result<Bound> {
        let condition = self.where_clause(condition)?;
        let outputs = match select {
            None => self.all_columns()?,
            Some(list) => list.iter().map(|e| self.output(e, column_name(e))).collect::<Result<_>>()?,
        };
        let rows = self.rows()?;
        Ok(Bound {
            rows,
            arrays: self.arrays,
            condition,
            body: Body::Rows,
            outputs,
            distinct: false,
            order_by: Vec::new(),
            limit: None,
            offset: 0,
            key_types: self.key_types,
            aggregate_types: self.aggregate_types,
        })
    }

    pub(super) fn resolve_select(mut self, select: &Select) -> Result<Bound> {
        let condition = self.where_clause(select.condition.as_ref())?;
        let items = match &select.projection {
            Projection::All => None,
            Projection::Items(items) => Some(items.as_slice()),
        };
        let grouped = !select.group_by.is_empty()
            || select.having.is_some()
            || items
                .unwrap_or(&[])
                .iter()
                .any(|i| super::aggregates::has_aggregate(&i.expr, self.options.functions));
        let (body, outputs, order_by) = if grouped {
            self.groups(select, items)?
        } else {
            let outputs = match items {
                None => self.all_columns()?,
                Some(items) => items
                    .iter()
                    .map(|i| self.output(&i.expr, i.column_name().into()))
                    .collect::<Result<_>>()?,
            };
            let order = self.order(&select.order_by, items.unwrap_or(&[]), &mut |this, e| this.value(e))?;
            (Body::Rows, outputs, order)
        };
        if grouped && self.arrays.is_empty() && self.dims.is_empty() {
            return Err(no_rows());
        }
        let rows = self.rows()?;
        Ok(Bound {
            rows,
            arrays: self.arrays,
            condition,
            body,
            outputs,
            distinct: select.distinct,
            order_by,
            limit: select.limit,
            offset: select.offset.unwrap_or(0),
            key_types: self.key_types,
            aggregate_types: self.aggregate_types,
        })
    }

    fn where_clause(&mut self, condition: Option<&Expr>) -> Result<Condition> {
        let Some(condition) = condition else { return Ok(Condition::Always) };
        // As it was asked: what it is in stored values is for the file that it is asked of.
        Ok(Condition::Computed(self.asked(condition)?))
    }

    fn output(&mut self, expr: &Expr, name: String) -> Result<Output> {
        Ok(Output { name, value: self.value(expr)? })
    }

    /// `*`: the coordinate (or position) of each dimension and the auxiliary coordinates, then the arrays of
    /// the condition. Without a condition, the source must have one row space to speak of.
    fn all_columns(&mut self) -> Result<Vec<Output>> {
        if self.arrays.is_empty() && self.dims.is_empty() {
            return Err(Error::new(ErrorKind::Syntax, "SELECT * needs a WHERE that names an array")
                .hint("or name the arrays: SELECT TEMP, SALT FROM ..."));
        }
        let named: Vec<usize> = self.arrays.iter().map(|a| a.index).collect();
        let rows = self.rows()?;
        let mut seen = std::collections::HashSet::new();
        let mut outputs = Vec::new();
        for (axis, &dim) in rows.dims.iter().enumerate() {
            let value = match self.schema.dims[dim].coordinate {
                Some(c) if self.schema.arrays[c].dims == [dim] => {
                    seen.insert(c);
                    Value::Array { array: self.array(c)?, raw: false }
                }
                _ => {
                    self.dims.push(dim);
                    Value::Position { dim }
                }
            };
            outputs.push(Output { name: rows.names[axis].clone(), value });
        }
        let mut columns: Vec<usize> = Vec::new();
        for &i in &named {
            let own: Vec<usize> = self.schema.arrays[i].coordinates.clone();
            columns.extend(own.into_iter().filter(|&c| self.has_rows_of(c, &rows)));
        }
        columns.extend(named);
        columns.retain(|c| seen.insert(*c));
        for c in columns {
            let name = self.array_name(c);
            outputs.push(Output { name, value: Value::Array { array: self.array(c)?, raw: false } });
        }
        Ok(outputs)
    }

    /// Whether the array's dimensions are some of the rows', and it lines up with them in one way only.
    fn has_rows_of(&mut self, index: usize, rows: &RowSpace) -> bool {
        let known = self.arrays.len();
        let lines_up = self.array(index).is_ok() && self.rows().is_ok_and(|own| own.dims == rows.dims);
        self.arrays.truncate(known);
        lines_up
    }

    /// The leaf name where it is the only one, else the path.
    fn array_name(&self, index: usize) -> String {
        let array = &self.schema.arrays[index];
        let shared = self.schema.arrays.iter().filter(|a| a.leaf() == array.leaf()).count() > 1;
        if shared { array.path.clone() } else { array.leaf().to_string() }
    }

    #[allow(clippy::type_complexity)] // the three parts of a grouped query that depend on each other
    fn groups(
        &mut self,
        select: &Select,
        items: Option<&[SelectItem]>,
    ) -> Result<(Body, Vec<Output>, Vec<OrderKey>)> {
        let Some(items) = items else {
            return Err(Error::new(ErrorKind::Syntax, "SELECT * cannot be grouped")
                .hint("name the keys and the aggregates: SELECT month(time), avg(TEMP) ..."));
        };
        let key_exprs = select.group_by.iter().map(|e| referred(e, items)).collect::<Result<Vec<_>>>()?;
        let keys = key_exprs.iter().map(|e| self.value(e)).collect::<Result<Vec<_>>>()?;
        self.key_types = keys.iter().map(|k| self.type_of(k)).collect::<Result<_>>()?;
        let mut extractor = Extractor::new(key_exprs);
        let mut outputs = Vec::with_capacity(items.len());
        for item in items {
            outputs
                .push(Output { name: item.column_name().into(), value: extractor.value(self, &item.expr)? });
        }
        let having = match &select.having {
            None => None,
            Some(e) => {
                let value = extractor.value(self, &referred(e, items)?)?;
                if self.type_of(&value)?.is_some_and(|t| t != ValueType::Bool) {
                    return Err(Error::new(
                        ErrorKind::TypeMismatch,
                        format!("HAVING {e} is a value, not a condition"),
                    ));
                }
                Some(value)
            }
        };
        let order = self.order(&select.order_by, items, &mut |this, e| extractor.value(this, e))?;
        Ok((Body::Groups { keys, aggregates: extractor.into_aggregates(), having }, outputs, order))
    }

    fn order(
        &mut self,
        order_by: &[OrderBy],
        items: &[SelectItem],
        bind: &mut dyn FnMut(&mut Self, &Expr) -> Result<Value>,
    ) -> Result<Vec<OrderKey>> {
        let mut keys = Vec::with_capacity(order_by.len());
        for key in order_by {
            let value = bind(self, &referred(&key.expr, items)?)?;
            keys.push(OrderKey {
                value,
                descending: key.descending,
                nulls_first: key.nulls_first.unwrap_or(false),
            });
        }
        Ok(keys)
    }
}

/// The error of a query of groups that names nothing.
pub(crate) fn no_rows() -> Error {
    Error::new(ErrorKind::Syntax, "an aggregate of no array: nothing says which rows are meant")
        .hint("name an array: SELECT count(TEMP) ..., or SELECT count(*) ... WHERE TEMP > 5")
}

/// What GROUP BY and ORDER BY mean by a column's number or its alias.
fn referred(expr: &Expr, items: &[SelectItem]) -> Result<Expr> {
    match expr {
        Expr::Literal(Literal::Int(n)) => {
            let item = usize::try_from(*n).ok().and_then(|n| n.checked_sub(1)).and_then(|i| items.get(i));
            item.map(|i| i.expr.clone()).ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidValue,
                    format!("there is no column {n}; SELECT has {}", items.len()),
                )
            })
        }
        Expr::Name(Name { text, .. }) => {
            let aliased = items.iter().find(|i| i.alias.as_deref() == Some(text.as_str()));
            Ok(aliased.map_or_else(|| expr.clone(), |i| i.expr.clone()))
        }
        other => Ok(other.clone()),
    }
}

/// The name of a column that was given as an expression alone.
pub fn column_name(expr: &Expr) -> String {
    match expr {
        Expr::Name(name) => name.text.clone(),
        other => other.to_string(),
    }
}
