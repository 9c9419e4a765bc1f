//! Conditions as a caller builds them, call by call: shared, never copied, of any length.
//!
//! Joining two takes constant time, and a chain of a hundred thousand is no deeper than one condition once it is
//! made into a tree for the engine: its parts are put into a balanced tree, because binding joins the value sets of
//! neighbours (n log n in all, where one by one it would be n^2).

use std::sync::Arc;

use sieva::ast::{Expr, Literal, MAX_DEPTH};
use sieva::{Error, ErrorKind, Result};

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

/// A condition; its parts are shared with the conditions that it was made of.
#[derive(Debug)]
pub struct Condition {
    kind: Kind,
    /// Nesting of different junctions, which costs stack.
    depth: usize,
    /// Single conditions in it, as often as they occur.
    parts: u64,
}

#[derive(Debug)]
enum Kind {
    Single(Expr),
    Joined(Junction, Arc<Condition>, Arc<Condition>),
    Not(Arc<Condition>),
}

impl Condition {
    /// A condition of its own.
    pub fn single(expr: Expr) -> Arc<Self> {
        Arc::new(Self { kind: Kind::Single(expr), depth: 1, parts: 1 })
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
        Self { kind: Kind::Joined(junction, Arc::clone(a), Arc::clone(b)), depth, parts }.checked()
    }

    /// The opposite.
    ///
    /// # Errors
    /// As [`Condition::join`].
    pub fn negated(of: &Arc<Self>) -> Result<Arc<Self>> {
        if let Kind::Not(inner) = &of.kind {
            return Ok(Arc::clone(inner));
        }
        Self { kind: Kind::Not(Arc::clone(of)), depth: of.depth + 1, parts: of.parts }.checked()
    }

    /// The depth of a junction of this kind with this condition in it.
    fn depth_within(&self, junction: Junction) -> usize {
        match self.kind {
            Kind::Joined(own, ..) if own == junction => self.depth,
            _ => self.depth + 1,
        }
    }

    fn checked(self) -> Result<Arc<Self>> {
        if self.depth > MAX_DEPTH {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("AND, OR and NOT within each other more than {MAX_DEPTH} deep"),
            )
            .hint("chains of one kind may be of any length; join conditions of one kind first"));
        }
        if self.parts > MAX_PARTS {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!("a condition of {} parts, at most {MAX_PARTS} are possible", self.parts),
            ));
        }
        Ok(Arc::new(self))
    }

    /// The tree for the engine.
    pub fn tree(&self) -> Expr {
        match &self.kind {
            Kind::Single(expr) => expr.clone(),
            Kind::Not(inner) => Expr::Not(Box::new(inner.tree())),
            Kind::Joined(junction, ..) => {
                let parts = self.chain(*junction).into_iter().map(Condition::tree).collect();
                balanced(*junction, parts)
            }
        }
    }

    /// The parts of a chain of one kind, first to last.
    fn chain(&self, junction: Junction) -> Vec<&Condition> {
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

/// All parts joined, in a tree whose depth is the logarithm of their number.
pub fn balanced(junction: Junction, mut parts: Vec<Expr>) -> Expr {
    let pair = |a, b| match junction {
        Junction::And => Expr::And(vec![a, b]),
        Junction::Or => Expr::Or(vec![a, b]),
    };
    while parts.len() > 1 {
        let mut left = parts.into_iter();
        let mut joined = Vec::with_capacity(left.len().div_ceil(2));
        while let Some(a) = left.next() {
            joined.push(match left.next() {
                Some(b) => pair(a, b),
                None => a,
            });
        }
        parts = joined;
    }
    parts.pop().unwrap_or(Expr::Literal(Literal::Bool(junction == Junction::And)))
}

/// Parts are taken down one by one: a long chain would overflow the stack otherwise.
impl Drop for Condition {
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

impl Condition {
    fn take_parts(&mut self, out: &mut Vec<Arc<Condition>>) {
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

    fn named(n: usize) -> Arc<Condition> {
        Condition::single(Expr::name(format!("c{n}")))
    }

    #[test]
    fn long_chains_are_shallow_trees_in_order() {
        let mut chain = named(0);
        for i in 1..100_000 {
            chain = Condition::join(Junction::And, &chain, &named(i)).unwrap();
        }
        let mut names = Vec::new();
        chain.tree().walk(&mut |e| {
            if let Expr::Name(n) = e {
                names.push(n.text.clone());
            }
        });
        assert_eq!(names.len(), 100_000);
        assert!(names.iter().enumerate().all(|(i, n)| *n == format!("c{i}")));
    }

    #[test]
    fn deep_nesting_is_refused_and_dropped() {
        let mut nested = named(0);
        let refused = (1..1000).find_map(|i| {
            let junction = if i % 2 == 0 { Junction::And } else { Junction::Or };
            match Condition::join(junction, &nested, &named(i)) {
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
        let mut shared = Condition::join(Junction::And, &named(0), &named(1)).unwrap();
        let refused = (0..64).find_map(|i| {
            let other = Condition::join(Junction::And, &shared, &named(i)).unwrap();
            match Condition::join(Junction::And, &shared, &other) {
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
