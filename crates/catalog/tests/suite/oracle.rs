//! Random catalogs and filters, against an oracle that walks every object.

use std::collections::BTreeMap;

use sieva_catalog::{Catalog, Comparison, Filter, Find, ObjectKind, ObjectRecord, SourceRecord, Value};

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn value(&mut self) -> Value {
        let long = "x".repeat(254 + self.next(4) as usize);
        let values = [
            Value::Int(self.next(4) as i64 - 1),
            Value::Float(self.next(6) as f64 / 2.0 - 1.0),
            Value::Float([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0][self.next(4) as usize]),
            Value::Int((1 << 53) + self.next(3) as i64),
            Value::Float(9_007_199_254_740_992.0),
            Value::from(u64::MAX - self.next(2)),
            Value::Text(["", "a", "ab", "b\0", "é%"][self.next(5) as usize].into()),
            Value::Text(format!("{long}{}", ["", "a", "b"][self.next(3) as usize])),
            Value::Bool(self.next(2) == 0),
        ];
        values[self.next(9) as usize].clone()
    }

    fn key(&mut self) -> String {
        ["a", "b", "c", "nowhere"][self.next(4) as usize].to_owned()
    }

    fn filter(&mut self, depth: u64) -> Filter {
        let comparisons = [
            Comparison::Eq,
            Comparison::Eq,
            Comparison::Ne,
            Comparison::Lt,
            Comparison::Le,
            Comparison::Gt,
            Comparison::Ge,
        ];
        let many = |r: &mut Self| (0..r.next(3) + 1).map(|_| r.filter(depth - 1)).collect();
        match self.next(if depth == 0 { 7 } else { 11 }) {
            0 => Filter::Between(self.key(), self.value(), self.value()),
            1 => Filter::In(self.key(), (0..self.next(3)).map(|_| self.value()).collect()),
            2 => Filter::IsNull(self.key()),
            3 => Filter::Exists(self.key()),
            4 => Filter::Like(self.key(), ["%", "a%", "_", "x%b", ""][self.next(5) as usize].into()),
            5 | 6 => Filter::Compare(self.key(), comparisons[self.next(7) as usize], self.value()),
            7 | 8 => Filter::And(many(self)),
            9 => Filter::Or(many(self)),
            _ => Filter::Not(Box::new(self.filter(depth - 1))),
        }
    }

    fn source(&mut self, number: u64) -> SourceRecord {
        let mut source =
            SourceRecord::new(format!("/d/{number:03}"), "HDF5", 1, format!("{}", self.next(1 << 40)));
        let paths = ["", "g", "g/h", "g/h/x", "g/h/y", "g-/z", "g/x", "k/l/m", "v"];
        for path in paths {
            if self.next(4) == 0 {
                continue;
            }
            let is_group = ["", "g", "g/h"].contains(&path);
            let mut object =
                if is_group { ObjectRecord::group(path) } else { ObjectRecord::array(path, "<f4", &[2]) };
            for key in ["a", "b", "c"] {
                if self.next(3) == 0 {
                    object = object.attribute(key, self.value());
                }
            }
            source.objects.push(object);
        }
        source
    }
}

/// An integer and the part beyond it, so that numbers of all types compare exactly.
fn real(value: &Value) -> Option<(i128, f64)> {
    match value {
        Value::Int(i) => Some((i128::from(*i), 0.0)),
        Value::UInt(u) => Some((i128::from(*u), 0.0)),
        Value::Float(x) if x.is_infinite() => Some((if *x > 0.0 { i128::MAX } else { i128::MIN }, 0.0)),
        Value::Float(x) if !x.is_nan() => Some((x.floor() as i128, x - x.floor())),
        _ => None,
    }
}

/// Three-valued: `None` is unknown.
fn compare(value: Option<&Value>, comparison: Comparison, with: &Value) -> Option<bool> {
    let order = match (value?, with) {
        (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (a, b) => real(a)?.partial_cmp(&real(b)?)?,
    };
    Some(match comparison {
        Comparison::Eq => order.is_eq(),
        Comparison::Ne => order.is_ne(),
        Comparison::Lt => order.is_lt(),
        Comparison::Le => order.is_le(),
        Comparison::Gt => order.is_gt(),
        Comparison::Ge => order.is_ge(),
    })
}

fn like(pattern: &[char], text: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some(('%', rest)), _) => (0..=text.len()).any(|n| like(rest, &text[n..])),
        (Some((p, rest)), Some((c, more))) => (*p == '_' || p == c) && like(rest, more),
        _ => false,
    }
}

fn all_of(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let parts: Vec<_> = parts.collect();
    match () {
        () if parts.contains(&Some(false)) => Some(false),
        () if parts.contains(&None) => None,
        () => Some(true),
    }
}

fn not(a: Option<bool>) -> Option<bool> {
    a.map(|b| !b)
}

