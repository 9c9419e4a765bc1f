//! Objects in memory that can be told to fail.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use sieva::{Error, ErrorKind, Result};
use sieva_store::objects::{Body, Objects};
use sieva_store::{Entry, name_of};

type Keys = BTreeMap<String, Vec<u8>>;

/// When an operation fails, as if the process that asked for it was killed there: all later ones fail as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Before the operation with this number takes effect.
    Before(u64),
    /// After it took effect, its answer lost.
    After(u64),
}

#[derive(Default)]
struct State {
    keys: Keys,
    /// What listings tell, where they are late.
    listed: Option<Keys>,
    operations: u64,
    /// What was asked of the store since it was last asked for.
    log: Vec<String>,
    /// The most bytes of an object that there is room for.
    room: Option<u64>,
    crash: Option<Crash>,
    crashed: bool,
}

/// Called before each operation; the schedule of a test waits in it.
type Gate = Box<dyn Fn(&str) + Send + Sync>;

/// Objects of a test.
pub struct Memory {
    name: String,
    state: Mutex<State>,
    gate: Option<Gate>,
}

impl Memory {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("memory-{}-{number}-{name}", std::process::id());
        Self { name, state: Mutex::default(), gate: None }
    }

    pub fn gated(name: &str, gate: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { gate: Some(Box::new(gate)), ..Self::new(name) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Sets the next crash, and ends the last one.
    pub fn set_crash(&self, crash: Option<Crash>) {
        let mut state = self.state();
        (state.crash, state.crashed, state.operations) = (crash, false, 0);
    }

    /// Says for how many bytes of an object there is room.
    pub fn set_room(&self, room: Option<u64>) {
        self.state().room = room;
    }

    pub fn has_crashed(&self) -> bool {
        self.state().crashed
    }

    /// Listings tell what there is now until this is called again.
    pub fn freeze_listing(&self) {
        let mut state = self.state();
        state.listed = Some(state.keys.clone());
    }

    pub fn contents(&self) -> Keys {
        self.state().keys.clone()
    }

    /// What was asked of the store since this was called last.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }

    pub fn damage(&self, key: &str) {
        let mut state = self.state();
        let bytes = state.keys.get_mut(key).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    }

    fn operate<T>(&self, what: &str, f: impl FnOnce(&mut State) -> T) -> Result<T> {
        if let Some(gate) = &self.gate {
            gate(what);
        }
        let mut state = self.state();
        let number = state.operations;
        state.operations += 1;
        state.log.push(what.to_owned());
        let killed = || Error::new(ErrorKind::Io, "the store does not answer");
        if state.crashed || state.crash == Some(Crash::Before(number)) {
            state.crashed = true;
            return Err(killed());
        }
        let done = f(&mut state);
        if state.crash == Some(Crash::After(number)) {
            state.crashed = true;
            return Err(killed());
        }
        Ok(done)
    }
}

fn bytes(body: &dyn Body) -> Result<Vec<u8>> {
    let mut bytes = vec![0; body.size() as usize];
    body.read_exact_at(0, &mut bytes)?;
    Ok(bytes)
}

impl Objects for Memory {
    fn put(&self, key: &str, body: &dyn Body) -> Result<()> {
        self.put_version(key, body).map(drop)
    }

    /// A version that the bytes have, as with servers whose tags are sums of them.
    fn put_version(&self, key: &str, body: &dyn Body) -> Result<Option<String>> {
        self.operate(&format!("put {key}"), |s| {
            if s.room.is_some_and(|room| body.size() > room) {
                return Err(Error::io(format!("writing '{key}'"), &std::io::Error::from_raw_os_error(28)));
            }
            let bytes = bytes(body)?;
            let version = format!("\"{}\" {}", name_of(&bytes), bytes.len());
            s.keys.insert(key.to_owned(), bytes);
            Ok(Some(version))
        })?
    }

    fn create(&self, key: &str, new: &[u8]) -> Result<bool> {
        self.operate(&format!("create {key}"), |s| match s.keys.get(key) {
            Some(there) => there == new,
            None => s.keys.insert(key.to_owned(), new.to_vec()).is_none(),
        })
    }

    fn get(&self, key: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let found = self.operate(&format!("get {key}"), |s| s.keys.get(key).cloned())?;
        match found.as_ref().filter(|bytes| bytes.len() as u64 > most) {
            Some(_) => Err(Error::new(ErrorKind::CorruptFile, format!("'{key}' has more than {most} bytes"))),
            None => Ok(found),
        }
    }

    fn get_range(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<bool> {
        if key.contains("..") {
            return Err(Error::new(ErrorKind::LinkRefused, format!("'{key}' is no key")));
        }
        self.operate(&format!("get {key}"), |s| match s.keys.get(key) {
            None => Ok(false),
            Some(bytes) => {
                let there = bytes.get(offset as usize..offset as usize + out.len());
                let ends = || Error::new(ErrorKind::CorruptFile, format!("'{key}' ends before"));
                out.copy_from_slice(there.ok_or_else(ends)?);
                Ok(true)
            }
        })?
    }

    fn delete(&self, key: &str) -> Result<()> {
        self.operate(&format!("delete {key}"), |s| {
            s.keys.remove(key);
        })
    }

    fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.operate(&format!("list {prefix}"), |s| {
            let keys = s.listed.as_ref().unwrap_or(&s.keys);
            let found = keys.iter().filter(|(key, _)| key.starts_with(prefix));
            let entry = |(key, bytes): (&String, &Vec<u8>)| Entry {
                key: key.clone(),
                size: bytes.len() as u64,
                version: String::new(),
            };
            found.map(entry).collect()
        })
    }

    fn location(&self, key: &str) -> String {
        format!("{}/{key}", self.name)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
