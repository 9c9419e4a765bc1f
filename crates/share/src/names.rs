//! Names of people, producers and asks, and the keys that are made of them.
//!
//! The three containers of Scibox (section V) are three prefixes of a group:
//!
//! ```text
//! group/group.json             the group                        created once
//! group/producers/P.json       what P has                       P
//! group/schemas/P.json         names, shapes, attributes, ...   P
//! group/members/U.json         U belongs to it, asks for this   U
//! users/U/P.json               what P put for U: the index      P
//! users/U/taken.json           how far it was taken             U
//! data/P/ID.SUFFIX             results                          P
//! group/published/U/NAME.json  what U published as NAME         U
//! published/U/NAME             the file                         U
//! ```
//!
//! The last column says who writes it: nothing is written by two, so that no order of puts loses one. None of them is of one
//! ask: a member that asks for a thousand things is read by as many requests as one that asks for one.

use sieva::{Error, ErrorKind, Result, printable};
use sieva_store::name_of;

pub(crate) const GROUP: &str = "group/group.json";
pub(crate) const PRODUCERS: &str = "group/producers/";
pub(crate) const MEMBERS: &str = "group/members/";
pub(crate) const PUBLISHED: &str = "group/published/";
const TAKEN: &str = "taken";

/// The longest name.
const MOST: usize = 64;
/// The longest name of what is published.
const MOST_OBJECT: usize = 120;

/// Refuses what is no name of a user, a producer or an ask.
pub(crate) fn check(what: &str, name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if starts && name.len() <= MOST && name.chars().all(plain) && name != TAKEN {
        return Ok(());
    }
    let message = format!("'{}' is no name of {what}", printable(name));
    let hint = format!(
        "take up to {MOST} letters, digits, '-', '.' and '_', the first no '-' or '.'; '{TAKEN}' is taken"
    );
    Err(Error::new(ErrorKind::InvalidValue, message).hint(hint))
}

/// Refuses what is no name of something that is published: it is that of a file, wherever it is put.
pub(crate) fn check_object(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if starts && name.len() <= MOST_OBJECT && name.chars().all(plain) {
        return Ok(());
    }
    let message = format!("'{}' is no name to publish by", printable(name));
    let hint = format!(
        "take up to {MOST_OBJECT} letters, digits, '-', '.' and '_', the first no '-' or '.': --as NAME"
    );
    Err(Error::new(ErrorKind::InvalidValue, message).hint(hint))
}

pub(crate) fn published(user: &str, name: &str) -> String {
    format!("{PUBLISHED}{user}/{name}.json")
}

pub(crate) fn published_data(user: &str, name: &str) -> String {
    format!("published/{user}/{name}")
}

/// User and name of the record of something that is published; what else lies there is not ours.
pub(crate) fn of_published(key: &str) -> Option<(String, String)> {
    let (user, name) = key.strip_prefix(PUBLISHED)?.strip_suffix(".json")?.split_once('/')?;
    let is_ours = check("", user).is_ok() && check_object(name).is_ok();
    is_ours.then(|| (user.to_owned(), name.to_owned()))
}

pub(crate) fn producer(producer: &str) -> String {
    format!("{PRODUCERS}{producer}.json")
}

pub(crate) fn schema(producer: &str) -> String {
    format!("group/schemas/{producer}.json")
}

pub(crate) fn member(user: &str) -> String {
    format!("{MEMBERS}{user}.json")
}

pub(crate) fn index(user: &str, producer: &str) -> String {
    format!("users/{user}/{producer}.json")
}

pub(crate) fn taken(user: &str) -> String {
    index(user, TAKEN)
}

pub(crate) fn data(producer: &str) -> String {
    format!("data/{producer}/")
}

/// The name between a prefix and `.json`, where it is one; what else lies there is not ours.
pub(crate) fn of_key<'k>(key: &'k str, prefix: &str) -> Option<&'k str> {
    let name = key.strip_prefix(prefix)?.strip_suffix(".json")?;
    check("", name).is_ok().then_some(name)
}

/// A name for a file on a consumer's disk, whatever a producer calls its step: no folder, nothing hidden, another one for
/// another step.
pub(crate) fn of_file(step: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._+=".contains(c);
    let name: String = step.chars().take(120).map(|c| if plain(c) { c } else { '_' }).collect();
    match name == step && !name.starts_with(['.', '-']) && !name.is_empty() {
        true => name,
        false => format!("_{name}-{}", &name_of(step.as_bytes())[..8]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["ada", "A.b-c_1", "_x", &"a".repeat(64)] {
            check("a user", good).unwrap();
        }
        for bad in ["", ".", "..", "-a", ".a", "a/b", "a b", "a\n", "é", "taken", &"a".repeat(65)] {
            assert_eq!(check("a user", bad).unwrap_err().kind(), ErrorKind::InvalidValue, "{bad:?}");
        }
    }

    #[test]
    fn keys_give_their_names_back() {
        assert_eq!(of_key(&producer("model"), PRODUCERS), Some("model"));
        assert_eq!(of_key("group/producers/a/b.json", PRODUCERS), None);
        assert_eq!(of_key("group/producers/model.txt", PRODUCERS), None);
        assert_eq!(of_key(&taken("u"), "users/u/"), None);
        let pair = |user: &str, name: &str| Some((user.to_owned(), name.to_owned()));
        assert_eq!(of_published(&published("ada", "a.json")), pair("ada", "a.json"));
        assert_eq!(of_published("group/published/ada/b/c.json"), None);
        assert_eq!(of_published("group/published/c.json"), None);
    }

    #[test]
    fn what_is_published_has_the_name_of_a_file() {
        for good in ["a.nc", "taken", "_x", &"a".repeat(120)] {
            check_object(good).unwrap();
        }
        for bad in ["", ".", "..", "../a", "/a", "a/b", ".a", "-a", "a b", "a\0", "é", &"a".repeat(121)] {
            assert_eq!(check_object(bad).unwrap_err().kind(), ErrorKind::InvalidValue, "{bad:?}");
        }
    }

    #[test]
    fn files_of_steps_stay_in_their_folder() {
        assert_eq!(of_file("run7.0001.nc"), "run7.0001.nc");
        for hostile in ["../../etc/passwd", "/etc/passwd", ".hidden", "-rf", "", "a\0b", "\u{202e}cn.a"] {
            let name = of_file(hostile);
            assert!(name.starts_with('_') && !name.contains(['/', '\0']), "{name:?}");
        }
        assert_ne!(of_file("a b"), of_file("a?b"));
    }
}
