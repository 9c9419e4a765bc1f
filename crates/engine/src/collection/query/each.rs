//! The objects of a query one by one, for bindings of languages that hand them on so.

use std::ops::Range;

use sieva_query::exec::Column;
use sieva_query::logical::filter_of;
use sieva_query::parse;
use sieva_types::Selection;

use sieva_query::ast::Literal;

use super::*;

impl Collection {
    /// The query of the elements of its objects: `condition` is on keys and arrays (`None`: none), `array` is the path of
    /// an array within the objects whose elements are meant (`None`: the arrays of the condition are). Rows have the
    /// columns of `SELECT array`, or `SELECT *`.
    ///
    /// # Errors
    /// As [`Collection::sql`].
    ///
    /// # Examples
    /// ```no_run
    /// # fn main() -> sieva::Result<()> {
    /// let stars = sieva::Collection::open("boss.sqlite", "h5boss", &sieva::OpenOptions::default())?;
    /// let query = stars.objects(Some("RADEG = 153.17 AND flux > 20"), None, &sieva::QueryOptions::default())?;
    /// for (n, (source, path)) in query.counts(&query.cancel_flag())?.iter().zip(query.objects()) {
    ///     println!("{source} {path}: {n:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn objects(
        &self,
        condition: Option<&str>,
        array: Option<&str>,
        options: &QueryOptions,
    ) -> Result<CollectionQuery> {
        let names = self.names()?;
        let projection = match array {
            None => Projection::All,
            Some(array) => Projection::Items(vec![item(Expr::name(array), array)]),
        };
        let select = Select { projection, condition: parsed(&names, condition)?, ..Select::default() };
        CollectionQuery::new(self, &names, select, options)
    }

    /// Counts and edges of the histogram of `value` (an array of the objects, or an expression) over all elements that
    /// satisfy `condition`, as of `numpy.histogram`; of `range`, or from the least to the greatest of them.
    ///
    /// # Errors
    /// As [`Collection::objects`]; `type-mismatch` for text; reading errors.
    pub fn histogram(
        &self,
        condition: Option<&str>,
        value: &str,
        bins: usize,
        range: Option<(f64, f64)>,
        options: &QueryOptions,
    ) -> Result<(Vec<u64>, Vec<f64>)> {
        let names = self.names()?;
        let condition = parsed(&names, condition)?;
        let value = parse::parse_expression_with(value, &|name| names.knows(name))?;
        let aggregates = |calls: Vec<Expr>| {
            let named = calls.into_iter().map(|call| {
                let text = call.to_string();
                item(call, &text)
            });
            let projection = Projection::Items(named.collect());
            let select = Select { projection, condition: condition.clone(), ..Select::default() };
            CollectionQuery::new(self, &names, select, options)?.totals()
        };
        let call = |function: &str, args: Vec<Expr>| Expr::Call {
            function: function.into(),
            args,
            distinct: false,
            star: false,
        };
        let (low, high) = match range {
            Some(range) => range,
            None => {
                let ends = aggregates(vec![
                    call("min", vec![call("float64", vec![value.clone()])]),
                    call("max", vec![call("float64", vec![value.clone()])]),
                ])?;
                match &ends[..] {
                    [Scalar::F64(low), Scalar::F64(high)] => (*low, *high),
                    // Of nothing: what numpy takes then.
                    _ => (0.0, 1.0),
                }
            }
        };
        let number = |x: f64| Expr::Literal(Literal::Float(x));
        let bins = Expr::Literal(Literal::Int(bins as i128));
        let found =
            aggregates(vec![call("histogram", vec![value.clone(), bins, number(low), number(high)])])?;
        match found.into_iter().next() {
            Some(Scalar::Histogram { edges, counts }) => Ok((counts, edges.to_vec())),
            _ => Err(Error::new(ErrorKind::Internal, "a histogram was not made")),
        }
    }
}

