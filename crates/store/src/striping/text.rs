//! A striping as text: `stripe_size=1MiB,stripe_count=4,stripe_offset=0`.
//!
//! | key | means |
//! |---|---|
//! | `stripe_size` | bytes of a stripe: a number, or with KiB, MiB, GiB |
//! | `stripe_count` | servers that have stripes, by turns; 1 where it is not given |
//! | `stripe_offset` | the server of the first stripe; 0 |
//! | `servers` | how many servers there are; as many as have stripes |
//! | `on` | in place of the last three: their numbers in the order of the stripes, `on=3+7+1` |
//! | `object_size` | stripes go by turns to `stripe_count` objects of so many bytes, then to the next |
//! | `from` | the first byte that this holds for; parts are separated by `;` |
//!
//! `single` is one server.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use sieva_types::{Error, Result, parse_size};

use super::rule::{Place, Rule};
use super::{MOST_SERVERS, Servers, Striping, Turns, wrong};

const KEYS: &str = "stripe_size, stripe_count, stripe_offset, servers, on, object_size and from";
const EXAMPLE: &str = "write stripe_size=1MiB,stripe_count=4,stripe_offset=0, or single";

/// What one part of the text says.
#[derive(Default)]
struct Words {
    size: Option<u64>,
    count: Option<u32>,
    offset: Option<u32>,
    servers: Option<u32>,
    on: Option<Vec<u32>>,
    object_size: Option<u64>,
    from: Option<u64>,
}

impl Striping {
    /// What a text says.
    ///
    /// # Errors
    /// `invalid-value` with what is expected.
    ///
    /// ```
    /// use sieva_store::Striping;
    ///
    /// let striping = Striping::parse("stripe_size=64KiB,stripe_count=2,object_size=1MiB")?;
    /// assert_eq!(striping.to_string(), "stripe_size=64KiB,stripe_count=2,object_size=1MiB");
    /// assert!(Striping::parse("stripe_size=lots").is_err());
    /// # Ok::<(), sieva_types::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        if text.trim() == "single" {
            return Ok(Self::single_as("given"));
        }
        Self::of_words(text).map_err(|e| if e.hint_text().is_some() { e } else { e.hint(EXAMPLE) })
    }

    fn of_words(text: &str) -> Result<Self> {
        let parts = text.split(';').map(Words::parse).collect::<Result<Vec<_>>>()?;
        match parts.as_slice() {
            [one] if one.from.is_none() => one.striping(),
            parts => {
                let turns = parts.iter().map(Words::turns).collect::<Result<Vec<_>>>()?;
                Self::by_turns(turns, "server", Vec::new(), "given".into())
            }
        }
    }
}

