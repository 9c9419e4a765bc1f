//! The store of augmentations.
