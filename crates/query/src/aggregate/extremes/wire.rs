//! Least and greatest values as bytes: of each group the value, if there is one.

use super::{NONE, Numbers, Texts, of_float, of_unsigned};
use crate::aggregate::accumulator::Accumulator;
use crate::aggregate::wire::Encoded;
use crate::values::{Scalar, ValueType};
use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

impl Encoded for Numbers {
    fn encode(&self, groups: usize, w: &mut Writer) {
        for group in 0..groups {
            match self.of(group) {
                Scalar::F64(x) => w.float(x),
                Scalar::Bool(x) => w.option(Some(x), Writer::flag),
                Scalar::I64(x) => w.option(Some(x), |w, x| w.int(x.into())),
                Scalar::U64(x) => w.option(Some(x), Writer::uint),
                _ if self.is_of_floats() => w.float(f64::NAN),
                _ => w.flag(false),
            }
        }
    }

    fn decode(&mut self, groups: usize, _: u64, r: &mut Reader<'_>) -> Result<()> {
        self.resize(groups);
        let signed = |r: &mut Reader<'_>| {
            let x = r.int()?;
            i64::try_from(x).map_err(|_| r.damaged(format!("{x} is no int64")))
        };
        for group in 0..groups {
            let key = match self.input {
                ValueType::F64 => {
                    self.best[group] = match r.float()? {
                        x if x.is_nan() => NONE,
                        x => of_float(x, self.turn),
                    };
                    continue;
                }
                ValueType::Bool => r.option(|r| r.flag().map(i64::from))?,
                ValueType::U64 => r.option(|r| r.uint().map(of_unsigned))?,
                _ => r.option(signed)?,
            };
            if let Some(key) = key {
                (self.best[group], self.seen[group]) = (key ^ self.turn, true);
            }
        }
        Ok(())
    }
}

impl Encoded for Texts {
    fn encode(&self, groups: usize, w: &mut Writer) {
        self.best.iter().take(groups).for_each(|best| w.option(best.as_deref(), Writer::text));
    }

    fn decode(&mut self, groups: usize, _: u64, r: &mut Reader<'_>) -> Result<()> {
        self.resize(groups);
        for best in self.best.iter_mut().take(groups) {
            *best = r.option(Reader::text)?;
            self.held += best.as_ref().map_or(0, |text| text.capacity() as u64);
        }
        Ok(())
    }
}