impl FromStr for Striping {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl Words {
    fn parse(text: &str) -> Result<Self> {
        let mut words = Self::default();
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| wrong(format!("'{word}': expected key=value, with {KEYS}")))?;
            let (key, value) = (key.trim(), value.trim());
            let is_new = match key {
                "stripe_size" => words.size.replace(size(key, value)?).is_none(),
                "stripe_count" => words.count.replace(number(key, value)?).is_none(),
                "stripe_offset" => words.offset.replace(number(key, value)?).is_none(),
                "servers" => words.servers.replace(number(key, value)?).is_none(),
                "on" => {
                    let list =
                        value.split('+').map(|n| number(key, n.trim())).collect::<Result<Vec<u32>>>()?;
                    words.on.replace(list).is_none()
                }
                "object_size" => words.object_size.replace(size(key, value)?).is_none(),
                "from" => words.from.replace(size(key, value)?).is_none(),
                _ => return Err(wrong(format!("'{key}' is not one of {KEYS}"))),
            };
            if !is_new {
                return Err(wrong(format!("'{key}' is given twice")));
            }
        }
        Ok(words)
    }

    fn size(&self) -> Result<u64> {
        self.size.ok_or_else(|| wrong("no stripe_size".into()))
    }

    /// What these words say alone.
    fn striping(&self) -> Result<Striping> {
        let (size, count) = (self.size()?, self.count.unwrap_or(1));
        if self.on.is_some() {
            return Striping::by_turns(vec![self.turns()?], "server", Vec::new(), "given".into());
        }
        let Some(object_size) = self.object_size else {
            return Striping::given_of(size, count, self.offset.unwrap_or(0), self.servers.unwrap_or(count));
        };
        if self.offset.is_some() || self.servers.is_some() {
            return Err(wrong("objects have no stripe_offset and no servers".into()));
        }
        // How long the file is, is not known here: no number of objects is too large.
        let told = Striping::by_objects(size, count.into(), object_size, 0, "object", "given".into())?;
        Ok(Striping { servers: Servers::Numbered("object", u32::MAX.into()), ..told })
    }

    /// What they say as a part of several.
    fn turns(&self) -> Result<Turns> {
        if self.object_size.is_some() || self.servers.is_some() {
            return Err(wrong("a part of several has no object_size and no servers".into()));
        }
        if self.on.is_some() && (self.count.is_some() || self.offset.is_some()) {
            return Err(wrong("on= says how many servers there are, and which is the first".into()));
        }
        let (count, offset) = (self.count.unwrap_or(1), self.offset.unwrap_or(0));
        if count > MOST_SERVERS || self.on.as_ref().is_some_and(|on| on.len() > MOST_SERVERS as usize) {
            return Err(wrong(format!("more than {MOST_SERVERS} servers")));
        }
        let on = match &self.on {
            Some(on) => on.clone(),
            None => (0..count).map(|j| (offset % count.max(1) + j) % count.max(1)).collect(),
        };
        Ok(Turns { from: self.from.unwrap_or(0), unit: self.size()?, on })
    }
}

fn size(key: &str, value: &str) -> Result<u64> {
    parse_size(value).map_err(|e| wrong(format!("{key}: {}", e.message())))
}

fn number(key: &str, value: &str) -> Result<u32> {
    value.parse().map_err(|_| wrong(format!("{key}: '{value}' is no whole number below 2^32")))
}

/// Bytes in the largest unit that gives a whole number.
fn shown(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

impl Display for Striping {
    /// The text that [`Striping::parse`] reads.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_single() {
            return f.write_str("single");
        }
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                f.write_str(";")?;
            }
            if self.parts.len() > 1 {
                write!(f, "from={},", shown(part.range.start))?;
            }
            self.write_rule(f, &part.rule)?;
        }
        Ok(())
    }
}

impl Striping {
    fn write_rule(&self, f: &mut Formatter<'_>, rule: &Rule) -> fmt::Result {
        write!(f, "stripe_size={}", shown(rule.unit))?;
        match (&rule.place, &self.servers) {
            (Place::Objects { slots, rounds }, _) => {
                write!(f, ",stripe_count={slots},object_size={}", shown(rounds.saturating_mul(rule.unit)))
            }
            (Place::Slots(slots), Servers::Listed(_, ids))
                if self.parts.len() > 1 || !by_turns(slots, ids) =>
            {
                let id = |slot: &u32| ids.get(*slot as usize).map_or_else(String::new, u32::to_string);
                write!(f, ",on={}", slots.iter().map(id).collect::<Vec<_>>().join("+"))
            }
            (Place::Slots(slots), _) => {
                write!(f, ",stripe_count={},stripe_offset={}", slots.len(), slots[0])?;
                if slots.len() == self.servers() { Ok(()) } else { write!(f, ",servers={}", self.servers()) }
            }
        }
    }
}

/// Whether servers that are numbered from 0 on follow one another, the first after the last.
fn by_turns(slots: &[u32], ids: &[u32]) -> bool {
    let n = ids.len() as u64;
    let is_numbered = ids.iter().enumerate().all(|(i, id)| i as u32 == *id);
    let follows = |pair: &[u32]| (u64::from(pair[0]) + 1) % n == u64::from(pair[1]);
    is_numbered && slots.len() as u64 <= n && slots.windows(2).all(follows)
}
