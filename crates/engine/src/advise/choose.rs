//! What to have within a budget of bytes.
//!
//! The seconds that a set of augmentations saves are a monotone submodular function of it: each note is answered by
//! the fastest way there is, so that a second augmentation of an array saves what the first has left. It is maximised
//! greedily by gain per byte under the knapsack constraint (Khuller, Moss and Naor, "The budgeted maximum coverage
//! problem", 1999; Leskovec et al., "Cost-effective outbreak detection in networks", KDD 2007, section 3): the better
//! of that choice and of the best single augmentation saves at least (1 - 1/e) / 2 of what is possible. How far it is
//! from the best at most is told by the bound of the second paper (section 4, theorem 4): what was chosen, and the
//! fractional knapsack of all gains that are left.

use sieva_catalog::Rule;

use super::model::Seconds;
use super::name_of;
use crate::augment::IndexKind;

/// What is to be done with an augmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is not there, or not wholly, and should be.
    Build,
    /// It is there and stays.
    Keep,
    /// It is there and should go.
    Evict,
    /// It is not there, and that is as well.
    Skip,
}

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Keep => "keep",
            Self::Evict => "evict",
            Self::Skip => "skip",
        }
    }
}

/// An augmentation that there is or could be.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Location of the source.
    pub location: String,
    /// Path of the array.
    pub path: String,
    /// The kind.
    pub kind: IndexKind,
    /// Of a sorted replica: the arrays that it carries, the key first.
    pub columns: Vec<String>,
    /// Seconds that it saves over the notes, besides what is chosen before it.
    pub saves: f64,
    /// Its bytes: measured where it is there, else estimated.
    pub bytes: u64,
    /// Bytes of what is there now.
    pub bytes_now: u64,
    /// Seconds that building it takes, or took.
    pub build_seconds: f64,
    /// Notes with a condition on the array.
    pub uses: u64,
    /// What should be done.
    pub verdict: Verdict,
    /// Whether what is there was made for another state of the source.
    pub stale: bool,
    /// Why.
    pub why: String,
}

impl Item {
    pub(super) fn is_there_then(&self) -> bool {
        matches!(self.verdict, Verdict::Build | Verdict::Keep)
    }
}

/// What is known of one kind for one array.
#[derive(Clone, Debug, Default)]
pub(super) struct Kind {
    pub bytes_now: u64,
    /// What it takes if it is there.
    pub bytes: u64,
    pub build_seconds: f64,
    /// Whether it is there, wholly, for this state of the source.
    pub complete: bool,
    pub rule: Option<Rule>,
}

/// One array.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub location: String,
    pub path: String,
    pub columns: Vec<String>,
    pub uses: u64,
    pub stale: bool,
    /// By zone map, bitmap, sorted replica.
    pub kinds: [Kind; 3],
    /// Seconds of notes, with the number that each stands for.
    pub seconds: Vec<(f64, Seconds)>,
}

const ZONEMAP: usize = 0;
const BITMAP: usize = 1;

impl Case {
    /// An array of which nothing is known.
    pub fn new(location: &str, path: &str) -> Self {
        let kinds = std::array::from_fn(|_| Kind::default());
        let (location, path) = (location.to_string(), path.to_string());
        Self { location, path, columns: Vec::new(), uses: 0, stale: false, kinds, seconds: Vec::new() }
    }

    /// Seconds of all notes where these kinds are there.
    fn total(&self, has: [bool; 3]) -> f64 {
        let one = |s: &Seconds| (0..3).filter(|&k| has[k]).fold(s.scan, |t, k| t.min(s.by[k]));
        self.seconds.iter().map(|(weight, s)| weight * one(s)).sum()
    }

    /// What there is with one kind more: a bitmap comes with zone maps.
    fn with(has: [bool; 3], kind: usize) -> [bool; 3] {
        let mut with = has;
        with[kind] = true;
        with[ZONEMAP] |= kind == BITMAP;
        with
    }

    /// Bytes that one kind more takes.
    fn more(&self, has: [bool; 3], kind: usize) -> u64 {
        let with = Self::with(has, kind);
        (0..3).filter(|&k| with[k] && !has[k]).fold(0, |n, k| n.saturating_add(self.kinds[k].bytes))
    }

    fn gain(&self, has: [bool; 3], kind: usize) -> f64 {
        self.total(has) - self.total(Self::with(has, kind))
    }

    fn is_forbidden(&self, kind: usize) -> bool {
        let forbidden = |k: usize| self.kinds[k].rule == Some(Rule::Forbidden);
        forbidden(kind) || (kind == BITMAP && forbidden(ZONEMAP))
    }

    /// Whether one kind more is worth it: it saves more than building it takes.
    fn pays(&self, has: [bool; 3], kind: usize) -> bool {
        let built = |k: usize| if self.kinds[k].complete { 0.0 } else { self.kinds[k].build_seconds };
        !has[kind] && !self.is_forbidden(kind) && self.gain(has, kind) > built(kind)
    }
}

