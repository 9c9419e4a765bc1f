//! The query of one object: the collection's plan with the object's arrays and the values of its keys, lowered as any other.

use sieva_plan::{Call, Column, ColumnId, Expr as PlanExpr, Output, Step};
use sieva_query::logical::{ObjectNames, plan_of_object};
use sieva_query::lower::Answer;
use sieva_types::Selection;

use super::*;

/// What is asked of each object.
pub(super) struct ObjectPlan {
    /// Over the collection's columns: rows, or groups by the keys that vary within an object.
    plan: Plan,
    /// For each key of the whole query the column that it is, where an object has one value of it.
    keys: Vec<Option<Column>>,
    /// How many aggregates the whole query has.
    calls: usize,
    /// The number of `count(*)`.
    count: usize,
}

impl ObjectPlan {
    /// What a plan of a collection asks of each object.
    pub(super) fn of(plan: &Plan) -> Result<Self> {
        let grouped = plan.steps.iter().find_map(|s| match s {
            Step::Aggregate { keys, calls } => Some((keys, calls)),
            _ => None,
        });
        match grouped {
            Some((keys, calls)) => Ok(Self::of_groups(plan, keys, calls)),
            None => Self::of_rows(plan),
        }
    }

    /// The rows of an object: all that its share of a limit may be.
    fn of_rows(plan: &Plan) -> Result<Self> {
        let mut plan = plan.clone();
        for step in &mut plan.steps {
            if let Step::Limit { count, offset } = step {
                *count = count.map(|n| n.saturating_add(*offset));
                *offset = 0;
            }
        }
        Ok(Self { plan, keys: Vec::new(), calls: 0, count: 0 })
    }

    /// The groups of an object, with its number of rows: keys that are one value for it are put beside afterwards.
    fn of_groups(plan: &Plan, keys: &[PlanExpr], calls: &[Call]) -> Self {
        let columns = &plan.scan.columns;
        let constant = |key: &PlanExpr| match key {
            PlanExpr::Column(ColumnId(id)) => columns.get(*id as usize).filter(|c| c.kind.is_of_object()),
            _ => None,
        };
        let own: Vec<PlanExpr> = keys.iter().filter(|k| constant(k).is_none()).cloned().collect();
        let every =
            Call { function: "count".into(), argument: None, distinct: false, parameters: Vec::new() };
        let mut different = calls.to_vec();
        let count = calls.iter().position(|c| *c == every).unwrap_or(calls.len());
        different.extend((count == calls.len()).then_some(every));
        let first = columns.len() + own.len();
        let output = |n: usize| {
            let id = u32::try_from(first + n).unwrap_or(u32::MAX);
            Output::new(n.to_string(), PlanExpr::Column(ColumnId(id)))
        };
        let outputs = (0..different.len()).map(output).collect();
        let filter = plan.steps.iter().find(|s| matches!(s, Step::Filter(_))).cloned();
        let groups = [Step::Aggregate { keys: own, calls: different }, Step::Project(outputs)];
        let steps = filter.into_iter().chain(groups).collect();
        let keys = keys.iter().map(|k| constant(k).cloned()).collect();
        Self { plan: Plan { scan: plan.scan.clone(), steps }, keys, calls: calls.len(), count }
    }
}

impl Inner {
    /// The plan of one object, with what is known of its columns that are constants; `None` where it lacks an array.
    pub(super) fn plan_at(&self, at: At<'_>) -> Result<Option<(Plan, Vec<Answer>)>> {
        let (schema, group) = (at.source.schema(), at.object.group.as_str());
        let names = ObjectNames {
            array: &|name| array_of(schema, group, name),
            constant: &|column| self.constant_at(at, column),
        };
        plan_of_object(schema, &self.each.plan, &names, self.options.cross)
    }

    /// What one column of the collection's plan is in one object.
    fn constant_at(&self, at: At<'_>, column: &Column) -> Result<Answer> {
        let text = |text: &str| Ok(Answer::Known(Scalar::Str(text.to_owned()), Some(ValueType::Str)));
        match column.kind {
            ColumnKind::Object => text(&at.object.group),
            ColumnKind::Source => text(&at.found.location),
            _ => {
                let number = key_number(&self.shape, &column.path)?;
                self.classes[number].known(at.object.values.get(number).and_then(Option::as_ref))
            }
        }
    }

    /// The query of one object; `None` where it lacks an array.
    pub(super) fn query_at(&self, at: At<'_>, options: &QueryOptions) -> Result<Option<Query>> {
        self.query_within(at, u64::MAX, options)
    }

    /// The same of at most so many rows.
    pub(super) fn query_within(
        &self,
        at: At<'_>,
        most: u64,
        options: &QueryOptions,
    ) -> Result<Option<Query>> {
        let found = match &self.known {
            Known::Rows(all) => match all.get(&at.number) {
                Some(found) => Some(found),
                None => return Ok(None),
            },
            _ => None,
        };
        let Some((mut plan, constants)) = self.plan_at(at)? else { return Ok(None) };
        for step in &mut plan.steps {
            if let Step::Limit { count: Some(count), .. } = step {
                *count = most.min(*count);
            }
        }
        let query = Query::of_object(at.source, plan, &constants, options)?;
        Ok(Some(match found {
            Some(found) => knowing(&query, found)?,
            None => query,
        }))
    }

