//! The key of an encrypted group: 32 bytes that nobody but its members has.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use ring::rand::{SecureRandom, SystemRandom};
use ring::{aead, hkdf, hmac};
use sieva::{Error, ErrorKind, Result, local};

/// What says where the key is, or is it.
const VARIABLE: &str = "SIEVA_SHARE_KEY";
/// How a key begins as text.
const PREFIX: &str = "sieva-share-key-1:";
/// The longest file of a key.
const MOST: u64 = 4096;
const BYTES: usize = 32;
/// Of the keys of objects: another one for another form of them.
const OF_OBJECTS: &[u8] = b"sieva-share object 1";
/// Of what tells whether a key is the one of a group.
const OF_CHECKS: &[u8] = b"sieva-share check 1";

/// The key of a group.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupKey([u8; BYTES]);

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupKey(..)")
    }
}

impl GroupKey {
    /// A new one.
    ///
    /// # Errors
    /// `io-error` where the system has no random numbers.
    pub fn draw() -> Result<Self> {
        Ok(Self(drawn()?))
    }

    /// The key in a file, which nobody else may read.
    ///
    /// # Errors
    /// `permission-denied` for one that others may read; `invalid-value` for what is no key, and for the text of one in the
    /// place of a path, which is told nobody; `file-not-found`.
    pub fn read(path: &Path) -> Result<Self> {
        refuse_text(path)?;
        sieva_store::check_name(path, "the path of a key")?;
        let file = local::told("opening", path, local::open_regular(path))?;
        let meta = local::told("opening", path, file.metadata())?;
        if meta.mode() & 0o077 != 0 {
            let message = format!("'{}' is a key, and others may read it", path.display());
            return Err(Error::new(ErrorKind::PermissionDenied, message)
                .hint(format!("take their rights away: chmod 600 '{}'", path.display())));
        }
        let bytes = local::told("reading", path, local::read_file(&file, MOST))?;
        Self::parse(&String::from_utf8_lossy(&bytes), &format!("'{}'", path.display()))
    }

    /// The key in a file, or a new one in a new file that nobody else may read.
    ///
    /// # Errors
    /// As [`GroupKey::read`]; those of writing.
    pub fn read_or_make(path: &Path) -> Result<Self> {
        refuse_text(path)?;
        sieva_store::check_name(path, "the path of a key")?;
        let mut options = std::fs::File::options();
        let mut file = match options.write(true).create_new(true).mode(0o600).open(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Self::read(path),
            made => local::told("making", path, made)?,
        };
        let key = Self::draw()?;
        let written = writeln!(file, "{}", key.text()).and_then(|()| file.sync_all());
        if written.is_err() {
            let _ = std::fs::remove_file(path);
        }
        local::told("writing", path, written)?;
        Ok(key)
    }

    /// The key that the environment has: `SIEVA_SHARE_KEY` is the path of its file, or its text.
    ///
    /// # Errors
    /// As [`GroupKey::read`].
    pub fn of_environment() -> Result<Option<Self>> {
        match std::env::var_os(VARIABLE) {
            Some(given) if !given.is_empty() => Self::given(&given).map(Some),
            _ => Ok(None),
        }
    }

    /// The key that is given as the path of its file, or as its text, with blanks and quotes around it or without.
    fn given(given: &OsStr) -> Result<Self> {
        match given.to_str().filter(|text| bare(text).starts_with(PREFIX)) {
            Some(text) => Self::parse(text, VARIABLE),
            None => Self::read(Path::new(given)),
        }
    }

    /// Reads a key as text; `of` names where it is, as the key itself is told nobody.
    fn parse(text: &str, of: &str) -> Result<Self> {
        let digits = bare(text).strip_prefix(PREFIX).filter(|digits| digits.len() == 2 * BYTES);
        let byte =
            |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|two| u8::from_str_radix(two, 16).ok());
        let bytes = digits
            .filter(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()))
            .and_then(|digits| digits.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>());
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or_else(|| {
            let message = format!("{of} holds no key of a group: '{PREFIX}' and {} digits", 2 * BYTES);
            Error::new(ErrorKind::InvalidValue, message)
                .hint("take the file that its maker got: sieva share create PLACE --encrypt --key FILE")
        })
    }

    /// The key as text, for its file.
    fn text(&self) -> String {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{PREFIX}{digits}")
    }

    /// What shows, without the key, that these words were said by who had it.
    pub(crate) fn check(&self, words: &str) -> String {
        let tag = hmac::sign(&self.check_key(), words.as_bytes());
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a check is one of these words by this key.
    pub(crate) fn is_checked(&self, words: &str, check: &str) -> bool {
        self.check(words) == check
    }

    fn check_key(&self) -> hmac::Key {
        hmac::Key::new(
            hmac::HMAC_SHA256,
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), OF_CHECKS).as_ref(),
        )
    }

    /// The key of one object of so many bytes, put once: `salt` is drawn for each put.
    pub(crate) fn of_object(&self, salt: &[u8], name: &str, size: u64) -> Result<aead::LessSafeKey> {
        let size = size.to_be_bytes();
        let info = [OF_OBJECTS, &size[..], name.as_bytes()];
        let failed = |_| Error::new(ErrorKind::Internal, "no key of an object can be made");
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(&self.0);
        let made = secret.expand(&info, &aead::AES_256_GCM).map_err(failed)?;
        Ok(aead::LessSafeKey::new(aead::UnboundKey::from(made)))
    }
}

