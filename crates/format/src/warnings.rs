//! What was odd but could be read: collected up to a limit, so that a damaged header does not flood its reader.

/// The most that are kept.
const LIMIT: usize = 100;

/// Warnings, the first [`LIMIT`] in words and the others counted.
#[derive(Debug, Default)]
pub struct Warnings {
    kept: Vec<String>,
    others: usize,
}

impl Warnings {
    /// Adds one; it is put into words only if it is kept.
    pub fn push(&mut self, warning: impl FnOnce() -> String) {
        if self.kept.len() < LIMIT {
            self.kept.push(warning());
        } else {
            self.others += 1;
        }
    }

    /// All of them in words.
    pub fn into_vec(mut self) -> Vec<String> {
        if self.others > 0 {
            self.kept.push(format!("and {} more warnings", self.others));
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_they_are_counted() {
        let mut warnings = Warnings::default();
        for i in 0..LIMIT + 7 {
            warnings.push(|| format!("warning {i}"));
        }
        let all = warnings.into_vec();
        assert_eq!(all.len(), LIMIT + 1);
        assert_eq!(all[LIMIT - 1], "warning 99");
        assert_eq!(all[LIMIT], "and 7 more warnings");
    }
}