    /// The number of an object's rows, and its groups with the keys of all; `None` where it lacks an array.
    pub(super) fn groups_at(&self, at: At<'_>, options: &QueryOptions) -> Result<Option<(u64, Groups)>> {
        let Some(query) = self.query_at(at, options)? else { return Ok(None) };
        let ObjectPlan { keys, calls, count, .. } = &self.each;
        let mine = inputs(&query);
        if let Some(n) = (0..*calls).find(|&n| mine.get(n) != self.inputs.get(n)) {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!(
                    "what {} takes in is of another type here than in other objects",
                    shown(&self.shape.calls[n])
                ),
            )
            .hint("convert it, as by float64(x), or ask for the objects of one type only"));
        }
        let constant =
            |key: &Option<Column>| match key.as_ref().map(|c| self.constant_at(at, c)).transpose()? {
                Some(Answer::Known(value, _)) => Ok(Some(value)),
                _ => Ok(None),
            };
        let constants = keys.iter().map(constant).collect::<Result<Vec<Option<Scalar>>>>()?;
        let (groups, _) = partial_groups(query.execution()?)?;
        let order: Vec<usize> = (0..*calls).collect();
        let rekeyed = groups.rekeyed(&order, |old, value| {
            if !keys.is_empty() && value(*count)? == Scalar::I64(0) {
                return Ok(None);
            }
            let mut old = old.into_iter();
            let each = constants.iter().map(|k| k.clone().or_else(|| old.next()).unwrap_or(Scalar::Null));
            Ok(Some(each.collect()))
        })?;
        Ok(Some((query.bound().rows.len(), rekeyed)))
    }
}

/// The query, whose positions were found elsewhere.
fn knowing(query: &Query, found: &Selection) -> Result<Query> {
    let rows = &query.bound().rows;
    if found.dims() == rows.names && found.shape() == rows.shape {
        return query.knowing(crate::query::Known::Selection(found.clone()));
    }
    let message = format!("{found:?} is no selection of the rows of this object");
    Err(Error::new(ErrorKind::InvalidValue, message).hint("run the tasks of the query anew"))
}

fn key_number(shape: &Shape, key: &str) -> Result<usize> {
    let number = shape.keys.iter().position(|k| k == key);
    number.ok_or_else(|| Error::new(ErrorKind::Internal, format!("the key '{key}' was not asked for")))
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

/// The whole query, bound to an object that has all arrays, with keys of a type and no value yet; and that object.
pub(super) fn template<'a>(
    collection: &Collection,
    shape: &Shape,
    asked: (&Plan, &[Class]),
    sources: impl Iterator<Item = &'a SourceObjects>,
    options: &QueryOptions,
) -> Result<(Query, SourceObjects)> {
    if let Some(found) = template_of(collection, shape, asked, sources, options)? {
        return Ok(found);
    }
    // None of those that were found: any tells the types.
    let others = match collection.catalog.as_deref() {
        Some(catalog) => {
            let any = Find::new(Filter::All).collection(collection.name()).limit(TRIED);
            objects::find(catalog, any, shape)?
        }
        None => Vec::new(),
    };
    template_of(collection, shape, asked, others.iter(), options)?.ok_or_else(|| {
        let (name, arrays) = (collection.name(), shape.arrays.join(", "));
        let message = format!("no object of the collection '{name}' has all of {arrays}");
        Error::new(ErrorKind::UnknownArray, message)
            .hint("an object is the group that holds these arrays; `sieva catalog show SOURCE` lists them")
    })
}

fn template_of<'a>(
    collection: &Collection,
    shape: &Shape,
    (plan, classes): (&Plan, &[Class]),
    sources: impl Iterator<Item = &'a SourceObjects>,
    options: &QueryOptions,
) -> Result<Option<(Query, SourceObjects)>> {
    let constant = |column: &Column| match column.kind {
        ColumnKind::Object | ColumnKind::Source => Ok(Class::Text.unknown()),
        _ => Ok(classes[key_number(shape, &column.path)?].unknown()),
    };
    let mut tried = 0;
    for found in sources {
        let hint = manifests::hints(collection.catalog.as_deref(), &[found])?.pop().unwrap_or(Hint::None);
        let source = opener::open(found, hint, &collection.options)?;
        let schema = source.schema();
        for object in &found.objects {
            tried += 1;
            let array = |name: &str| array_of(schema, &object.group, name);
            let names = ObjectNames { array: &array, constant: &constant };
            if let Some((plan, constants)) = plan_of_object(schema, plan, &names, options.cross)? {
                let query = Query::of_object(&source, plan, &constants, options)?;
                collection.did.note(&source);
                // Its keys are no matter, and may be of other types where they are not those of the query's objects.
                let (group, values) = (object.group.clone(), vec![None; shape.keys.len()]);
                let example = SourceObjects { objects: vec![Object { group, values }], ..found.outline() };
                return Ok(Some((query, example)));
            }
        }
        collection.did.note(&source);
        if tried >= TRIED {
            break;
        }
    }
    Ok(None)
}