fn item(expr: Expr, text: &str) -> SelectItem {
    SelectItem { expr, alias: None, text: text.to_string() }
}

fn parsed(names: &Names<'_>, condition: Option<&str>) -> Result<Option<Expr>> {
    condition.map(|text| parse::parse_condition_with(text, &|name| names.knows(name))).transpose()
}

impl CollectionQuery {
    /// The objects that the catalog left: location of the source and path of the group, in the order of sources and of
    /// their trees.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &str)> {
        let each = |s| {
            let SourceObjects { location, objects, .. }: &SourceObjects = s;
            objects.iter().map(|o| (location.as_str(), o.group.as_str()))
        };
        self.inner.sources.iter().flat_map(each)
    }

    /// How many rows each of [`CollectionQuery::objects`] has; `None` for one that lacks an array of the query.
    ///
    /// # Errors
    /// As [`CollectionQuery::count`]; `cancelled` once `cancel` is set.
    pub fn counts(&self, cancel: &AtomicBool) -> Result<Vec<Option<u64>>> {
        let inner = &self.inner;
        let options = inner.object_options(&self.cancel);
        let all = 0..self.objects().count();
        inner.each(all, cancel, &|at| inner.query_at(at, &options)?.map(|query| query.count()).transpose())
    }

    /// The values of `value` (an array of the objects, or an expression of such) at the rows of these objects, one after
    /// the other as `take` is called; an object that lacks an array of the query has none.
    ///
    /// # Errors
    /// As [`CollectionQuery::counts`]; `unknown-array`, `dimension-mismatch`; what `take` gives.
    pub fn read(
        &self,
        objects: Range<usize>,
        value: &str,
        cancel: &AtomicBool,
        mut take: impl FnMut(Column) -> Result<()>,
    ) -> Result<()> {
        let inner = &self.inner;
        let options = inner.object_options(&self.cancel);
        let work = |at: At<'_>| {
            let Some(query) = inner.query_at(at, &options)? else { return Ok(None) };
            let selection = query.selection()?;
            let value = at.source.parse_value_within(&at.object.group, value)?;
            let positions: Vec<u64> = selection.iter_from(0).collect();
            query.points(&value, &options, Arc::clone(&self.cancel))?.read(&positions).map(Some)
        };
        let mut walk = Walk::of(&inner.sources, objects);
        while let Some(columns) = walk.window(&inner.setting(cancel), &work)? {
            columns.into_iter().flatten().try_for_each(&mut take)?;
        }
        Ok(())
    }

    /// The values of `value` at given positions of these objects, which have all arrays.
    pub(in crate::collection) fn read_at<'f>(
        &self,
        objects: Range<usize>,
        value: &str,
        positions: &(dyn Fn(usize) -> &'f Selection + Sync),
        cancel: &Arc<AtomicBool>,
        mut take: impl FnMut(Column) -> Result<()>,
    ) -> Result<()> {
        let inner = &self.inner;
        let options = inner.object_options(cancel);
        let work = |at: At<'_>| {
            let Some(query) = inner.query_at(at, &options)? else { return Ok(None) };
            let value = at.source.parse_value_within(&at.object.group, value)?;
            let positions: Vec<u64> = positions(at.number).iter_from(0).collect();
            query.points(&value, &options, Arc::clone(cancel))?.read(&positions).map(Some)
        };
        let mut walk = Walk::of(&inner.sources, objects);
        while let Some(columns) = walk.window(&inner.setting(cancel), &work)? {
            columns.into_iter().flatten().try_for_each(&mut take)?;
        }
        Ok(())
    }

    /// That a value can be read at rows of its objects, as far as one of them tells.
    ///
    /// # Errors
    /// `unknown-array`, `dimension-mismatch`.
    pub(in crate::collection) fn check_value(&self, value: &str) -> Result<()> {
        let inner = &self.inner;
        let group = inner.example.objects.first().map_or("", |o| o.group.as_str());
        let value = inner.template.source().parse_value_within(group, value)?;
        inner.template.points(&value, &inner.options, Arc::default()).map(|_| ())
    }

    /// The source of object number `object`, opened, and the condition that its elements have to satisfy, with paths of
    /// arrays in place of names; `None` where it lacks an array of the query.
    ///
    /// # Errors
    /// `invalid-value` for a number that is none; those of opening.
    pub fn object(&self, object: usize) -> Result<Option<(Source, Option<Expr>)>> {
        self.opened(object, |source, at| {
            let Some((plan, constants)) = self.inner.plan_at(at)? else { return Ok(None) };
            Ok(Some((source.clone(), filter_of(&plan, &constants)?)))
        })
    }

    /// The query of object number `object`, and its path; `None` where it lacks an array of the query.
    ///
    /// # Errors
    /// As [`CollectionQuery::object`].
    pub(in crate::collection) fn query_of(&self, object: usize) -> Result<Option<(Query, String)>> {
        self.opened(object, |_, at| {
            let query = self.inner.query_at(at, &self.inner.options)?;
            Ok(query.map(|query| (query, at.object.group.clone())))
        })
    }

    /// What `ask` makes of an object, whose source is opened for it.
    fn opened<R>(&self, object: usize, ask: impl FnOnce(&Source, At<'_>) -> Result<R>) -> Result<R> {
        let inner = &self.inner;
        let (number, mut left) = (object, object);
        for found in &inner.sources {
            let Some(object) = found.objects.get(left) else {
                left -= found.objects.len();
                continue;
            };
            let catalog = inner.collection.catalog.as_deref();
            let hint = manifests::hints(catalog, &[found])?.pop().unwrap_or(Hint::None);
            let source = opener::open(found, hint, &inner.collection.options)?;
            return ask(&source, At { source: &source, found, object, number });
        }
        let message = format!("no object {object}: the query has {}, from 0 on", self.objects().count());
        Err(Error::new(ErrorKind::InvalidValue, message))
    }
}