fn holds(filter: &Filter, of: &dyn Fn(&str) -> Option<Value>) -> Option<bool> {
    match filter {
        Filter::All => Some(true),
        Filter::Compare(key, comparison, value) => compare(of(key).as_ref(), *comparison, value),
        Filter::Between(key, low, high) => {
            let value = of(key);
            let value = value.as_ref();
            all_of([compare(value, Comparison::Ge, low), compare(value, Comparison::Le, high)].into_iter())
        }
        Filter::In(key, values) => {
            let value = of(key);
            not(all_of(values.iter().map(|v| compare(value.as_ref(), Comparison::Ne, v))))
        }
        Filter::Like(key, pattern) => match of(key)? {
            Value::Text(text) => {
                Some(like(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>()))
            }
            _ => None,
        },
        Filter::Glob(..) => panic!("not asked"),
        Filter::IsNull(key) => Some(of(key).is_none_or(|v| v.is_nan())),
        Filter::Exists(key) => Some(of(key).is_some()),
        Filter::And(parts) => all_of(parts.iter().map(|p| holds(p, of))),
        Filter::Or(parts) => not(all_of(parts.iter().map(|p| not(holds(p, of))))),
        Filter::Not(inner) => not(holds(inner, of)),
    }
}

type Tags = BTreeMap<(String, String, String), Value>;

fn value_at(source: &SourceRecord, path: &str, key: &str, tags: &Tags) -> Option<Value> {
    let mut at = path;
    loop {
        if let Some(tag) = tags.get(&(source.location.clone(), at.to_owned(), key.to_owned())) {
            return Some(tag.clone());
        }
        let object = source.objects.iter().find(|o| o.path == at);
        if let Some((_, value)) = object.and_then(|o| o.attributes.iter().find(|(k, _)| k == key)) {
            return Some(value.clone());
        }
        if at.is_empty() {
            return None;
        }
        at = at.rsplit_once('/').map_or("", |(above, _)| above);
    }
}

fn expected(sources: &BTreeMap<String, SourceRecord>, tags: &Tags, filter: &Filter) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for source in sources.values() {
        for object in source.objects.iter().filter(|o| o.kind == ObjectKind::Array) {
            if holds(filter, &|key| value_at(source, &object.path, key, tags)) == Some(true) {
                found.push((source.location.clone(), object.path.clone()));
            }
        }
    }
    found.sort();
    found
}

fn found(catalog: &Catalog, filter: &Filter, limit: usize) -> Vec<(String, String)> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = catalog.find(&Find::new(filter.clone()).limit(limit).after(after)).unwrap();
        assert!(page.len() <= limit && page.windows(2).all(|w| w[0].id < w[1].id));
        after = page.last().map(|o| o.id);
        all.extend(page.iter().map(|o| (o.location.clone(), o.path.clone())));
        if page.len() < limit {
            break;
        }
    }
    assert_eq!(catalog.count(&Find::new(filter.clone())).unwrap(), all.len() as u64, "{filter:?}");
    all.sort();
    all
}

/// Registers, changes, tags and forgets sources at random, and asks at random after each step.
pub fn all(url: &str, questions: u64) {
    let catalog = Catalog::open(url).unwrap();
    let mut random = Random(7);
    let (mut sources, mut tags) = (BTreeMap::new(), Tags::new());
    let mut hits = 0;
    for step in 0..10 {
        let batch: Vec<SourceRecord> = (0..12)
            .map(|_| {
                let number = random.next(40);
                random.source(number)
            })
            .collect();
        catalog.ingest(&batch).unwrap();
        sources.extend(batch.into_iter().map(|s| (s.location.clone(), s)));
        for _ in 0..12 {
            let location = format!("/d/{:03}", random.next(40));
            let path = ["", "g", "g/h/x", "v"][random.next(4) as usize];
            let key = random.key();
            let value = (random.next(4) > 0).then(|| random.value());
            let done = catalog.tag_many(&location, &[(path, &key, value.clone())]);
            let is_there = sources.get(&location).is_some_and(|s: &SourceRecord| {
                path.is_empty()
                    || s.objects.iter().any(|o| o.path == path || o.path.starts_with(&format!("{path}/")))
            });
            assert_eq!(done.is_ok(), is_there, "{location} {path}: {done:?}");
            if is_there {
                match value {
                    Some(value) => tags.insert((location, path.into(), key), value),
                    None => tags.remove(&(location, path.into(), key)),
                };
            }
        }
        let gone = format!("/d/{:03}", random.next(40));
        assert_eq!(catalog.forget(&gone).unwrap(), sources.remove(&gone).is_some());
        tags.retain(|(location, _, _), _| *location != gone);
        for _ in 0..questions / 10 {
            let filter = random.filter(3);
            let right = expected(&sources, &tags, &filter);
            hits += right.len();
            let limit = [1usize, 7, 1000][random.next(3) as usize];
            assert_eq!(found(&catalog, &filter, limit), right, "step {step}: {filter:?}");
        }
    }
    assert!(hits > 500, "{hits} hits are too few to say anything");
}
