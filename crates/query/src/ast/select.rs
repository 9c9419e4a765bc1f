//! Whole queries.

use super::Expr;
use std::hash::{Hash, Hasher};

/// One column of a result.
///
/// Two items are equal if their expressions and aliases are; the spelling does not matter.
#[derive(Clone, Debug)]
pub struct SelectItem {
    /// What is computed.
    pub expr: Expr,
    /// The name given by `AS`.
    pub alias: Option<String>,
    /// The expression as written, or the plain name without quotes: the column's name if there is no alias.
    pub text: String,
}

impl SelectItem {
    /// The name of the column.
    pub fn column_name(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.text)
    }
}

impl PartialEq for SelectItem {
    fn eq(&self, other: &Self) -> bool {
        self.expr == other.expr && self.alias == other.alias
    }
}

impl Eq for SelectItem {}

impl Hash for SelectItem {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expr.hash(state);
        self.alias.hash(state);
    }
}

/// What a query asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Projection {
    /// `*`
    #[default]
    All,
    /// The columns, at least one.
    Items(Vec<SelectItem>),
}

/// One key of `ORDER BY`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OrderBy {
    /// What is sorted by.
    pub expr: Expr,
    /// Whether `DESC` was written.
    pub descending: bool,
    /// `NULLS FIRST` or `NULLS LAST`, if written.
    pub nulls_first: Option<bool>,
}

/// A whole query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Select {
    /// The columns.
    pub projection: Projection,
    /// Whether `DISTINCT` was written.
    pub distinct: bool,
    /// File, glob, URL or catalog name; none if the caller gives the source.
    pub from: Option<String>,
    /// The name in `FROM collection('name')`; then `from` is none.
    pub collection: Option<String>,
    /// Whether `CROSS` was written: a product of arrays that do not line up is wanted.
    pub cross: bool,
    /// `WHERE`
    pub condition: Option<Expr>,
    /// `GROUP BY`
    pub group_by: Vec<Expr>,
    /// `HAVING`
    pub having: Option<Expr>,
    /// `ORDER BY`
    pub order_by: Vec<OrderBy>,
    /// `LIMIT`
    pub limit: Option<u64>,
    /// `OFFSET`
    pub offset: Option<u64>,
}

impl Select {
    /// Gives each column that is called by its spelling this name as its alias, where its printed form is another.
    pub fn keep_names(&mut self) {
        let Projection::Items(items) = &mut self.projection else { return };
        for item in items {
            let printed =
                if let Expr::Name(name) = &item.expr { name.text.clone() } else { item.expr.to_string() };
            if item.alias.is_none() && item.text != printed {
                item.alias = Some(item.text.clone());
            }
        }
    }
}
