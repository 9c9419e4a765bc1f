//! Rows through code: handed over in pieces, what comes out collected.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_types::{Error, ErrorKind, Result, large};

use super::engine::Ticker;
use super::guest::{COLUMN, Described, Guest};
use super::values::{Slice, Values};
use crate::code::{Function, Language};
use crate::element::Element;
use crate::limits::Limits;
use crate::module::Form;

/// Bytes that are handed over at once: they stay in the processor's cache.
const PIECE: usize = 256 << 10;

/// A function at work.
pub struct Run {
    function: Function,
    guest: Guest,
    limits: Limits,
    /// Rows in a piece; of a function of all rows all of them.
    piece: usize,
    /// Where the description of the columns lies, and of each column its values and validity.
    columns: usize,
    places: Vec<(usize, usize)>,
    /// Whether a value was missing, by column.
    missing: Vec<bool>,
    /// Rows that were handed over.
    rows: usize,
    /// Rows that come, of a function that gives as many.
    announced: u64,
    /// Whether a filter says of each row whether it stays, rather than giving those that do.
    says_which: bool,
    out: Vec<Values>,
    mask: Vec<u8>,
}

impl Run {
    pub(crate) fn start(function: &Function, rows: u64, limits: &Limits) -> Result<Self> {
        let ticker = Ticker::start(function.0.module.engine())?;
        Self::ticking(function, rows, limits, ticker)
    }

    /// The same, with a clock that it shares.
    pub(super) fn ticking(
        function: &Function,
        rows: u64,
        limits: &Limits,
        ticker: Arc<Ticker>,
    ) -> Result<Self> {
        let mut guest = Guest::start(function, limits, ticker)?;
        let sizes: Vec<usize> = function.0.inputs.iter().map(|i| i.element.size()).collect();
        let of_row = sizes.iter().sum::<usize>() + sizes.len();
        let is_whole = function.0.form == Form::Proc;
        let piece = if is_whole {
            let too_many = || {
                let message =
                    format!("{rows} rows at once, and code may have {} bytes of memory", limits.memory);
                Error::new(ErrorKind::MemoryLimit, message)
            };
            usize::try_from(rows)
                .ok()
                .filter(|_| rows.saturating_mul(of_row as u64) <= limits.memory)
                .ok_or_else(too_many)?
        } else {
            (PIECE / of_row.max(1)).max(16)
        };
        let columns = guest.alloc(sizes.len() * COLUMN)?;
        let mut places = Vec::new();
        for size in &sizes {
            places.push((guest.alloc(piece * size)?, guest.alloc(piece)?));
        }
        if is_whole {
            // As much comes out as went in, if values come out.
            guest.expect(piece * of_row);
        }
        if let Form::Reduce { .. } = function.0.form {
            guest.call::<(), ()>("sieva_init", ())?;
        }
        let out = match function.0.form {
            Form::Filter => function.0.inputs.iter().map(|i| Values::new(i.element)).collect(),
            _ => Vec::new(),
        };
        let missing = vec![false; sizes.len()];
        let limits = limits.clone();
        let announced = if function.0.form == Form::Map { rows } else { 0 };
        Ok(Self {
            function: function.clone(),
            guest,
            limits,
            piece,
            columns,
            places,
            missing,
            rows: 0,
            announced,
            says_which: false,
            out,
            mask: Vec::new(),
        })
    }

