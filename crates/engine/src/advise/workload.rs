//! What was asked of one array, in the short text that the catalog keeps: bounds of stored values, the way that was
//! taken, and what else the query used.

use serde_json::{Value as Json, json};
use sieva_types::keys::{f32_key, f32_of_key, f64_key, f64_of_key, key_range};
use sieva_types::{DType, KeySet};

/// Intervals that are told one by one; what lies beyond is told by its least and greatest value.
const INTERVALS: usize = 4;
/// Bytes of the text that the catalog keeps.
const TEXT: usize = 512;

/// The way that a query found its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Every tile was read.
    Scan,
    /// Some tiles were decided without reading.
    ZoneMap,
    /// Bitmaps were read.
    Bitmap,
    /// A sorted replica was.
    Sorted,
    /// None of it: what was known answered it.
    Known,
}

impl Way {
    const NAMED: [(&'static str, Way); 5] = [
        ("scan", Self::Scan),
        ("zonemap", Self::ZoneMap),
        ("bitmap", Self::Bitmap),
        ("sorted", Self::Sorted),
        ("known", Self::Known),
    ];

    fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, w)| *w == self).map_or("known", |(n, _)| n)
    }
}

/// What was asked of one array.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    /// The stored values that were looked for; `None` where no condition was on the array's stored values.
    pub set: Option<KeySet>,
    /// The way that was taken.
    pub way: Way,
    /// The array's part of what the query had to read.
    pub share: f64,
    /// Whether conditions were on this array alone, so that the hits are its own.
    pub alone: bool,
    /// Other arrays that the query used.
    pub with: Vec<String>,
}

impl Asked {
    /// The text, which is JSON.
    pub fn encode(&self, dtype: DType) -> String {
        let mut out = json!({"way": self.way.name(), "share": (self.share * 1000.0).round() / 1000.0});
        if self.alone {
            out["alone"] = json!(true);
        }
        if let Some(set) = &self.set {
            let ranges = shortened(&set.ranges);
            let shown = ranges.iter().map(|&(a, b)| json!([value(a, dtype), value(b, dtype)]));
            out["in"] = shown.collect();
            if set.nan {
                out["nan"] = json!(true);
            }
        }
        let mut text = out.to_string();
        let mut with = Vec::new();
        for name in &self.with {
            with.push(name.as_str());
            out["with"] = json!(with);
            let longer = out.to_string();
            if longer.len() > TEXT {
                break;
            }
            text = longer;
        }
        text
    }

    /// What a text says of an array of this type; `None` where it is none of ours.
    pub fn decode(text: &str, dtype: DType) -> Option<Self> {
        let json: Json = serde_json::from_str(text).ok()?;
        let way = json["way"].as_str().and_then(|w| Way::NAMED.iter().find(|(n, _)| *n == w))?.1;
        let ranges = json["in"].as_array().map(|all| {
            let ends = |r: &Json| (key(&r[0], dtype, false), key(&r[1], dtype, true));
            // The union sorts them, whatever was written.
            let each = all.iter().map(ends).map(|(low, high)| KeySet::interval(low, high));
            each.fold(KeySet::EMPTY, |all, one| all.union(&one))
        });
        let set = ranges.map(|s| KeySet { nan: json["nan"] == true, ..s });
        let names = json["with"].as_array().into_iter().flatten();
        Some(Self {
            set,
            way,
            share: json["share"].as_f64().unwrap_or(1.0).clamp(0.0, 1.0),
            alone: json["alone"] == true,
            with: names.filter_map(Json::as_str).map(str::to_string).collect(),
        })
    }
}

fn shortened(ranges: &[(i128, i128)]) -> Vec<(i128, i128)> {
    let mut out: Vec<_> = ranges.iter().copied().take(INTERVALS).collect();
    if let (Some(last), Some(end)) = (out.last_mut(), ranges.last()) {
        last.1 = end.1;
    }
    out
}

/// The value of a key; `null` for the end of a type, and for infinity.
fn value(key: i128, dtype: DType) -> Json {
    let (low, high) = key_range(dtype);
    if key <= low || key >= high {
        return Json::Null;
    }
    match dtype {
        // The shortest decimal that means this float.
        DType::F16 | DType::F32 => json!(f32_of_key(key).to_string().parse::<f64>().unwrap_or_default()),
        DType::F64 => json!(f64_of_key(key)),
        _ => i64::try_from(key).map_or_else(|_| json!(key as u64), |k| json!(k)),
    }
}

fn key(value: &Json, dtype: DType, is_high: bool) -> i128 {
    let (low, high) = key_range(dtype);
    let end = if is_high { high } else { low };
    let key = match dtype {
        DType::F16 | DType::F32 => value.as_f64().map(|v| f32_key(v as f32)),
        DType::F64 => value.as_f64().map(f64_key),
        _ => value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)),
    };
    key.unwrap_or(end).clamp(low, high.max(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(set: KeySet) -> Asked {
        Asked {
            set: Some(set),
            way: Way::Scan,
            share: 0.5,
            alone: true,
            with: vec!["a/b".into(), "c".into()],
        }
    }

    #[test]
    fn a_text_says_what_was_asked() {
        for (dtype, low, high) in [
            (DType::F32, f32_key(1.7), f32_key(f32::INFINITY)),
            (DType::F64, f64_key(-0.1), f64_key(1e300)),
            (DType::I64, -5, i128::from(i64::MAX) - 1),
            (DType::U64, 3, i128::from(u64::MAX) - 1),
            (DType::U8, 0, 255),
        ] {
            let asked = asked(KeySet { nan: true, ..KeySet::interval(low, high) });
            assert_eq!(Asked::decode(&asked.encode(dtype), dtype), Some(asked));
        }
    }

    #[test]
    fn a_text_is_short_and_loses_no_value_that_was_asked() {
        let many = KeySet { ranges: (0..1000).map(|i| (i * 10, i * 10 + 1)).collect(), nan: false };
        let mut asked = asked(many);
        asked.with = (0..1000).map(|i| format!("group/array number {i}")).collect();
        let text = asked.encode(DType::I32);
        assert!(text.len() <= TEXT, "{text}");
        let set = Asked::decode(&text, DType::I32).unwrap().set.unwrap();
        assert!(set.contains(9991) && set.contains(0) && !set.contains(5));
    }

    #[test]
    fn texts_of_others_are_left_out() {
        for text in ["", "TEMP > 5", "[]", "{}", r#"{"way":"teleport"}"#, "null"] {
            assert_eq!(Asked::decode(text, DType::F32), None, "{text}");
        }
        let odd = Asked::decode(r#"{"way":"scan","in":[[5,1],"x",[null]],"share":1e9}"#, DType::U8).unwrap();
        assert_eq!(odd.share, 1.0);
    }
}
