//! NeXus: `signal`, `axes` and `AXISNAME_indices` of NXdata groups, and the older attributes of datasets.

use sieva_format::schema::{Attr, AttrValue, Naming, attr};

use super::{Contents, Names, axis_name, set, texts};

/// Names the axes of what NXdata groups hold.
pub(super) fn name(contents: &Contents<'_>, names: &mut Names) {
    for group in contents.groups {
        if attr(&group.attrs, "NX_class").and_then(AttrValue::as_text) != Some("NXdata") {
            continue;
        }
        match signal(contents, &group.path, &group.attrs) {
            Some((signal, axes)) if !axes.is_empty() => {
                name_axes(contents, &group.path, &group.attrs, signal, &axes, names);
            }
            _ => {}
        }
    }
}

/// The dataset that the group is about, and the names of its axes.
fn signal(contents: &Contents<'_>, group: &str, attrs: &[Attr]) -> Option<(usize, Vec<String>)> {
    if let Some(name) = attr(attrs, "signal").and_then(AttrValue::as_text) {
        let signal = in_group(contents, group, name)?;
        return Some((signal, attr(attrs, "axes").map(texts).unwrap_or_default()));
    }
    // Before 2014 the dataset said itself that it is the signal: axes="[y:x]" or "y,x".
    let is_signal = |i: &usize| {
        let said = attr(&contents.datasets[*i].attributes.shown, "signal");
        said.is_some_and(|v| v.as_f64() == Some(1.0) || v.as_text() == Some("1"))
    };
    let signal = contents.members.get(group)?.iter().map(|m| m.1).find(is_signal)?;
    let said = attr(&contents.datasets[signal].attributes.shown, "axes").and_then(AttrValue::as_text)?;
    let said = said.trim_matches(['[', ']']).split([':', ',']);
    Some((signal, said.map(|name| name.trim().to_owned()).collect()))
}

fn in_group(contents: &Contents<'_>, group: &str, name: &str) -> Option<usize> {
    contents.by_path.get(format!("{group}/{name}").trim_start_matches('/')).copied()
}

fn name_axes(
    contents: &Contents<'_>,
    group: &str,
    attrs: &[Attr],
    signal: usize,
    axes: &[String],
    names: &mut Names,
) {
    let shape = &contents.datasets[signal].shape;
    let mut own: Vec<Option<&str>> = vec![None; shape.len()];
    for (k, axis) in axes.iter().enumerate() {
        // Several axes may run along one dimension: that in `axes` at its own place names it.
        let along = indices(attrs, axis).unwrap_or_else(|| vec![k]);
        if let [only] = along[..]
            && let Some(place) = own.get_mut(only)
            && (place.is_none() || only == k)
        {
            *place = Some(axis);
        }
    }
    let named = |k: usize| own.get(k).copied().flatten().and_then(|n| axis_name(group, n, Naming::Nexus));
    let fits = |i: usize, k: usize, axis: usize| contents.datasets[i].shape.get(axis) == shape.get(k);
    for &(leaf, i) in contents.members.get(group).into_iter().flatten() {
        let rank = contents.datasets[i].shape.len();
        // What is said of it; the signal and what has its shape; an axis of one dimension.
        let along = if let Some(along) = indices(attrs, leaf) {
            along
        } else if contents.datasets[i].shape == *shape {
            (0..rank).collect()
        } else {
            own.iter().position(|n| *n == Some(leaf)).into_iter().collect()
        };
        if along.len() == rank {
            for (axis, &k) in along.iter().enumerate().filter(|&(axis, &k)| fits(i, k, axis)) {
                set(&mut names[i][axis], named(k));
            }
        }
    }
}

/// The dimensions of the signal along which an axis runs.
fn indices(attrs: &[Attr], axis: &str) -> Option<Vec<usize>> {
    match attr(attrs, &format!("{axis}_indices"))? {
        AttrValue::Ints(_, v) => v.iter().map(|&i| usize::try_from(i).ok()).collect(),
        _ => None,
    }
}
