//! What a name means in a collection: a key of the catalog, an array of the objects, or the object itself.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use sieva_catalog::{Catalog, Filter, Find, ObjectKind};
use sieva_plan::{Column, ColumnKind};
use sieva_query::ast::{Expr, Literal, Name, Span};
use sieva_types::{Error, ErrorKind, Result};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    /// `object`
    Object,
    /// `source`
    Source,
    /// An attribute or a tag.
    Key(String),
    /// An array, by its path within the object.
    Array(String),
}

impl Meaning {
    /// The one expression of this meaning: a tree whose names are resolved has no other names.
    pub(super) fn expr(&self) -> Expr {
        match self {
            Self::Object => word(OBJECT),
            Self::Source => word(SOURCE),
            Self::Key(key) => Expr::Call {
                function: TAG.to_owned(),
                args: vec![Expr::Literal(Literal::Str(key.clone()))],
                distinct: false,
                star: false,
            },
            Self::Array(path) => Expr::name(path),
        }
    }

    /// The meaning of an expression that [`Meaning::expr`] made.
    pub(super) fn of_expr(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::Name(Name { text, quoted: true, .. }) => Some(Self::Array(text.clone())),
            Expr::Name(name) if name.text == OBJECT => Some(Self::Object),
            Expr::Name(name) if name.text == SOURCE => Some(Self::Source),
            Expr::Call { function, args, .. } if function == TAG => match args.as_slice() {
                [Expr::Literal(Literal::Str(key))] => Some(Self::Key(key.clone())),
                _ => None,
            },
            _ => None,
        }
    }

    /// The column of a plan that a resolved name is.
    pub(super) fn column_of(expr: &Expr) -> Result<Column> {
        let (path, kind) = match Self::of_expr(expr) {
            Some(Self::Object) => (String::new(), ColumnKind::Object),
            Some(Self::Source) => (String::new(), ColumnKind::Source),
            Some(Self::Key(key)) => (key, ColumnKind::Key),
            Some(Self::Array(path)) => (path, ColumnKind::Value),
            None => return Err(Error::new(ErrorKind::Internal, format!("'{expr}' was not resolved"))),
        };
        Ok(Column::of_object(&path, kind))
    }
}

/// Names that are not those of keys and arrays, and the function that says that a name is a key's.
const OBJECT: &str = "object";
const SOURCE: &str = "source";
const TAG: &str = "tag";

fn word(text: &str) -> Expr {
    Expr::Name(Name { text: text.to_owned(), quoted: false, span: Span::default() })
}

/// The names of a collection, told by one of its sources and, for what that lacks, by the catalog. Those of a plan tell
/// what they mean themselves.
pub(super) struct Names<'a> {
    told: Option<Told<'a>>,
    known: RefCell<HashMap<Name, Result<Meaning>>>,
}

/// What the catalog tells of names.
struct Told<'a> {
    catalog: &'a Catalog,
    collection: &'a str,
    keys: BTreeSet<String>,
    arrays: Vec<String>,
}

impl<'a> Names<'a> {
    /// Looks at the first source of the collection.
    pub(super) fn load(catalog: &'a Catalog, collection: &'a str) -> Result<Self> {
        let any = Find::new(Filter::All).kind(Some(ObjectKind::Array)).collection(collection).limit(1);
        let Some(first) = catalog.find(&any)?.pop() else {
            return Err(Error::new(
                ErrorKind::UnknownArray,
                format!("the collection '{collection}' holds no array"),
            )
            .hint("add sources to it: sieva catalog add DIR --collection NAME"));
        };
        let objects = catalog.show(&first.location)?.map(|(_, objects)| objects).unwrap_or_default();
        let (mut keys, mut arrays) = (BTreeSet::new(), Vec::new());
        for object in objects {
            keys.extend(object.attributes.into_iter().map(|(key, _, _)| key));
            if object.kind == ObjectKind::Array {
                arrays.push(object.path);
            }
        }
        Ok(Self { told: Some(Told { catalog, collection, keys, arrays }), known: RefCell::default() })
    }

    /// The names of a plan's tree: its arrays stand in quotes, its keys in `tag()`.
    pub(super) fn of_plan() -> Self {
        Self { told: None, known: RefCell::default() }
    }

    /// Whether a name means something.
    pub(super) fn knows(&self, name: &Name) -> bool {
        !matches!(self.meaning(name), Err(e) if e.kind() == ErrorKind::UnknownArray)
    }

