//! Moments as bytes.

use super::Moments;
use sieva_types::Result;
use sieva_types::exact::{ExactSum, Sum};
use sieva_types::wire::{Reader, Writer};

impl Moments {
    /// The squares of large and small values, where there are any.
    pub(in crate::aggregate) fn write_scaled(&self, w: &mut Writer) {
        w.option(self.scaled.as_deref(), |w, [large, small]| {
            Sum::of(large.clone()).write(w);
            Sum::of(small.clone()).write(w);
        });
    }

    /// Moments that know nothing but these; none where nothing is known.
    pub(in crate::aggregate) fn read_scaled(r: &mut Reader<'_>) -> Result<Option<Self>> {
        let scaled = r.option(|r| {
            r.charge(size_of::<[ExactSum; 2]>() + size_of::<(u32, Self)>())?;
            Ok(Box::new([Sum::read(r)?.exact(), Sum::read(r)?.exact()]))
        })?;
        Ok(scaled.map(|scaled| Self { scaled: Some(scaled), ..Self::default() }))
    }

    /// Writes all that is known.
    pub(in crate::aggregate) fn write(&self, w: &mut Writer) {
        w.uint(self.count);
        Sum::of(self.sum.clone()).write(w);
        Sum::of(self.squares.clone()).write(w);
        self.write_scaled(w);
    }
}
