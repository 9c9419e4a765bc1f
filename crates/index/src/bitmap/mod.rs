//! Bitmap indexes.