    /// Hands rows over: of each column as many values.
    ///
    /// # Errors
    /// What the code fails of; `memory-limit` for more than may come out; `invalid-value` for columns of other lengths.
    pub fn push(&mut self, columns: &[Slice<'_>]) -> Result<()> {
        let rows = self.rows_of(columns)?;
        if self.function.0.form == Form::Proc {
            return self.keep(columns, rows);
        }
        self.rows = self.rows.saturating_add(rows);
        if self.rows as u64 > self.function.0.most_rows {
            let message = format!("more than {} rows, which an int does not count", i32::MAX);
            return Err(
                Error::new(ErrorKind::InvalidValue, message).hint("write a reduction: init, step, finish")
            );
        }
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + self.piece);
            let cut: Vec<Slice<'_>> = columns
                .iter()
                .zip(&self.function.0.inputs)
                .map(|(c, i)| c.cut(i.element.size(), from, to))
                .collect();
            self.piece_of(&cut, to - from)?;
            from = to;
        }
        Ok(())
    }

    /// The values of these rows alone: of a filter whether a row stays. A value is missing where one that it is of is.
    pub(super) fn each(&mut self, columns: &[Slice<'_>], cancel: &Arc<AtomicBool>) -> Result<Values> {
        self.guest.rewind();
        self.guest.cancelled_by(cancel);
        self.says_which = true;
        self.out.clear();
        self.announced = self.rows_of(columns)? as u64;
        self.push(columns)?;
        if self.out.is_empty() {
            // Of no rows the type is known by asking for none.
            self.piece_of(&empty(self.places.len()), 0)?;
        }
        self.out.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "no values came out of code"))
    }

    /// Of a text of each row the row that it had come to.
    pub(super) fn row_reached(&mut self) -> Option<usize> {
        self.guest.row_reached()
    }

    /// The instance.
    pub(super) fn guest(&mut self) -> &mut Guest {
        &mut self.guest
    }

    /// Bytes of the memory of the instance.
    pub(super) fn size(&self) -> usize {
        self.guest.size()
    }

    /// What a reduction comes to so far.
    pub(super) fn value(&mut self) -> Result<Values> {
        self.out.clear();
        let address: u32 = self.guest.call("sieva_finish", ())?;
        self.take(address, None)?;
        self.out.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "no value came out of code"))
    }

    /// Whether its time is over.
    pub(super) fn is_out_of_time(&self) -> bool {
        self.guest.is_out_of_time()
    }

    /// How many rows these are.
    fn rows_of(&self, columns: &[Slice<'_>]) -> Result<usize> {
        let inputs = &self.function.0.inputs;
        let wrong = |message: String| Err(Error::new(ErrorKind::InvalidValue, message));
        if columns.len() != inputs.len() {
            return wrong(format!("{} columns for code of {}", columns.len(), inputs.len()));
        }
        let mut rows = None;
        for (column, input) in columns.iter().zip(inputs) {
            let size = input.element.size();
            let own = column.data.len() / size;
            if !column.data.len().is_multiple_of(size)
                || rows.is_some_and(|rows| rows != own)
                || column.valid.is_some_and(|valid| valid.len() != own)
            {
                return wrong(format!("the column '{}' has not as many values as the others", input.name));
            }
            rows = Some(own);
        }
        Ok(rows.unwrap_or(0))
    }

    /// Rows of a function of all rows: they wait in its memory.
    fn keep(&mut self, columns: &[Slice<'_>], rows: usize) -> Result<()> {
        let (at, end) = (self.rows, self.rows + rows);
        if end > self.piece {
            let message = format!("{end} rows, and {} were announced", self.piece);
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        for (number, column) in columns.iter().enumerate() {
            let (data, valid) = self.places[number];
            let size = self.function.0.inputs[number].element.size();
            self.guest.write(data + at * size, column.data)?;
            match column.valid {
                Some(mask) if mask.contains(&0) => {
                    // Not what stands there instead: a fill value is no datum.
                    self.guest.clear(data + at * size, size, mask)?;
                    if !self.missing[number] {
                        // Those before were there.
                        self.guest.write(valid, &vec![1; at])?;
                        self.missing[number] = true;
                    }
                    self.guest.write(valid + at, mask)?;
                }
                _ if self.missing[number] => self.guest.write(valid + at, &vec![1; rows])?,
                _ => {}
            }
        }
        self.rows = end;
        Ok(())
    }

    fn piece_of(&mut self, columns: &[Slice<'_>], rows: usize) -> Result<()> {
        self.mask.clear();
        for mask in columns.iter().filter_map(|c| c.valid) {
            if self.mask.is_empty() {
                self.mask.extend(mask.iter().map(|v| u8::from(*v != 0)));
            } else {
                self.mask.iter_mut().zip(mask).for_each(|(all, one)| *all &= u8::from(*one != 0));
            }
        }
        if !self.mask.contains(&0) {
            // Where all is there, nobody looks row by row.
            self.mask.clear();
        }
        // Functions of the text are not called for a row of which a value is missing: the first column says of all.
        let is_text = self.function.0.language == Language::C;
        // Such as go through all rows, a `proc` among them, see 0 there.
        let sees_missing = is_text && !matches!(self.function.0.form, Form::Map | Form::Filter);
        let mut described = Vec::new();
        for (number, column) in columns.iter().enumerate() {
            let (data, place) = self.places[number];
            self.guest.write(data, column.data)?;
            if let Some(valid) = column.valid.filter(|valid| sees_missing && valid.contains(&0)) {
                self.guest.clear(data, self.function.0.inputs[number].element.size(), valid)?;
            }
            let mask = if is_text {
                (number == 0 && !self.mask.is_empty()).then_some(&*self.mask)
            } else {
                column.valid
            };
            if let Some(mask) = mask {
                self.guest.write(place, mask)?;
            }
            let valid = if mask.is_some() { place } else { 0 };
            described.push((self.function.0.inputs[number].element, data, valid));
        }
        self.guest.describe(self.columns, &described, rows)?;
        let address = u32::try_from(self.columns).unwrap_or(0);
        let count = u32::try_from(columns.len()).unwrap_or(0);
        match self.function.0.form {
            Form::Map => {
                let result: u32 = self.guest.call("sieva_map", (address, count))?;
                self.take(result, Some(rows))
            }
            Form::Filter => {
                let result: u32 = self.guest.call("sieva_filter", (address, count))?;
                self.select(result, columns, rows)
            }
            _ => self.guest.call::<_, ()>("sieva_step", (address, count)),
        }
    }

    /// Takes what came out.
    fn take(&mut self, address: u32, rows: Option<usize>) -> Result<()> {
        let of = self.guest.described(address)?;
        if let Some(rows) = rows.filter(|rows| *rows != of.count) {
            let message = format!("the code gives {} values for {rows} rows", of.count);
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let size = of.count * of.element.size();
        self.check_output(size + of.count)?;
        if self.out.is_empty() {
            let mut values = Values::new(of.element);
            let most = self.limits.output.min(self.room() as u64) / of.element.size() as u64;
            let rows = usize::try_from(self.announced.min(most)).unwrap_or(0).max(of.count);
            values.data = large::with_room(rows * of.element.size());
            self.out.push(values);
        }
        let room = self.room();
        let is_map_of_text =
            rows.is_some() && self.function.0.language == Language::C && !self.mask.is_empty();
        let (Some(data), Some(out)) = (self.guest.bytes(of.data, size), self.out.first_mut()) else {
            return Err(Error::new(ErrorKind::Internal, "what came out of code is gone"));
        };
        if out.element != of.element {
            let (before, now) = (out.element.name(), of.element.name());
            let message = format!("the code gives values of type {now}, and gave {before} before");
            return Err(Error::new(ErrorKind::TypeMismatch, message));
        }
        let valid = match of.valid {
            _ if is_map_of_text => Some(&*self.mask),
            0 => None,
            valid => self.guest.bytes(valid, of.count),
        };
        out.extend(data, valid, room);
        Ok(())
    }

    /// Keeps the rows that the code wants.
    fn select(&mut self, address: u32, columns: &[Slice<'_>], rows: usize) -> Result<()> {
        let of = self.guest.described(address)?;
        if of.count != rows || of.element.size() != 1 {
            let message =
                format!("the code gives {} values of type {} for {rows} rows", of.count, of.element.name());
            return Err(
                Error::new(ErrorKind::InvalidValue, message).hint("a filter gives a byte of each row")
            );
        }
        if self.says_which {
            return self.say_which(&of);
        }
        let mut keep = std::mem::take(&mut self.mask);
        keep.clear();
        keep.extend(self.guest.bytes(of.data, rows).unwrap_or_default().iter().map(|k| u8::from(*k != 0)));
        if of.valid != 0 {
            let valid = self.guest.bytes(of.valid, rows).unwrap_or_default();
            keep.iter_mut().zip(valid).for_each(|(keep, valid)| *keep &= u8::from(*valid != 0));
        }
        let kept = keep.iter().map(|k| usize::from(*k)).sum::<usize>();
        let of_row: usize = self.function.0.inputs.iter().map(|i| i.element.size() + 1).sum();
        self.check_output(kept * of_row)?;
        let room = self.room() / columns.len().max(1);
        for (column, out) in columns.iter().zip(&mut self.out) {
            let data = match out.element.size() {
                1 => compressed::<1>(column.data, &keep, kept),
                2 => compressed::<2>(column.data, &keep, kept),
                4 => compressed::<4>(column.data, &keep, kept),
                _ => compressed::<8>(column.data, &keep, kept),
            };
            let valid = column.valid.map(|mask| compressed::<1>(mask, &keep, kept));
            out.extend(&data, valid.as_deref(), room);
        }
        self.mask = keep;
        Ok(())
    }

    /// Takes what a filter says of each row.
    fn say_which(&mut self, of: &Described) -> Result<()> {
        let mut out = self.out.pop().unwrap_or_else(|| Values::new(Element::U8));
        let keep = self.guest.bytes(of.data, of.count).unwrap_or_default();
        let own = if of.valid == 0 { None } else { self.guest.bytes(of.valid, of.count) };
        let is_text = self.function.0.language == Language::C && !self.mask.is_empty();
        out.extend(keep, if is_text { Some(&*self.mask) } else { own }, 0);
        self.out.push(out);
        Ok(())
    }

    /// Bytes that may be held besides those that are.
    fn room(&self) -> usize {
        let held = self.guest.size() + self.out.iter().map(Values::held).sum::<usize>();
        usize::try_from(self.limits.memory).unwrap_or(usize::MAX).saturating_sub(held)
    }

    fn check_output(&self, more: usize) -> Result<()> {
        let there: usize = self.out.iter().map(|v| v.data.len() + v.valid.as_ref().map_or(0, Vec::len)).sum();
        let held = self.guest.size() + (there + more).max(self.out.iter().map(Values::held).sum());
        if held as u64 > self.limits.memory {
            let message = format!(
                "the code and what comes out of it take {held} bytes, and it may have {} of memory",
                self.limits.memory
            );
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .hint("reduce more, ask for fewer values, or raise the memory limit"));
        }
        if (there + more) as u64 <= self.limits.output {
            return Ok(());
        }
        let message = format!("more than {} bytes come out of the code", self.limits.output);
        Err(Error::new(ErrorKind::MemoryLimit, message).hint("reduce more, or ask for fewer values"))
    }

    /// The state of a reduction, for another run of the same function.
    ///
    /// # Errors
    /// `unsupported` for code that does not merge; as [`Run::push`].
    pub fn save(&mut self) -> Result<Vec<u8>> {
        self.check_merges()?;
        let address: u32 = self.guest.call("sieva_save", ())?;
        let of = self.guest.described(address)?;
        let size = of.count * of.element.size();
        self.check_output(size)?;
        Ok(self.guest.bytes(of.data, size).unwrap_or_default().to_vec())
    }

    /// Takes the state of another run in.
    ///
    /// # Errors
    /// As [`Run::save`].
    pub fn merge(&mut self, state: &[u8]) -> Result<()> {
        self.check_merges()?;
        let address = self.guest.alloc(state.len().max(1))?;
        self.guest.write(address, state)?;
        let (address, length) =
            (u32::try_from(address).unwrap_or(0), u32::try_from(state.len()).unwrap_or(0));
        self.guest.call::<_, ()>("sieva_merge", (address, length))
    }

    fn check_merges(&self) -> Result<()> {
        if self.function.merges() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Unsupported, "the code has no function that merges states")
            .hint("write 'merge', which takes the other state as other.NAME"))
    }

    /// What comes of it: columns, of a filter those that went in. `row_length` is how many values a row of the array has,
    /// for functions that are called with the number of a row; 0: all of them.
    ///
    /// # Errors
    /// As [`Run::push`]; `invalid-value` where rows of that length do not fill the array.
    pub fn finish(mut self, row_length: u64) -> Result<Vec<Values>> {
        match self.function.0.form {
            Form::Proc => self.whole(row_length)?,
            Form::Reduce { .. } => {
                let value = self.value()?;
                self.out.push(value);
            }
            // Of no rows the type is known by asking for none.
            Form::Map if self.out.is_empty() => self.piece_of(&empty(self.places.len()), 0)?,
            Form::Map | Form::Filter => {}
        }
        Ok(self.out)
    }

    fn whole(&mut self, row_length: u64) -> Result<()> {
        let rows = self.rows;
        if rows != self.piece {
            let message = format!("{rows} rows, and {} were announced", self.piece);
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let length = if row_length == 0 { rows.max(1) as u64 } else { row_length };
        if !(rows as u64).is_multiple_of(length) {
            let message = format!("{rows} values are no rows of {length}");
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let described: Vec<_> = self
            .places
            .iter()
            .zip(&self.missing)
            .zip(&self.function.0.inputs)
            .map(|(((data, valid), missing), input)| {
                (input.element, *data, if *missing { *valid } else { 0 })
            })
            .collect();
        self.guest.describe(self.columns, &described, rows)?;
        let address = u32::try_from(self.columns).unwrap_or(0);
        let count = u32::try_from(described.len()).unwrap_or(0);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let result: u32 = self.guest.call("sieva_proc", (address, count, length))?;
        self.take(result, None)
    }
}

fn empty(columns: usize) -> Vec<Slice<'static>> {
    vec![Slice { data: &[], valid: None }; columns]
}

/// The values that are kept: `kept` of them, those of which the byte is 1.
fn compressed<const SIZE: usize>(data: &[u8], keep: &[u8], kept: usize) -> Vec<u8> {
    // Each is written, and what comes next over those that go: room for one more.
    let mut out = vec![0; (kept + 1) * SIZE];
    let mut at = 0;
    for (value, keep) in data.chunks_exact(SIZE).zip(keep) {
        out[at..at + SIZE].copy_from_slice(value);
        at += SIZE * usize::from(*keep);
    }
    out.truncate(kept * SIZE);
    out
}
