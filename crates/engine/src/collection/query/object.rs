//! The query of one object: names replaced by its arrays, keys by their values.

use super::*;

/// The grouped query of one object.
pub(super) struct ObjectSelect {
    pub(super) select: Select,
    /// For each aggregate of the whole query, its number in this one.
    pub(super) order: Vec<usize>,
    /// The number of `count(*)`.
    pub(super) count: usize,
    /// The constant keys; `None`: the next key of a group.
    pub(super) keys: Vec<Option<Scalar>>,
}

impl ObjectSelect {
    pub(super) fn of(
        inner: &Inner,
        source: &Source,
        found: &SourceObjects,
        object: &Object,
    ) -> Result<Option<Self>> {
        let shape = &inner.shape;
        let mut replace = |m: &Meaning| inner.value_of(source, found, object, m);
        let Some(condition) = all_replaced(shape.rest.as_slice(), &mut replace)? else { return Ok(None) };
        let Some(mut calls) = all_replaced(&shape.calls, &mut replace)? else { return Ok(None) };
        let every = Expr::Call { function: "count".into(), args: Vec::new(), distinct: false, star: true };
        calls.push(every.clone());
        // Binding makes one aggregate of equal calls, as two keys of one value make them.
        let mut different: Vec<Expr> = Vec::new();
        let mut order = Vec::new();
        for call in calls {
            let known = different.iter().position(|c| *c == call);
            order.push(known.unwrap_or(different.len()));
            if known.is_none() {
                different.push(call);
            }
        }
        let count = order.pop().unwrap_or(0);
        let (mut keys, mut group_by) = (Vec::new(), Vec::new());
        for key in &shape.by {
            match plain(key) {
                Some(meaning) => keys.push(Some(inner.constant_of(found, object, &meaning)?)),
                None => {
                    let Some(expr) = replaced(key, &mut replace)? else { return Ok(None) };
                    group_by.push(expr);
                    keys.push(None);
                }
            }
        }
        let item = |expr: Expr| SelectItem { text: String::new(), alias: None, expr };
        let select = Select {
            projection: Projection::Items(different.into_iter().map(item).collect()),
            condition: condition.into_iter().next(),
            group_by,
            ..Select::default()
        };
        // An array of the query that is named nowhere here still says which rows are meant: see `Shape`.
        Ok(Some(Self { select, order, count, keys }))
    }
}

/// The meaning of a key that is one name of a constant.
fn plain(key: &Expr) -> Option<Meaning> {
    Meaning::of_expr(key).filter(|m| !matches!(m, Meaning::Array(_)))
}

type Replace<'r> = dyn FnMut(&Meaning) -> Result<Option<Expr>> + 'r;

pub(super) fn all_replaced(all: &[Expr], replace: &mut Replace<'_>) -> Result<Option<Vec<Expr>>> {
    all.iter().map(|e| replaced(e, replace)).collect()
}

pub(super) fn replaced_items(
    items: &[SelectItem],
    replace: &mut Replace<'_>,
) -> Result<Option<Vec<SelectItem>>> {
    let each = items.iter().map(|i| {
        Ok(replaced(&i.expr, replace)?.map(|expr| SelectItem {
            expr,
            alias: i.alias.clone(),
            text: i.text.clone(),
        }))
    });
    each.collect()
}

/// An expression as it was written, as far as that is known.
pub(super) fn shown(expr: &Expr) -> String {
    expr.to_string().replace("\u{2}array ", "").replace("\u{2}key ", "").replace('\u{2}', "")
}

/// The types of what the aggregates take in.
pub(super) fn inputs(query: &Query) -> Vec<Option<ValueType>> {
    match &query.bound().body {
        Body::Groups { aggregates, .. } => {
            aggregates.iter().map(|(_, v)| v.as_ref().and_then(|v| query.bound().type_of(v))).collect()
        }
        Body::Rows => Vec::new(),
    }
}

/// The query with slots in the place of keys, bound to an object that has all arrays.
pub(super) fn template(
    collection: &Collection,
    shape: &Shape,
    classes: &[Class],
    sources: &[SourceObjects],
    options: &QueryOptions,
) -> Result<Query> {
    if let Some(query) = template_of(collection, shape, classes, sources, options)? {
        return Ok(query);
    }
    // None of those that were found: any tells the types.
    let any = Find::new(Filter::All).collection(collection.name()).limit(TRIED);
    let others = objects::find(&collection.catalog, any, shape)?;
    template_of(collection, shape, classes, &others, options)?.ok_or_else(|| {
        Error::new(
            ErrorKind::UnknownArray,
            format!(
                "no object of the collection '{}' has all of {}",
                collection.name(),
                shape.arrays.join(", ")
            ),
        )
        .hint("an object is the group that holds these arrays; `sieva catalog show SOURCE` lists them")
    })
}

fn template_of(
    collection: &Collection,
    shape: &Shape,
    classes: &[Class],
    sources: &[SourceObjects],
    options: &QueryOptions,
) -> Result<Option<Query>> {
    let mut tried = 0;
    for found in sources {
        let hint = manifests::hints(&collection.catalog, &[found])?.pop().unwrap_or(Hint::None);
        let source = opener::open(found, hint, &collection.options)?;
        for object in &found.objects {
            tried += 1;
            if let Some(select) = unfilled(shape, classes, &source, &object.group)? {
                return Query::of_select(&source, select, options).map(Some);
            }
        }
        if tried >= TRIED {
            break;
        }
    }
    Ok(None)
}

/// The whole query on one object, with slots in the place of its keys' values.
fn unfilled(shape: &Shape, classes: &[Class], source: &Source, group: &str) -> Result<Option<Select>> {
    let mut replace = |m: &Meaning| {
        Ok(match m {
            Meaning::Object => Some(Class::Text.slot(0)),
            Meaning::Source => Some(Class::Text.slot(1)),
            Meaning::Array(name) => array_of(source.schema(), group, name)?.map(Expr::name),
            Meaning::Key(key) => {
                let n = shape.keys.iter().position(|k| k == key);
                n.map(|n| classes[n].slot(n + 2))
            }
        })
    };
    let replace: &mut Replace<'_> = &mut replace;
    let Some(condition) = all_replaced(shape.rest.as_slice(), replace)? else { return Ok(None) };
    let Some(items) = replaced_items(&shape.items, replace)? else { return Ok(None) };
    let Some(group_by) = all_replaced(&shape.by, replace)? else { return Ok(None) };
    let Some(having) = all_replaced(shape.having.as_slice(), replace)? else { return Ok(None) };
    let mut order_by = Vec::new();
    for key in &shape.order_by {
        let Some(expr) = replaced(&key.expr, replace)? else { return Ok(None) };
        order_by.push(OrderBy { expr, ..key.clone() });
    }
    let grouped = shape.grouped;
    Ok(Some(Select {
        projection: Projection::Items(items),
        distinct: shape.distinct,
        condition: condition.into_iter().next(),
        group_by,
        having: having.into_iter().next(),
        order_by,
        limit: shape.limit.filter(|_| grouped),
        offset: Some(shape.offset).filter(|_| grouped),
        ..Select::default()
    }))
}
