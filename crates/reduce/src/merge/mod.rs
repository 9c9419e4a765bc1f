//! What several consumers have in common (section V): each thing is computed, stored and moved once.
//!
//! Section V.B has three groups of functions. What is equal is run once, and what depends on something is run after it:
//! [`stages`]. Ranges that overlap are cut so that each position is in one part: [`boxes`]. What parts are put into
//! objects, and how great those are, is a matter of cost: [`cost`] (section V.A).

pub mod boxes;
pub mod cost;
pub mod stages;