/// What was chosen.
pub(super) struct Chosen {
    pub items: Vec<Item>,
    pub saves: f64,
    pub bound: f64,
}

/// A choice as it grows.
struct Choice {
    has: Vec<[bool; 3]>,
    /// In order: case, kind, seconds saved, why.
    order: Vec<(usize, usize, f64, String)>,
    left: u64,
}

/// Chooses within a budget. What is pinned is always taken, what is forbidden never.
pub(super) fn choose(cases: Vec<Case>, budget: Option<u64>) -> Chosen {
    let mut choice =
        Choice { has: vec![[false; 3]; cases.len()], order: Vec::new(), left: budget.unwrap_or(u64::MAX) };
    for (c, case) in cases.iter().enumerate() {
        for kind in (0..3).filter(|&k| case.kinds[k].rule == Some(Rule::Pinned)) {
            choice.take(&cases, c, kind, "pinned");
        }
    }
    let pinned = choice.has.clone();
    let room = choice.left;
    choice.greedy(&cases);
    choice.or_single(&cases, &pinned, room);
    choice.prune(&cases, &pinned);
    choice.greedy(&cases);
    let saves: f64 = choice.order.iter().map(|o| o.2).sum();
    let bound = saves + choice.bound(&cases, budget.unwrap_or(u64::MAX));
    choice.keep_what_fits(&cases);
    Chosen { items: choice.items(&cases), saves, bound }
}

impl Choice {
    fn take(&mut self, cases: &[Case], case: usize, kind: usize, why: &str) {
        let has = self.has[case];
        if has[kind] {
            return;
        }
        self.left = self.left.saturating_sub(cases[case].more(has, kind));
        let saves = cases[case].gain(has, kind);
        if kind == BITMAP && !has[ZONEMAP] {
            self.order.push((case, ZONEMAP, 0.0, "comes with the bitmap".into()));
        }
        self.order.push((case, kind, saves, why.into()));
        self.has[case] = Case::with(has, kind);
    }

