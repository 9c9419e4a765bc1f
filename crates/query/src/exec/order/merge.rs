//! Sequences that are in order, put together.

/// Takes the least of the heads of some sequences again and again: `take` is given the sequence, and says whether it goes on.
///
/// # Errors
/// That of `take`.
pub fn merge<T, E>(
    mut heads: Vec<T>,
    is_before: impl Fn(&T, &T) -> bool,
    mut take: impl FnMut(&mut T) -> Result<Next, E>,
) -> Result<(), E> {
    for i in (0..heads.len() / 2).rev() {
        sift(&mut heads, i, &is_before);
    }
    while let Some(first) = heads.first_mut() {
        match take(first)? {
            Next::More => {}
            Next::End => drop(heads.swap_remove(0)),
            Next::Stop => return Ok(()),
        }
        sift(&mut heads, 0, &is_before);
    }
    Ok(())
}

/// What is left of a sequence whose head was taken.
pub enum Next {
    /// It has another head.
    More,
    /// It has none.
    End,
    /// Nothing more is wanted of any.
    Stop,
}

/// Moves the item at `i` of a heap down to its place.
fn sift<T>(heap: &mut [T], mut i: usize, is_before: &impl Fn(&T, &T) -> bool) {
    loop {
        let (left, right) = (2 * i + 1, 2 * i + 2);
        let mut first = i;
        if left < heap.len() && is_before(&heap[left], &heap[first]) {
            first = left;
        }
        if right < heap.len() && is_before(&heap[right], &heap[first]) {
            first = right;
        }
        if first == i {
            return;
        }
        heap.swap(i, first);
        i = first;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_come_in_order(mut parts in prop::collection::vec(prop::collection::vec(0..50_u8, 1..20), 0..9)) {
            let mut want = parts.concat();
            want.sort_unstable();
            parts.iter_mut().for_each(|p| p.sort_unstable_by(|a, b| b.cmp(a)));
            let mut got = Vec::new();
            let take = |part: &mut Vec<u8>| {
                got.extend(part.pop());
                Ok::<_, ()>(if part.is_empty() { Next::End } else { Next::More })
            };
            merge(parts, |a, b| a.last() < b.last(), take).unwrap();
            prop_assert_eq!(got, want);
        }
    }
}
