//! Zone maps and histograms.