    /// The candidates that pay and fit in `room`: case, kind, gain, bytes.
    fn candidates<'c>(
        &'c self,
        cases: &'c [Case],
        room: u64,
    ) -> impl Iterator<Item = (usize, usize, f64, u64)> + 'c {
        let all = cases.iter().enumerate().flat_map(|(c, case)| (0..3).map(move |k| (c, k, case)));
        all.filter_map(move |(c, kind, case)| {
            let has = self.has[c];
            let bytes = case.more(has, kind);
            (bytes <= room && case.pays(has, kind)).then(|| (c, kind, case.gain(has, kind), bytes))
        })
    }

    fn greedy(&mut self, cases: &[Case]) {
        loop {
            let dense = |&(_, _, gain, bytes): &(usize, usize, f64, u64)| gain / bytes.max(1) as f64;
            let best = self.candidates(cases, self.left).max_by(|a, b| dense(a).total_cmp(&dense(b)));
            let Some((case, kind, ..)) = best else { return };
            self.take(cases, case, kind, &reason(&cases[case]));
        }
    }

    /// Takes the best single augmentation instead, where it saves more than all that was taken.
    fn or_single(&mut self, cases: &[Case], pinned: &[[bool; 3]], room: u64) {
        let free = Self { has: pinned.to_vec(), order: Vec::new(), left: room };
        let Some((case, kind, gain, _)) = free.candidates(cases, room).max_by(|a, b| a.2.total_cmp(&b.2))
        else {
            return;
        };
        let fixed = self.order.iter().take_while(|o| pinned[o.0][o.1]).count();
        let taken: f64 = self.order[fixed..].iter().map(|o| o.2).sum();
        if gain > taken {
            self.order.truncate(fixed);
            (self.has, self.left) = (free.has, free.left);
            self.take(cases, case, kind, &reason(&cases[case]));
            self.greedy(cases);
        }
    }

    /// Gives back what is not worth it any more beside what was taken after it, and reckons anew what each saves.
    fn prune(&mut self, cases: &[Case], pinned: &[[bool; 3]]) {
        for (c, kind, ..) in self.order.clone().into_iter().rev() {
            let (case, has) = (&cases[c], self.has[c]);
            let is_needed = kind == ZONEMAP && has[BITMAP];
            let mut without = has;
            without[kind] = false;
            if !pinned[c][kind] && !is_needed && !case.pays(without, kind) {
                self.has[c] = without;
                self.left = self.left.saturating_add(case.kinds[kind].bytes);
                self.order.retain(|o| (o.0, o.1) != (c, kind));
            }
        }
        let mut has = vec![[false; 3]; cases.len()];
        for (c, kind, saves, _) in &mut self.order {
            *saves = cases[*c].gain(has[*c], *kind);
            has[*c] = Case::with(has[*c], *kind);
        }
    }

    /// What could be saved besides, were the whole budget free for parts of what is left.
    fn bound(&self, cases: &[Case], budget: u64) -> f64 {
        let mut left: Vec<(f64, u64)> = self.candidates(cases, budget).map(|(_, _, g, b)| (g, b)).collect();
        left.sort_by(|a, b| (b.0 / b.1.max(1) as f64).total_cmp(&(a.0 / a.1.max(1) as f64)));
        let (mut room, mut more) = (budget as f64, 0.0);
        for (gain, bytes) in left {
            let part = if bytes == 0 { 1.0 } else { (room / bytes as f64).min(1.0) };
            more += gain * part;
            room -= bytes as f64 * part;
        }
        more
    }

    /// What is there stays where there is room, what saves most first.
    fn keep_what_fits(&mut self, cases: &[Case]) {
        let mut there: Vec<(usize, usize, f64)> = Vec::new();
        for (c, case) in cases.iter().enumerate() {
            let stays = |k: usize| {
                case.kinds[k].bytes_now > 0 && !case.stale && !case.is_forbidden(k) && !self.has[c][k]
            };
            there.extend((0..3).filter(|&k| stays(k)).map(|k| (c, k, case.gain([false; 3], k))));
        }
        there.sort_by(|a, b| b.2.total_cmp(&a.2));
        for (c, kind, saves) in there {
            let case = &cases[c];
            let has = self.has[c];
            let with = Case::with(has, kind);
            // What is there in part stays in part.
            let now = (0..3).filter(|&k| with[k] && !has[k]).map(|k| case.kinds[k].bytes_now).sum::<u64>();
            if has[kind] || now > self.left {
                continue;
            }
            let why = if saves > 0.0 { "there is room for it" } else { "not used, but there is room for it" };
            self.left -= now;
            for k in (0..3).filter(|&k| with[k] && !has[k]) {
                self.order.push((c, k, 0.0, why.into()));
            }
            self.has[c] = with;
        }
    }

    fn items(self, cases: &[Case]) -> Vec<Item> {
        let mut items = Vec::new();
        for (c, kind, saves, why) in &self.order {
            let (case, k) = (&cases[*c], &cases[*c].kinds[*kind]);
            let in_part = why.contains("room for it");
            let verdict = if k.complete || in_part { Verdict::Keep } else { Verdict::Build };
            items.push(item(case, *kind, *saves, verdict, why.clone()));
        }
        let mut rest: Vec<Item> = Vec::new();
        for (c, case) in cases.iter().enumerate() {
            for kind in (0..3).filter(|&k| !self.has[c][k]) {
                let saves = case.gain([false; 3], kind);
                let (verdict, why) = match (case.kinds[kind].bytes_now > 0, saves > 0.0) {
                    (true, _) => (Verdict::Evict, self.why_not(case, c, kind)),
                    (false, true) => (Verdict::Skip, self.why_not(case, c, kind)),
                    (false, false) => continue,
                };
                rest.push(item(case, kind, saves, verdict, why));
            }
        }
        // Those that are removed first have the least benefit.
        rest.sort_by(|a, b| a.saves.total_cmp(&b.saves));
        items.extend(rest);
        items
    }

    fn why_not(&self, case: &Case, number: usize, kind: usize) -> String {
        let k = &case.kinds[kind];
        let has = self.has[number];
        if case.is_forbidden(kind) {
            "forbidden".into()
        } else if case.stale && k.bytes_now > 0 {
            "made for another state of the source".into()
        } else if k.bytes_now > 0 && case.gain([false; 3], kind) <= 0.0 {
            "not used, and its room is needed".into()
        } else if case.gain(has, kind) <= k.build_seconds && k.bytes_now == 0 {
            "building it takes longer than it saves".into()
        } else if case.gain(has, kind) <= 0.0 {
            "what is chosen saves as much".into()
        } else {
            "there is no room for it".into()
        }
    }
}

fn reason(case: &Case) -> String {
    format!("{} quer{}", case.uses, if case.uses == 1 { "y" } else { "ies" })
}

fn item(case: &Case, kind: usize, saves: f64, verdict: Verdict, why: String) -> Item {
    let (k, name) = (&case.kinds[kind], IndexKind::NAMED[kind].1);
    debug_assert_eq!(name_of(name), IndexKind::NAMED[kind].0);
    let in_part = verdict == Verdict::Keep && !k.complete;
    Item {
        location: case.location.clone(),
        path: case.path.clone(),
        kind: name,
        columns: if name == IndexKind::Sorted { case.columns.clone() } else { Vec::new() },
        saves,
        bytes: if in_part { k.bytes_now } else { k.bytes },
        bytes_now: k.bytes_now,
        build_seconds: k.build_seconds,
        uses: case.uses,
        verdict,
        stale: case.stale && k.bytes_now > 0,
        why,
    }
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
