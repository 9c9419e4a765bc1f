//! Several folders of one user, kept current together: what the group has for the user is read once for hundreds of them,
//! objects are fetched side by side, and the group is told how far they have come by one record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sieva::{Error, ErrorKind, Result};

use crate::ahead::{Ahead, MOST_AHEAD};
use crate::at_once;
use crate::follow::{Fetching, FollowOptions, Followed, Follower};
use crate::group::Group;
use crate::left::Left;
use crate::lock::{self, Lock};
use crate::names;
use crate::record::{self, Answers, Ask, IndexRecord, MemberRecord, ObjectRef, TakenRecord, VERSION};
use crate::state::State;

/// Folders that are kept at a time: the lock of each is an open file.
const TOGETHER: usize = 256;

/// Keeps folders current, one for each of some asks of a user.
pub struct Followers {
    group: Group,
    user: String,
    followers: Vec<Follower>,
}

impl Followers {
    /// Followers of what a user asks for by these names, each into its folder, which is made.
    ///
    /// # Errors
    /// As [`Follower::new`].
    pub fn new<P: AsRef<Path>>(group: &Group, user: &str, wanted: &[(&str, P)]) -> Result<Self> {
        let member = group.expect_member(user)?;
        let one = |(ask, folder): &(&str, P)| Follower::of(group, &member, user, ask, folder.as_ref());
        Ok(Self {
            group: group.clone(),
            user: user.to_owned(),
            followers: wanted.iter().map(one).collect::<Result<_>>()?,
        })
    }

    /// Fetches what is new; what was done for each, in their order.
    ///
    /// # Errors
    /// As [`Follower::pass`]. What was fetched until then stays, in all folders.
    pub fn pass(&self, options: &FollowOptions) -> Result<Vec<Followed>> {
        pass(&self.group, &self.user, &self.followers, options)
    }
}

/// A pass of followers of one user.
pub(crate) fn pass(
    group: &Group,
    user: &str,
    followers: &[Follower],
    options: &FollowOptions,
) -> Result<Vec<Followed>> {
    let mut done = Vec::with_capacity(followers.len());
    for some in followers.chunks(TOGETHER) {
        let (_locks, states): (Vec<Lock>, Vec<State>) =
            some.iter().map(|one| one.enter(options)).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        // After the locks: what another process took before is not taken again from an index of before.
        let mut seen = Seen::of(group, user, some)?;
        // Whatever a listing says: of whom something was taken, there may be more.
        for producer in states.iter().flat_map(|state| state.through.keys()) {
            seen.look(group, user, producer)?;
        }
        let stopped = AtomicBool::new(false);
        let both: Vec<(&Follower, State)> = some.iter().zip(states).collect();
        let mut taken: Vec<Option<Taken>> = both.iter().map(|_| None).collect();
        let wanted: Vec<Vec<&ObjectRef>> =
            both.iter().map(|(follower, state)| wanted(&seen, follower, state)).collect();
        let size = wanted.iter().flatten().map(|object| object.size).fold(0, u64::saturating_add);
        let (meter, left) = (options.progress.begin(size), Left::default());
        for numbers in portions(&wanted) {
            let together = numbers.iter().flat_map(|&n| wanted[n].clone()).collect();
            let ahead = Ahead::fetch(&*group.objects, together)?;
            let fetching = Fetching { options, ahead, meter: &meter, left: &left };
            let some = at_once::map(group.objects.at_once(), &numbers, |&number| {
                let (follower, state) = &both[number];
                let (mut state, mut one, mut outcome) = (state.clone(), Followed::default(), Ok(()));
                if !stopped.load(Ordering::Relaxed) {
                    outcome = follower.take_all(&seen, &mut state, &mut one, &fetching);
                    stopped.fetch_or(outcome.is_err(), Ordering::Relaxed);
                }
                Ok((state, one, outcome))
            })?;
            for (number, one) in numbers.into_iter().zip(some) {
                taken[number] = Some(one);
            }
        }
        let taken: Vec<Taken> = taken.into_iter().flatten().collect();
        // Told even where something failed: what is here is not kept for this user any longer.
        let states: Vec<&State> = taken.iter().map(|(state, ..)| state).collect();
        let told = acknowledge(group, user, &states);
        for (_, one, outcome) in taken {
            outcome?;
            done.push(one);
        }
        told?;
    }
    Ok(done)
}

