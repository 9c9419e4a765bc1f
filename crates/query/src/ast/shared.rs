//! Expressions as a program builds them, call by call: joined by AND and OR in constant time, their parts shared.
//!
//! [`Expr::And`] holds a flat list, so that a chain which is built one condition after the other would be copied as often
//! as it has parts. Here joining only links two; [`Shared::tree`] makes the flat list once.

use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result};

use super::{Expr, Literal, MAX_DEPTH};

/// Most parts of a tree. Sharing lets few calls make more than memory has.
const MAX_PARTS: u64 = 1 << 22;

/// How conditions are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Junction {
    /// All must hold.
    And,
    /// Any must hold.
    Or,
}

/// An expression; the parts of a junction are shared with the conditions that it was made of.
#[derive(Debug)]
pub struct Shared {
    kind: Kind,
    /// Levels of the tree, which cost stack.
    depth: usize,
    /// Single conditions in it, as often as they occur.
    parts: u64,
}

#[derive(Debug)]
enum Kind {
    Single(Expr),
    Joined(Junction, Arc<Shared>, Arc<Shared>),
    Not(Arc<Shared>),
}

impl Shared {
    /// An expression of its own.
    pub fn single(expr: Expr) -> Arc<Self> {
        let depth = expr.depth();
        Arc::new(Self::of(Kind::Single(expr), depth, 1))
    }

    /// The same, checked.
    ///
    /// # Errors
    /// As [`Shared::join`].
    pub fn checked(expr: Expr) -> Result<Arc<Self>> {
        let depth = expr.depth();
        Self::of(Kind::Single(expr), depth, 1).within_limits()
    }

    fn of(kind: Kind, depth: usize, parts: u64) -> Self {
        Self { kind, depth, parts }
    }

    /// Both joined.
    ///
    /// # Errors
    /// `unsupported` where junctions of different kinds are nested too deep, `memory-limit` where sharing has
    /// made too many parts.
    pub fn join(junction: Junction, a: &Arc<Self>, b: &Arc<Self>) -> Result<Arc<Self>> {
        if Arc::ptr_eq(a, b) {
            return Ok(Arc::clone(a));
        }
        let depth = a.depth_within(junction).max(b.depth_within(junction));
        let parts = a.parts.saturating_add(b.parts);
        Self::of(Kind::Joined(junction, Arc::clone(a), Arc::clone(b)), depth, parts).within_limits()
    }

    /// The opposite.
    ///
    /// # Errors
    /// As [`Shared::join`].
    pub fn negated(of: &Arc<Self>) -> Result<Arc<Self>> {
        if let Kind::Not(inner) = &of.kind {
            return Ok(Arc::clone(inner));
        }
        Self::of(Kind::Not(Arc::clone(of)), of.depth + 1, of.parts).within_limits()
    }

    /// The depth of a junction of this kind with this condition in it.
    fn depth_within(&self, junction: Junction) -> usize {
        match self.kind {
            Kind::Joined(own, ..) if own == junction => self.depth,
            _ => self.depth + 1,
        }
    }

    fn within_limits(self) -> Result<Arc<Self>> {
        if self.depth > MAX_DEPTH {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("an expression more than {MAX_DEPTH} deep"),
            )
            .hint("chains of AND or of OR may be of any length; join conditions of one kind first"));
        }
        if self.parts > MAX_PARTS {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!("a condition of {} parts, at most {MAX_PARTS} are possible", self.parts),
            ));
        }
        Ok(Arc::new(self))
    }

    /// The expression as one tree, junctions flat.
    pub fn tree(&self) -> Expr {
        match &self.kind {
            Kind::Single(expr) => expr.clone(),
            Kind::Not(inner) => Expr::Not(Box::new(inner.tree())),
            Kind::Joined(junction, ..) => {
                let parts = self.chain(*junction).into_iter().map(Self::tree);
                match junction {
                    Junction::And => Expr::and(parts),
                    Junction::Or => Expr::or(parts),
                }
            }
        }
    }

    /// The parts of a chain of one kind, first to last.
    fn chain(&self, junction: Junction) -> Vec<&Self> {
        let (mut open, mut out) = (vec![self], Vec::new());
        while let Some(next) = open.pop() {
            match &next.kind {
                Kind::Joined(own, a, b) if *own == junction => open.extend([b.as_ref(), a.as_ref()]),
                _ => out.push(next),
            }
        }
        out
    }
}

/// Parts are taken down one by one: a long chain would overflow the stack otherwise.
impl Drop for Shared {
    fn drop(&mut self) {
        let mut open = Vec::new();
        self.take_parts(&mut open);
        while let Some(next) = open.pop() {
            if let Some(mut last) = Arc::into_inner(next) {
                last.take_parts(&mut open);
            }
        }
    }
}

impl Shared {
    fn take_parts(&mut self, out: &mut Vec<Arc<Self>>) {
        match std::mem::replace(&mut self.kind, Kind::Single(Expr::Literal(Literal::Null))) {
            Kind::Joined(_, a, b) => out.extend([a, b]),
            Kind::Not(a) => out.push(a),
            Kind::Single(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(n: usize) -> Arc<Shared> {
        Shared::single(Expr::name(format!("c{n}")))
    }

    #[test]
    fn long_chains_are_flat_and_in_order() {
        let mut chain = named(0);
        for i in 1..100_000 {
            chain = Shared::join(Junction::And, &chain, &named(i)).unwrap();
        }
        let named = (0..100_000).map(|i| Expr::name(format!("c{i}")));
        assert_eq!(chain.tree(), Expr::And(named.collect()));
    }

    #[test]
    fn deep_nesting_is_refused_and_dropped() {
        let mut nested = named(0);
        let refused = (1..1000).find_map(|i| {
            let junction = if i % 2 == 0 { Junction::And } else { Junction::Or };
            match Shared::join(junction, &nested, &named(i)) {
                Ok(next) => {
                    nested = next;
                    None
                }
                Err(e) => Some((i, e.kind())),
            }
        });
        assert_eq!(refused, Some((MAX_DEPTH, ErrorKind::Unsupported)));
    }

    #[test]
    fn sharing_cannot_make_endless_trees() {
        let mut shared = Shared::join(Junction::And, &named(0), &named(1)).unwrap();
        let refused = (0..64).find_map(|i| {
            let other = Shared::join(Junction::And, &shared, &named(i)).unwrap();
            match Shared::join(Junction::And, &shared, &other) {
                Ok(next) => {
                    shared = next;
                    None
                }
                Err(e) => Some(e.kind()),
            }
        });
        assert_eq!(refused, Some(ErrorKind::MemoryLimit));
    }
}
