//! Sharing through a store: consumers say what they need of a producer's data, and that alone is made where the data lie, once
//! for all who asked for the same, and moved (Huang et al., *Scibox: Online Sharing of Scientific Data via the Cloud*).
//!
//! A [`Group`] lies in a store: a directory, or a place of an object store. A [`Producer`] looks what is asked for, evaluates
//! all of it in one scan of each step (file) and puts the results there; a [`Follower`] keeps a folder of a consumer current.
//!
//! ```no_run
//! # fn main() -> sieva::Result<()> {
//! use sieva_share::{Asking, Follower, Group, Producer, ProducerOptions};
//!
//! let group = Group::create("shared/ocean", &Default::default())?;
//! let producer = Producer::register(&group, "model", &["run7/*.nc"])?;
//! group.ask("ada", "warm", &Asking { sql: "SELECT TEMP WHERE TEMP > 25", format: "netcdf", only_new: false })?;
//! let done = producer.pass(&ProducerOptions::default())?;
//! println!("{} results put for {} asks", done.objects, done.entries);
//! Follower::new(&group, "ada", "warm", "warm")?.pass(&Default::default())?;
//! # Ok(())
//! # }
//! ```
//!
//! What is written by whom, and why nobody sees half of anything: docs/understanding/sharing.md.

mod ahead;
mod answers;
mod asks;
mod at_once;
mod calibrate;
mod clock;
mod code;
mod collect;
mod document;
mod fetch;
mod follow;
mod followers;
mod group;
mod json;
mod key;
mod left;
mod lock;
mod made;
mod names;
mod offer;
mod overlap;
mod pack;
mod partial;
mod pass;
mod produce;
mod progress;
mod publish;
mod published;
mod ranges;
mod record;
mod scan;
mod sealed;
mod segments;
mod state;
mod status;
mod steps;
mod turns;
mod values;
mod watch;
mod zones;

pub use asks::Asking;
pub use calibrate::{CalibrateOptions, Calibration, Rate, calibrate};
pub use fetch::{FetchOptions, Fetched};
pub use follow::{Convert, FollowOptions, Followed, Follower};
pub use followers::Followers;
pub use group::{Group, GroupOptions};
pub use json::plan_json;
pub use key::GroupKey;
pub use pack::Packing;
pub use produce::{Produced, Producer, ProducerOptions, Trouble};
pub use progress::OnProgress;
pub use published::{PublishOptions, Published, PublishedState};
pub use record::{Ask, Entry, Failure, ObjectRef, Step};
pub use scan::{PlannedStep, PlannedUnit};
/// Documents of producers and consumers, `writer.xml` and `reader.xml`.
pub use sieva_reduce::forms::Config;
/// What a store takes.
pub use sieva_reduce::merge::cost::Prices;
pub use status::{AskStatus, GroupStatus, ProducerStatus};