impl Inner {
    /// What `work` makes of each of these objects, in order.
    fn each<R: Send>(
        &self,
        objects: Range<usize>,
        cancel: &AtomicBool,
        work: &(dyn Fn(At<'_>) -> Result<R> + Sync),
    ) -> Result<Vec<R>> {
        let mut walk = Walk::of(&self.sources, objects);
        let mut all = Vec::new();
        while let Some(results) = walk.window(&self.setting(cancel), work)? {
            all.extend(results);
        }
        Ok(all)
    }
}

impl Source {
    /// As [`Source::parse_value`], with names that are looked for in the group `group` first.
    ///
    /// # Errors
    /// As [`Source::parse_value`].
    pub fn parse_value_within(&self, group: &str, text: &str) -> Result<Expr> {
        let own = |name: &str| array_of(self.schema(), group, name);
        if group.is_empty() {
            return self.parse_value(text);
        }
        if let Some(path) = own(text)? {
            return Ok(Expr::name(path));
        }
        let parsed = parse::parse_expression_with(text, &|name| {
            !matches!(own(&name.text), Ok(None)) || self.means(name)
        })?;
        within_group(&parsed, &own)
    }

    /// As [`Source::resolve`], looked for in the group `group` first.
    ///
    /// # Errors
    /// As [`Source::resolve`].
    pub fn resolve_within(&self, group: &str, name: &str) -> Result<usize> {
        match array_of(self.schema(), group, name)? {
            Some(path) if !group.is_empty() => self.resolve(&path),
            _ => self.resolve(name),
        }
    }
}

/// The expression with the names that a group has in place of its own.
fn within_group(expr: &Expr, own: &dyn Fn(&str) -> Result<Option<String>>) -> Result<Expr> {
    if let Expr::Name(name) = expr {
        return Ok(own(&name.text)?.map_or_else(|| expr.clone(), Expr::name));
    }
    expr.clone().try_map_children(&mut |child| within_group(child, own))
}
