//! Which dimension a group of files is joined along, and in which order the files come.

use sieva_types::{Error, ErrorKind, Result};

use super::check::mismatch;
use super::outline::{Outline, Values, text};
use crate::cf::{Calendar, TimeUnits};
use crate::schema::ArrayInfo;

/// How the files of a group follow one another.
#[derive(Clone, Debug)]
pub(super) struct Along {
    /// The path of the dimension.
    pub dim: String,
    /// Whether no file has it.
    pub is_new: bool,
    /// The group's files, first to last.
    pub order: Vec<usize>,
}

/// Files with their names, as a group of them is looked at.
pub(super) struct Files<'a> {
    pub names: &'a [String],
    pub outlines: &'a [Outline],
}

impl Files<'_> {
    /// How `group` is joined: along `wanted`, or along the one dimension that its files differ in.
    ///
    /// # Errors
    /// `dimension-mismatch` where there is no such dimension or there are several, or where coordinates overlap.
    pub(super) fn along(&self, group: &[usize], wanted: Option<&str>) -> Result<Along> {
        let dim = match wanted {
            Some(name) => name.to_string(),
            None => self.differing(group)?,
        };
        let first = &self.outlines[group[0]];
        let is_new = first.dim(&dim).is_none();
        if let Some(&other) = group.iter().find(|&&f| self.outlines[f].dim(&dim).is_none() != is_new) {
            let (has, lacks) = if is_new { (other, group[0]) } else { (group[0], other) };
            let message =
                format!("'{}' has no dimension '{dim}', which '{}' has", self.names[lacks], self.names[has]);
            return Err(Error::new(ErrorKind::DimensionMismatch, message));
        }
        let order = if is_new { group.to_vec() } else { self.by_coordinate(group, &dim)? };
        Ok(Along { dim, is_new, order })
    }

    /// The one dimension whose length or coordinate values differ between files.
    fn differing(&self, group: &[usize]) -> Result<String> {
        let first = &self.outlines[group[0]];
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (d, dim) in first.schema.dims.iter().enumerate() {
            let differs = |&&other: &&usize| {
                let o = &self.outlines[other];
                o.dim(&dim.path).is_some_and(|e| {
                    o.lens[e] != first.lens[d] || !self.same_coordinate(group[0], d, other, e)
                })
            };
            if let Some(&other) = group[1..].iter().find(differs) {
                found.push((d, other));
            }
        }
        match found[..] {
            [(d, _)] => Ok(first.schema.dims[d].path.clone()),
            [] => {
                let mut unlimited =
                    first.schema.dims.iter().filter(|d| d.unlimited && d.coordinate.is_none());
                match (unlimited.next(), unlimited.next()) {
                    (Some(one), None) => Ok(one.path.clone()),
                    _ => Err(self.cannot_tell(group)),
                }
            }
            _ => {
                let each: Vec<String> = found
                    .iter()
                    .map(|&(d, other)| {
                        let dim = &first.schema.dims[d].path;
                        format!("'{dim}' ({})", self.difference(group[0], other, dim))
                    })
                    .collect();
                let message = format!(
                    "'{}' and other files differ along several dimensions: {}",
                    self.names[group[0]],
                    each.join("; ")
                );
                Err(Error::new(ErrorKind::DimensionMismatch, message)
                    .hint("files are joined along one dimension: open those that differ in one only"))
            }
        }
    }

    fn cannot_tell(&self, group: &[usize]) -> Error {
        let message = format!(
            "'{}' and '{}' have the same arrays, lengths and coordinates: along which dimension they follow one another cannot be told",
            self.names[group[0]], self.names[group[1]]
        );
        Error::new(ErrorKind::DimensionMismatch, message)
            .hint("name it with join= (--join on the command line): one of theirs, or a new one")
    }

    /// How a dimension differs between two files, in words.
    pub(super) fn difference(&self, a: usize, b: usize, dim: &str) -> String {
        let (one, other) = (&self.outlines[a], &self.outlines[b]);
        let (Some(d), Some(e)) = (one.dim(dim), other.dim(dim)) else { return "absent".into() };
        if one.lens[d] != other.lens[e] {
            return format!(
                "{} in '{}', {} in '{}'",
                one.lens[d], self.names[a], other.lens[e], self.names[b]
            );
        }
        let (Some(v), Some(w)) = (&one.coords[d], &other.coords[e]) else {
            return format!("without coordinates in '{}' or '{}'", self.names[a], self.names[b]);
        };
        let at = (0..one.lens[d] as usize).find(|&i| !v.same_at(w, i)).unwrap_or(0);
        let show = |v: &Values| v.number(at).map_or_else(|| "text".into(), |x| x.to_string());
        format!("value {at} is {} in '{}', {} in '{}'", show(v), self.names[a], show(w), self.names[b])
    }

    /// Whether two files have the same values along a dimension, in the same units.
    pub(super) fn same_coordinate(&self, a: usize, d: usize, b: usize, e: usize) -> bool {
        let (one, other) = (&self.outlines[a], &self.outlines[b]);
        let are_same = match (&one.coords[d], &other.coords[e]) {
            (Some(a), Some(b)) => a.same(b),
            (a, b) => a.is_none() && b.is_none(),
        };
        if !are_same {
            return false;
        }
        let units = |o: &Outline, d: usize| {
            o.schema.dims[d].coordinate.map(|c| text(&o.schema.arrays[c], "units").to_string())
        };
        units(one, d) == units(other, e)
    }

    /// Files by the first value of their coordinate.
    fn by_coordinate(&self, group: &[usize], dim: &str) -> Result<Vec<usize>> {
        let mut ends = Vec::with_capacity(group.len());
        for &file in group {
            let outline = &self.outlines[file];
            let Some(d) = outline.dim(dim) else { return Ok(group.to_vec()) };
            let n = outline.lens[d] as usize;
            let values = outline.coords[d].as_ref();
            if n == 0 && values.is_some() {
                ends.push((file, None));
                continue;
            }
            let rebase = self.times(group[0], file, dim)?;
            let number = |i: usize| {
                let v = values?.number(i)?;
                let Some((own, whole)) = &rebase else { return Some(v) };
                own.to_datetime(v).map(|date| whole.to_number(&date))
            };
            match (number(0), number(n.saturating_sub(1))) {
                (Some(first), Some(last)) => ends.push((file, Some((first, last)))),
                // No coordinate, or one of texts: the order of the list is all that there is.
                _ => return Ok(group.to_vec()),
            }
        }
        let falling = ends.iter().find_map(|(_, e)| e.filter(|(a, b)| a != b)).is_some_and(|(a, b)| a > b);
        let (empty, mut full): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(_, e)| e.is_none());
        let key =
            |e: &(usize, Option<(f64, f64)>)| e.1.map_or(f64::NAN, |(a, _)| if falling { -a } else { a });
        full.sort_by(|a, b| key(a).total_cmp(&key(b)));
        for pair in full.windows(2) {
            let ((a, Some((_, end))), (b, Some((start, _)))) = (pair[0], pair[1]) else { continue };
            if (if falling { end <= start } else { end >= start }) || end.is_nan() || start.is_nan() {
                let message = format!(
                    "'{}' ends at {dim} = {end}, where '{}' begins at {start}: they overlap",
                    self.names[a], self.names[b]
                );
                return Err(Error::new(ErrorKind::DimensionMismatch, message)
                    .hint("leave one of them out, or give join= a new name to stack them"));
            }
        }
        Ok(full.into_iter().chain(empty).map(|(file, _)| file).collect())
    }

    /// The time units of a file's coordinate and those of the first file, where they differ.
    pub(super) fn times(
        &self,
        first: usize,
        file: usize,
        dim: &str,
    ) -> Result<Option<(TimeUnits, TimeUnits)>> {
        let info = |f: usize| {
            let o = &self.outlines[f];
            o.dim(dim).and_then(|d| o.schema.dims[d].coordinate).map(|c| &o.schema.arrays[c])
        };
        let (Some(whole), Some(own)) = (info(first), info(file)) else { return Ok(None) };
        rebase(self, first, whole, file, own)
    }
}