/// The state of a folder after a pass, what the pass did, and how it ended.
type Taken = (State, Followed, Result<()>);

/// The objects that a follower will fetch.
fn wanted<'s>(seen: &'s Seen, follower: &Follower, state: &State) -> Vec<&'s ObjectRef> {
    let new = |producer| follower.new_of(producer, seen, state).ok().flatten();
    let entries = seen.producers().filter_map(new).flat_map(|(_, entries)| entries);
    entries.filter_map(|entry| entry.object.as_ref()).collect()
}

/// The numbers of followers, of what each wants, in the order in which that lies in objects; as many together as can be
/// fetched ahead.
fn portions(wanted: &[Vec<&ObjectRef>]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&number| wanted[number].iter().map(|object| (&object.key, object.offset)).min());
    let mut portions: Vec<Vec<usize>> = Vec::new();
    let mut size = u64::MAX;
    for number in order {
        let more = wanted[number].iter().map(|object| object.size).fold(0, u64::saturating_add);
        size = size.saturating_add(more);
        match portions.last_mut() {
            Some(last) if size <= MOST_AHEAD => last.push(number),
            _ => {
                portions.push(vec![number]);
                size = more;
            }
        }
    }
    portions
}

/// What a group has for some asks of a user.
pub(crate) struct Seen {
    member: Option<MemberRecord>,
    wanted: BTreeSet<String>,
    /// By producer; an error where the record is wrong.
    indexes: BTreeMap<String, Result<Option<IndexRecord>>>,
}

impl Seen {
    fn of(group: &Group, user: &str, followers: &[Follower]) -> Result<Self> {
        let member = group.member(user)?;
        let wanted = followers.iter().map(|follower| follower.ask.clone()).collect();
        let mut seen = Self { member, wanted, indexes: BTreeMap::new() };
        for producer in group.producers()? {
            seen.look(group, user, &producer)?;
        }
        Ok(seen)
    }

    /// Reads a producer's index, if it was not read yet. Only what is wanted of it is kept.
    fn look(&mut self, group: &Group, user: &str, producer: &str) -> Result<()> {
        if self.indexes.contains_key(producer) {
            return Ok(());
        }
        let index = match group.index(user, producer) {
            Err(e) if !record::is_of_record(&e) => return Err(e),
            mut index => {
                if let Ok(Some(index)) = &mut index {
                    index.asks.retain(|ask, _| self.wanted.contains(ask));
                }
                index
            }
        };
        self.indexes.insert(producer.to_owned(), index);
        Ok(())
    }

    /// Whose answers there may be.
    pub fn producers(&self) -> impl Iterator<Item = &str> {
        self.indexes.keys().map(String::as_str)
    }

    /// What is asked by a name now.
    pub fn ask_id(&self, ask: &str) -> Option<String> {
        self.member.as_ref().and_then(|member| member.ask(ask)).map(Ask::id)
    }

    /// A producer's answers to an ask.
    ///
    /// # Errors
    /// What is wrong with its record.
    pub fn answers(&self, producer: &str, ask: &str) -> Result<Option<&Answers>> {
        match self.indexes.get(producer) {
            Some(Err(e)) => Err(e.clone()),
            Some(Ok(Some(index))) => Ok(index.asks.get(ask)),
            _ => Ok(None),
        }
    }
}

/// Says in the group how far a user has come. Followers on one machine say so one after the other; what those of two machines
/// say may be lost, and is said again by the next pass.
fn acknowledge(group: &Group, user: &str, states: &[&State]) -> Result<()> {
    let known = |taken: Result<TakenRecord>| match taken {
        // Members alone write it: it is made anew.
        Err(e) if e.kind() == ErrorKind::CorruptFile => {
            Ok::<_, Error>(TakenRecord { version: VERSION, ..TakenRecord::default() })
        }
        taken => taken,
    };
    let before = known(group.taken(user))?;
    if states.iter().all(|state| *before.through(&state.ask) == state.through) {
        return Ok(());
    }
    let _alone = Lock::wait(&lock::path_of(&["taken", &group.name(), user])?)?;
    let Some(member) = group.member(user)? else { return Ok(()) };
    let mut taken = known(group.taken(user))?;
    for state in states {
        taken.asks.insert(state.ask.clone(), state.through.clone());
    }
    taken.asks.retain(|ask, _| member.ask(ask).is_some());
    record::write(&*group.objects, &names::taken(user), &taken)
}
