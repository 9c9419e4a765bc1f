//! `sieva._native.Expr`: an expression of the query language as a tree.

use std::sync::Arc;

use pyo3::prelude::*;
use sieva::ast::{
    self, BinaryOp, CompareOp, Junction, Literal, Name, Projection, Select, SelectItem, Shared,
};
use sieva::{Error, ErrorKind, column_name, parse};

use crate::errors::to_python;

#[pyclass(module = "sieva._native", frozen)]
pub struct Expr(Arc<Shared>);

/// What people give for an expression: its text, or one that they made.
#[derive(FromPyObject)]
pub enum Asked<'py> {
    Text(String),
    Made(PyRef<'py, Expr>),
}

impl Asked<'_> {
    /// The tree of it; of a text that is read with the names of `source` in mind.
    pub fn tree(&self, source: &sieva::Source) -> sieva::Result<ast::Expr> {
        match self {
            Self::Text(text) => source.parse_expression(text),
            Self::Made(expr) => source.settled(expr.0.tree()),
        }
    }

    /// The same of a condition.
    pub fn condition(&self, source: &sieva::Source) -> sieva::Result<ast::Expr> {
        match self {
            Self::Text(text) => source.parse_condition(text),
            Self::Made(_) => self.tree(source),
        }
    }

    /// The tree of it where no names are known.
    fn tree_alone(&self) -> sieva::Result<ast::Expr> {
        match self {
            Self::Text(text) => parse::parse_expression(text),
            Self::Made(expr) => Ok(expr.0.tree()),
        }
    }
}

impl Expr {
    /// An expression; refused where it is too deep to be walked.
    fn of(tree: ast::Expr) -> PyResult<Self> {
        Shared::checked(tree).map(Self).map_err(to_python)
    }

    fn boxed(&self) -> Box<ast::Expr> {
        Box::new(self.0.tree())
    }

    fn joined(&self, junction: Junction, other: &Self) -> PyResult<Self> {
        Shared::join(junction, &self.0, &other.0).map(Self).map_err(to_python)
    }
}

/// The operator of a symbol.
fn operator<T: Copy>(all: &[T], symbol: fn(T) -> &'static str, wanted: &str) -> PyResult<T> {
    let found = all.iter().copied().find(|&op| symbol(op) == wanted);
    found.ok_or_else(|| to_python(Error::new(ErrorKind::InvalidValue, format!("no operator '{wanted}'"))))
}

#[pymethods]
impl Expr {
    #[staticmethod]
    fn parse(text: &str) -> PyResult<Self> {
        parse::parse_expression(text).map_err(to_python).and_then(Self::of)
    }

    #[staticmethod]
    fn name(path: String) -> PyResult<Self> {
        Self::of(ast::Expr::Name(Name::quoted(path)))
    }

    #[staticmethod]
    fn boolean(value: bool) -> PyResult<Self> {
        Self::of(ast::Expr::Literal(Literal::Bool(value)))
    }

    #[staticmethod]
    fn integer(value: i128) -> PyResult<Self> {
        Self::of(ast::Expr::Literal(Literal::Int(value)))
    }

    #[staticmethod]
    fn number(value: f64) -> PyResult<Self> {
        Self::of(ast::Expr::Literal(Literal::Float(value)))
    }

    #[staticmethod]
    fn text(value: String) -> PyResult<Self> {
        Self::of(ast::Expr::Literal(Literal::Str(value)))
    }

    #[staticmethod]
    fn date(value: String) -> PyResult<Self> {
        Self::of(ast::Expr::Literal(Literal::Date(value)))
    }

    #[staticmethod]
    fn call(function: &str, arguments: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let args = arguments.iter().map(|a| a.0.tree()).collect();
        Self::of(ast::Expr::Call { function: function.to_lowercase(), args, distinct: false, star: false })
    }

    fn binary(&self, symbol: &str, right: &Self) -> PyResult<Self> {
        let op = operator(BinaryOp::ALL, BinaryOp::symbol, symbol)?;
        Self::of(ast::Expr::Binary { op, left: self.boxed(), right: right.boxed() })
    }

    fn compare(&self, symbol: &str, right: &Self) -> PyResult<Self> {
        let op = operator(CompareOp::ALL, CompareOp::symbol, symbol)?;
        Self::of(ast::Expr::Compare { op, left: self.boxed(), right: right.boxed() })
    }

    fn both(&self, other: &Self) -> PyResult<Self> {
        self.joined(Junction::And, other)
    }

    fn either(&self, other: &Self) -> PyResult<Self> {
        self.joined(Junction::Or, other)
    }

    fn opposite(&self) -> PyResult<Self> {
        Shared::negated(&self.0).map(Self).map_err(to_python)
    }

    fn negative(&self) -> PyResult<Self> {
        Self::of(ast::Expr::Unary { op: ast::UnaryOp::Neg, expr: self.boxed() })
    }

    fn one_of(&self, values: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let list = values.iter().map(|v| v.0.tree()).collect();
        Self::of(ast::Expr::InList { expr: self.boxed(), list, negated: false })
    }

    fn between(&self, low: &Self, high: &Self) -> PyResult<Self> {
        let (expr, low, high) = (self.boxed(), low.boxed(), high.boxed());
        Self::of(ast::Expr::Between { expr, low, high, negated: false })
    }

    fn is_null(&self, negated: bool) -> PyResult<Self> {
        Self::of(ast::Expr::IsNull { expr: self.boxed(), negated })
    }

    fn __str__(&self) -> String {
        self.0.tree().to_string()
    }
}

/// A SELECT as text, without FROM; no items are all columns. Names are not known: they are the reader's to resolve.
#[pyfunction]
#[pyo3(signature = (items, condition))]
pub fn select_text(items: Option<Vec<Asked<'_>>>, condition: Option<Asked<'_>>) -> PyResult<String> {
    let item = |asked: &Asked<'_>| {
        let expr = asked.tree_alone()?;
        Ok(SelectItem { text: column_name(&expr), expr, alias: None })
    };
    let items = items.map(|list| list.iter().map(item).collect::<sieva::Result<Vec<_>>>()).transpose();
    let condition = condition.map(|c| c.tree_alone()).transpose().map_err(to_python)?;
    let projection = items.map_err(to_python)?.map_or(Projection::All, Projection::Items);
    Ok(Select { projection, condition, ..Select::default() }.to_string())
}

/// A SELECT without its FROM; the columns keep their names. What cannot be read is given back: who is asked says why.
#[pyfunction]
pub fn without_from(sql: &str) -> String {
    let Ok(mut select) = parse::parse_select(sql) else { return sql.to_owned() };
    (select.from, select.collection) = (None, None);
    select.keep_names();
    select.to_string()
}
