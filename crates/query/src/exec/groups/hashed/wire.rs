//! Groups as bytes: what the aggregates are, the keys of all groups, then the states of each aggregate.

use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

use super::{Groups, Kind};
use crate::aggregate::Aggregate;
use crate::aggregate::wire::{read_kind, write_kind};
use crate::exec::ExecOptions;
use crate::values::Scalar;

/// No query has more.
const MOST_KEYS: usize = 256;

impl Groups {
    /// Writes the groups, of which more may come elsewhere.
    pub fn encode(&self, w: &mut Writer) {
        w.list(&self.kinds, |w, (aggregate, input)| write_kind(w, aggregate, *input));
        w.uint(self.keys.len() as u64);
        w.uint(self.len() as u64);
        for column in &self.keys {
            (0..self.len()).for_each(|group| write_key(w, &column.scalar(group)));
        }
        self.states.iter().for_each(|state| state.encode(self.len(), w));
    }

    /// What [`Groups::encode`] wrote of `rows` rows at most, which are all that are merged with these, too; `memory` is the
    /// limit of what they and others may take.
    ///
    /// # Errors
    /// Where the bytes are no such groups; `memory-limit`.
    pub fn decode(r: &mut Reader<'_>, rows: u64, memory: u64) -> Result<Self> {
        let kinds: Vec<Kind> = r.list(read_kind)?;
        let (width, n) = (r.index()?, r.index()?);
        // A key takes a byte at least.
        if n.saturating_mul(width) > r.left()
            || (width == 0 && n > 1)
            || width > MOST_KEYS
            || n as u64 > rows.max(1)
        {
            return Err(
                r.damaged(format!("{n} groups of {width} keys in {} bytes, of {rows} rows", r.left()))
            );
        }
        let bins = kinds.iter().map(|(aggregate, _)| match aggregate {
            Aggregate::Histogram { bins, .. } => *bins,
            _ => 0,
        });
        if bins.fold(0, usize::saturating_add).saturating_mul(n) > r.left() {
            return Err(r.damaged(format!("{n} groups of histograms in {} bytes", r.left())));
        }
        let room = ExecOptions { memory, ..ExecOptions::default() }.room();
        let mut groups = Self::new(width, &kinds, room).map_err(|e| r.damaged(e.message()))?;
        groups.reserve(n)?;
        let mut keys = vec![Vec::new(); width];
        for column in &mut keys {
            for _ in 0..n {
                r.charge(size_of::<Scalar>())?;
                column.push(read_key(r)?);
            }
        }
        for group in 0..n {
            let key = keys.iter_mut().map(|column| std::mem::replace(&mut column[group], Scalar::Null));
            if groups.group(key.collect())? != group {
                return Err(r.damaged("two groups of one key"));
            }
        }
        for state in &mut groups.states {
            state.decode(n, rows, r)?;
        }
        groups.check(0)?;
        Ok(groups)
    }

    /// Whether others have keys and aggregates like these, so that they may be merged.
    pub fn is_like(&self, other: &Self) -> bool {
        self.keys.len() == other.keys.len() && self.kinds == other.kinds
    }

    /// Sets how many bytes these and what is merged with them may take.
    pub fn limit(&mut self, memory: u64) {
        self.room = ExecOptions { memory, ..ExecOptions::default() }.room();
    }

    /// Room for so many groups and no more.
    fn reserve(&mut self, n: usize) -> Result<()> {
        self.check((n as u64).saturating_mul(self.row_bytes()))?;
        self.before.reserve_exact(n);
        self.keys.iter_mut().try_for_each(|column| column.reserve(n))?;
        self.states.iter_mut().for_each(|state| state.resize(n));
        Ok(())
    }
}

fn write_key(w: &mut Writer, key: &Scalar) {
    match key {
        Scalar::Null | Scalar::Histogram { .. } => w.byte(0),
        Scalar::Bool(x) => w.byte(1 + u8::from(*x)),
        Scalar::I64(x) => {
            w.byte(3);
            w.int((*x).into());
        }
        Scalar::U64(x) => {
            w.byte(4);
            w.uint(*x);
        }
        Scalar::F64(x) => {
            w.byte(5);
            w.float(*x);
        }
        Scalar::Str(x) => {
            w.byte(6);
            w.text(x);
        }
    }
}