/// The time units of an array of two files, where they differ.
pub(super) fn rebase(
    files: &Files<'_>,
    first: usize,
    whole: &ArrayInfo,
    file: usize,
    own: &ArrayInfo,
) -> Result<Option<(TimeUnits, TimeUnits)>> {
    let said = |info: &ArrayInfo| (text(info, "units").to_string(), text(info, "calendar").to_lowercase());
    if said(whole) == said(own) {
        return Ok(None);
    }
    let wrong = |what: &str, a: &str, b: &str| mismatch(files.names, file, &own.path, what, a, first, b);
    let units = |info: &ArrayInfo| {
        let (units, calendar) = said(info);
        let calendar =
            if calendar.is_empty() { Some(Calendar::Standard) } else { Calendar::parse(&calendar) };
        TimeUnits::is_reference_time(&units)
            .then(|| calendar.and_then(|c| TimeUnits::parse(&units, c).ok()))
            .flatten()
    };
    match (units(own), units(whole)) {
        (Some(a), Some(b)) if a.calendar() == b.calendar() => Ok((a != b).then_some((a, b))),
        (Some(a), Some(b)) => Err(wrong("calendar", a.calendar().name(), b.calendar().name())),
        _ => Err(wrong("units", &said(own).0, &said(whole).0)),
    }
}