    /// What a name means.
    pub(super) fn meaning(&self, name: &Name) -> Result<Meaning> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let found = self.find(name);
        self.known.borrow_mut().insert(name.clone(), found.clone());
        found
    }

    /// The expression with its names resolved, `tag(NAME)` as well.
    pub(super) fn resolved(&self, expr: &Expr) -> Result<Expr> {
        match expr {
            Expr::Name(name) => Ok(self.meaning(name)?.expr()),
            Expr::Call { function, args, .. } if function == TAG => match args.as_slice() {
                [Expr::Name(name)] => Ok(Meaning::Key(name.text.clone()).expr()),
                [Expr::Literal(Literal::Str(key))] => Ok(Meaning::Key(key.clone()).expr()),
                _ => Err(Error::new(ErrorKind::Syntax, format!("tag() takes the name of a key: {expr}"))
                    .hint("write tag(plate) or tag(\"DATE-OBS\")")),
            },
            Expr::Subquery(_) => Err(Error::new(
                ErrorKind::Unsupported,
                format!("a subquery in a query of a collection: {expr}"),
            )
            .hint("ask it first, and write its value")),
            other => other.clone().try_map_children(&mut |child| self.resolved(child)),
        }
    }

    fn find(&self, name: &Name) -> Result<Meaning> {
        match (name.text.as_str(), &self.told) {
            (OBJECT, _) if !name.quoted => Ok(Meaning::Object),
            (SOURCE, _) if !name.quoted => Ok(Meaning::Source),
            (_, Some(told)) => told.find(name),
            (path, None) => Ok(Meaning::Array(path.trim_start_matches('/').to_owned())),
        }
    }
}

impl Told<'_> {
    fn find(&self, name: &Name) -> Result<Meaning> {
        let wanted = name.text.trim_start_matches('/').replace("::", ".");
        let arrays: BTreeSet<&str> = self.arrays.iter().filter_map(|path| relative(path, &wanted)).collect();
        let mut is_key = self.keys.contains(&name.text);
        let mut array = match arrays.iter().copied().collect::<Vec<_>>()[..] {
            [] => None,
            [one] => Some(one.to_string()),
            // `flux` itself is nearer than the member `spectrum.flux`.
            _ if arrays.contains(wanted.as_str()) => Some(wanted.clone()),
            _ => {
                let all = arrays.iter().copied().collect::<Vec<_>>().join(", ");
                return Err(Error::new(
                    ErrorKind::AmbiguousName,
                    format!("'{}' could mean the arrays {all}", name.text),
                )
                .hint("write one of them in double quotes"));
            }
        };
        if !is_key && array.is_none() {
            is_key = self.is_key_elsewhere(&name.text)?;
            let leaf = wanted.rsplit('/').next().unwrap_or(&wanted);
            let elsewhere = self.catalog.could_contain(leaf, None, None, Some(self.collection))?;
            array = (!elsewhere.is_empty()).then(|| wanted.clone());
        }
        match (is_key, array) {
            (true, None) => Ok(Meaning::Key(name.text.clone())),
            (false, Some(path)) => Ok(Meaning::Array(path)),
            (true, Some(path)) if name.quoted => Ok(Meaning::Array(path)),
            (true, Some(_)) => Err(Error::new(
                ErrorKind::AmbiguousName,
                format!("'{0}' is a key and an array in the collection '{1}'", name.text, self.collection),
            )
            .hint(format!("write tag({0}) for the key, \"{0}\" in double quotes for the array", name.text))),
            (false, None) => Err(self.unknown(&name.text)),
        }
    }

    fn is_key_elsewhere(&self, key: &str) -> Result<bool> {
        let find = Find::new(Filter::Exists(key.to_string())).kind(None).collection(self.collection).limit(1);
        Ok(!self.catalog.find(&find)?.is_empty())
    }

    fn unknown(&self, name: &str) -> Error {
        let few = |names: BTreeSet<&str>| {
            let shown: Vec<&str> = names.iter().copied().take(12).collect();
            let rest = names.len() - shown.len();
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            if shown.is_empty() { "none".to_string() } else { format!("{}{more}", shown.join(", ")) }
        };
        let keys = few(self.keys.iter().map(String::as_str).collect());
        let arrays = few(self.arrays.iter().map(|p| p.rsplit('/').next().unwrap_or(p)).collect());
        let what = format!("'{name}' is neither a key nor an array in the collection '{}'", self.collection);
        Error::new(ErrorKind::UnknownArray, what).hint(format!("keys: {keys}; arrays: {arrays}"))
    }
}

/// The part of an array's path that a name within an object means: `spectrum.flux` of `4055/57/spectrum.flux` by
/// `spectrum.flux` and by `flux`.
pub(super) fn relative<'p>(path: &'p str, wanted: &str) -> Option<&'p str> {
    let front = path.strip_suffix(wanted)?;
    if front.is_empty() || front.ends_with('/') {
        return Some(&path[front.len()..]);
    }
    // A member of a compound: its dataset is part of the name.
    let start = front.rfind('/').map_or(0, |i| i + 1);
    (front.ends_with('.') && !wanted.contains('/')).then(|| &path[start..])
}