/// A text without the blanks and quotes around it, which shells and files of settings leave there.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''))
}

/// Refuses what is a key itself, by what it looks like, where the path of one belongs: such a path would be shown.
fn refuse_text(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    // A few digits that were cut off make none of it a path that may be shown.
    let is_digits = |part: &str| part.len() >= 3 * BYTES / 2 && part.bytes().all(|c| c.is_ascii_hexdigit());
    let has_digits = text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_digits);
    if !text.contains(PREFIX) && (!has_digits || path.exists()) {
        return Ok(());
    }
    let message = "the key itself is given where the path of its file belongs (it is not shown here)";
    Err(Error::new(ErrorKind::InvalidValue, message).hint(format!(
        "name the file: --key FILE; {VARIABLE} may be the path, or the text as it is in the file: '{PREFIX}' and digits"
    )))
}

/// Bytes that nobody foresees.
pub(crate) fn drawn<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let failed = |_| Error::new(ErrorKind::Io, "the system gives no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_read_by_its_owner_alone() {
        let dir = std::env::temp_dir().join(format!("sieva-key-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("key");
        assert_eq!(GroupKey::read(&path).unwrap_err().kind(), ErrorKind::FileNotFound);
        let key = GroupKey::read_or_make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(GroupKey::read_or_make(&path).unwrap() == key && GroupKey::read(&path).unwrap() == key);
        assert!(GroupKey::draw().unwrap() != key && format!("{key:?}") == "GroupKey(..)");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let e = GroupKey::read(&path).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::PermissionDenied);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let text = key.text();
        for wrong in
            ["", "x", &text[1..], &text[..text.len() - 1], &format!("{text}0"), &text.replace(':', ":+")]
        {
            fs::write(&path, wrong).unwrap();
            let e = GroupKey::read(&path).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidValue, "{wrong:?}");
            assert!(!e.message().contains(&text[PREFIX.len() + 1..PREFIX.len() + 20]), "{e}");
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_key_is_never_shown_and_blanks_and_quotes_around_it_are_none_of_it() {
        let key = GroupKey::draw().unwrap();
        let text = key.text();
        for given in [text.clone(), format!(" {text}\n"), format!("\"{text}\""), format!("'{text}' ")] {
            assert!(GroupKey::given(OsStr::new(&given)).unwrap() == key);
        }
        let digits = &text[PREFIX.len()..];
        let hidden = |e: &Error| {
            let all = format!("{} {} {e:?}", e.message(), e.hint_text().unwrap_or_default());
            assert_eq!(e.kind(), ErrorKind::InvalidValue, "{e}");
            assert!(!all.contains(&digits[..20]) && !all.contains(&digits[40..]), "{all}");
        };
        let cut = &text[..text.len() - 3];
        for wrong in
            [digits, &digits[1..], &format!(" {digits}"), &format!("'{digits}'"), cut, &format!("\"{cut}\"")]
        {
            hidden(&GroupKey::given(OsStr::new(wrong)).unwrap_err());
        }
        // As a path: nothing is read or made by such a name.
        for wrong in [&*text, digits, &format!(" {text}\n"), &format!("'{digits}'"), &format!("x/{text}")] {
            hidden(&GroupKey::read(Path::new(wrong)).unwrap_err());
            hidden(&GroupKey::read_or_make(Path::new(wrong)).unwrap_err());
            assert!(!Path::new(wrong).exists());
        }
    }

    #[test]
    fn checks_are_of_words_and_keys() {
        let (one, other) = (GroupKey([1; BYTES]), GroupKey([2; BYTES]));
        let check = one.check("words");
        assert!(one.is_checked("words", &check) && !one.is_checked("word", &check));
        assert!(!other.is_checked("words", &check) && !one.is_checked("words", ""));
    }
}