fn read_key(r: &mut Reader<'_>) -> Result<Scalar> {
    Ok(match r.byte()? {
        0 => Scalar::Null,
        code @ (1 | 2) => Scalar::Bool(code == 2),
        3 => {
            let x = r.int()?;
            Scalar::I64(i64::try_from(x).map_err(|_| r.damaged(format!("{x} is no int64")))?)
        }
        4 => Scalar::U64(r.uint()?),
        5 => match r.float()? {
            x if x.is_nan() => return Err(r.damaged("a key that is missing and a number")),
            x => Scalar::F64(x),
        },
        6 => Scalar::Str(r.text()?),
        other => return Err(r.damaged(format!("{other} is no kind of key"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::{Piece, Target};
    use crate::values::ValueType;
    use sieva_types::ErrorKind;
    use sieva_types::wire::Subject;

    const SUBJECT: Subject =
        Subject { name: "partial result", kind: ErrorKind::InvalidValue, hint: "make it anew" };

    fn groups(keys: &[Scalar]) -> Groups {
        let kinds = [
            (Aggregate::Count, None),
            (Aggregate::Histogram { bins: 4, range: Some((0.0, 9.0)) }, Some(ValueType::F64)),
        ];
        let mut made = Groups::new(2, &kinds, ExecOptions::default().room()).unwrap();
        for (i, key) in keys.iter().enumerate() {
            let group = made.group(vec![key.clone(), Scalar::Bool(i % 2 == 0)]).unwrap();
            made.states_mut()[0].update(Target::One(group), &Piece::Rows(i + 1)).unwrap();
            made.states_mut()[1].update(Target::One(group), &Piece::F64(&[i as f64])).unwrap();
        }
        made
    }

    fn bytes(groups: &Groups) -> Vec<u8> {
        let mut w = Writer::default();
        groups.encode(&mut w);
        w.into_bytes()
    }

    fn read(bytes: &[u8], rows: u64, memory: u64) -> Result<Groups> {
        let mut r = Reader::new(&SUBJECT, bytes, 1 << 20);
        let groups = Groups::decode(&mut r, rows, memory)?;
        r.finish()?;
        Ok(groups)
    }

    fn keys() -> Vec<Scalar> {
        let mut all = vec![Scalar::Null, Scalar::F64(-0.0), Scalar::F64(1.5), Scalar::Str("é".into())];
        all.extend((0..40).map(Scalar::I64));
        all.extend([Scalar::U64(u64::MAX), Scalar::Bool(true)]);
        all
    }

    #[test]
    fn groups_come_back_and_merge() {
        let all = groups(&keys());
        let bytes = bytes(&all);
        let mut read_back = read(&bytes, 2000, 1 << 20).unwrap();
        assert_eq!(super::tests::bytes(&read_back), bytes);
        read_back.merge(read(&bytes, 2000, 1 << 20).unwrap()).unwrap();
        assert_eq!(read_back.len(), all.len());
        for g in 0..all.len() {
            assert_eq!(format!("{:?}", read_back.key(g)), format!("{:?}", all.key(g)));
            assert_eq!(read_back.states()[0].value(g).unwrap(), Scalar::I64(2 * (g as i64 + 1)));
        }
    }

    #[test]
    fn no_groups_are_groups_too() {
        let none = groups(&[]);
        assert_eq!(bytes(&read(&bytes(&none), 0, 1 << 20).unwrap()), bytes(&none));
    }

    #[test]
    fn damage_and_what_does_not_fit_are_errors() {
        let whole = bytes(&groups(&keys()));
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end], 2000, 1 << 20).unwrap_err().kind(), ErrorKind::InvalidValue);
        }
        for at in 0..whole.len() {
            for to in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = to;
                drop(read(&changed, 2000, 1 << 20));
            }
        }
        assert_eq!(read(&whole, 2000, 1 << 10).unwrap_err().kind(), ErrorKind::MemoryLimit);
        let e = read(&whole, 45, 1 << 20).unwrap_err();
        assert!(e.message().contains("46 groups of 2 keys"), "{e}");
        let twice = bytes(&groups(&[Scalar::I64(1), Scalar::I64(9), Scalar::I64(2)]));
        let at = twice.iter().rposition(|&b| b == 4).unwrap();
        assert_eq!(twice[at - 1], 3);
        let mut changed = twice;
        changed[at] = 2;
        assert!(read(&changed, 99, 1 << 20).unwrap_err().message().contains("two groups of one key"));
    }
}
