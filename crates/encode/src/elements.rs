//! Values of a column as the bytes of a file: byte order, fill values, texts of fixed width.

use sieva::{Column, DType, Data, Error, ErrorKind, Mask, Number, Result, Texts};

use crate::variable::{Kind, Variable};

/// The byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Big,
    Little,
}

/// A number as it lies in a file.
trait Stored: Copy + PartialOrd {
    /// Writes it to as many bytes as it has.
    fn put(self, order: Order, to: &mut [u8]);

    /// Writes all of them, one behind the other.
    fn put_all(values: &[Self], order: Order, to: &mut [u8]);

    /// Whether it is equal to itself: all but NaN.
    fn is_equal_to_itself(self) -> bool {
        self.partial_cmp(&self).is_some()
    }

    /// A fill value of its type.
    fn of(number: Number) -> Self;
}

macro_rules! stored {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            fn put(self, order: Order, to: &mut [u8]) {
                to.copy_from_slice(&match order {
                    Order::Big => self.to_be_bytes(),
                    Order::Little => self.to_le_bytes(),
                });
            }

            fn put_all(values: &[Self], order: Order, to: &mut [u8]) {
                // Places of a width that is known, and a loop for each order: the compiler makes vector instructions.
                let places = to.as_chunks_mut::<{ size_of::<$t>() }>().0;
                match order {
                    Order::Big => places.iter_mut().zip(values).for_each(|(p, v)| *p = v.to_be_bytes()),
                    Order::Little => places.iter_mut().zip(values).for_each(|(p, v)| *p = v.to_le_bytes()),
                }
            }

            fn of(number: Number) -> Self {
                match number {
                    Number::Int(i) => i as $t,
                    Number::Float(f) => f as $t,
                }
            }
        }
    )*};
}
stored!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

/// Writes the values of `column`, one row behind the other, to `to`, which has exactly the room.
///
/// # Errors
/// `invalid-value` where a value is equal to the fill value, which would make it missing.
pub(crate) fn encode(column: &Column, variable: &Variable, order: Order, to: &mut [u8]) -> Result<()> {
    let valid = column.valid.as_ref();
    match (&column.data, variable.kind) {
        (Data::Str(v), Kind::Text(width)) => texts(v, valid, width, to),
        (Data::Bool(v), Kind::Number(DType::I8)) => {
            let bytes: Vec<i8> = v.iter().map(|&b| b.into()).collect();
            numbers(&bytes, valid, variable, order, to)
        }
        (Data::I8(v), Kind::Number(DType::I8)) => numbers(v, valid, variable, order, to),
        (Data::I16(v), Kind::Number(DType::I16)) => numbers(v, valid, variable, order, to),
        (Data::I32(v), Kind::Number(DType::I32)) => numbers(v, valid, variable, order, to),
        (Data::I64(v), Kind::Number(DType::I64)) => numbers(v, valid, variable, order, to),
        (Data::U8(v), Kind::Number(DType::U8)) => numbers(v, valid, variable, order, to),
        (Data::U16(v), Kind::Number(DType::U16)) => numbers(v, valid, variable, order, to),
        (Data::U32(v), Kind::Number(DType::U32)) => numbers(v, valid, variable, order, to),
        (Data::U64(v), Kind::Number(DType::U64)) => numbers(v, valid, variable, order, to),
        (Data::F32(v), Kind::Number(DType::F32)) => numbers(v, valid, variable, order, to),
        (Data::F64(v), Kind::Number(DType::F64)) => numbers(v, valid, variable, order, to),
        // NULL has no type of its own.
        (_, Kind::Number(_)) if valid.is_some_and(Mask::none) => nothing(variable, order, to),
        (_, Kind::Text(_)) if valid.is_some_and(Mask::none) => {
            to.fill(0);
            Ok(())
        }
        (_, kind) => {
            let message = format!("column '{}' of {kind:?} came as {}", variable.name, column.dtype().name());
            Err(Error::new(ErrorKind::Internal, message))
        }
    }
}

fn numbers<T: Stored>(
    values: &[T],
    valid: Option<&Mask>,
    variable: &Variable,
    order: Order,
    to: &mut [u8],
) -> Result<()> {
    let size = size_of::<T>();
    check_room(size_of_val(values), to)?;
    T::put_all(values, order, to);
    let Some(fill) = variable.fill.map(T::of) else {
        return match valid {
            Some(valid) if !valid.all() => Err(missing_at_all(variable)),
            _ => Ok(()),
        };
    };
    // NaN is equal to nothing, so values of floats pass.
    let met = fill.is_equal_to_itself()
        && match valid {
            None => values.contains(&fill),
            Some(valid) => values.iter().enumerate().any(|(i, v)| *v == fill && valid.get(i)),
        };
    if met {
        return Err(met_fill(variable));
    }
    for i in valid.into_iter().flat_map(Mask::zeros_iter) {
        fill.put(order, &mut to[i * size..(i + 1) * size]);
    }
    Ok(())
}

/// Rows of which none has a value.
fn nothing(variable: &Variable, order: Order, to: &mut [u8]) -> Result<()> {
    fn all<T: Stored>(fill: Number, order: Order, to: &mut [u8]) {
        to.chunks_exact_mut(size_of::<T>()).for_each(|bytes| T::of(fill).put(order, bytes));
    }
    let (Some(fill), Kind::Number(dtype)) = (variable.fill, variable.kind) else {
        return Err(missing_at_all(variable));
    };
    match dtype {
        DType::I8 => all::<i8>(fill, order, to),
        DType::I16 => all::<i16>(fill, order, to),
        DType::I32 => all::<i32>(fill, order, to),
        DType::I64 => all::<i64>(fill, order, to),
        DType::U16 => all::<u16>(fill, order, to),
        DType::U32 => all::<u32>(fill, order, to),
        DType::U64 => all::<u64>(fill, order, to),
        DType::F16 | DType::F32 => all::<f32>(fill, order, to),
        DType::F64 => all::<f64>(fill, order, to),
        DType::U8 | DType::Bool | DType::Str => all::<u8>(fill, order, to),
    }
    Ok(())
}

fn texts(values: &Texts, valid: Option<&Mask>, width: usize, to: &mut [u8]) -> Result<()> {
    check_room(values.len() * width, to)?;
    to.fill(0);
    for (i, (text, place)) in values.iter().zip(to.chunks_exact_mut(width)).enumerate() {
        if valid.is_none_or(|v| v.get(i)) {
            let bytes = text.as_bytes();
            let place = place.get_mut(..bytes.len()).ok_or_else(|| {
                let message = format!("a text of {} bytes: the longest had {width} before", bytes.len());
                Error::new(ErrorKind::StaleSource, message).hint("ask again")
            })?;
            place.copy_from_slice(bytes);
        }
    }
    Ok(())
}

fn check_room(need: usize, to: &[u8]) -> Result<()> {
    if need == to.len() {
        return Ok(());
    }
    let message = format!("{need} bytes of values for {} bytes of a file", to.len());
    Err(Error::new(ErrorKind::Internal, message))
}

fn missing_at_all(variable: &Variable) -> Error {
    let message = format!("a value of '{}' is missing, of a column that cannot miss any", variable.name);
    Error::new(ErrorKind::Internal, message)
}

fn met_fill(variable: &Variable) -> Error {
    let fill = match variable.fill {
        Some(Number::Int(i)) => i.to_string(),
        Some(Number::Float(f)) => f.to_string(),
        None => String::new(),
    };
    let message =
        format!("a value of '{}' is {fill}, which means a missing one in the output", variable.name);
    Error::new(ErrorKind::InvalidValue, message).hint("take the result as Parquet, Arrow or CSV")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(dtype: DType, fill: Option<Number>) -> Variable {
        Variable { name: "v".into(), kind: Kind::Number(dtype), attrs: Vec::new(), fill }
    }

    #[test]
    fn missing_values_are_the_fill_value() {
        let column =
            Column { data: Data::I16(vec![1, 7, -2]), valid: Some(Mask::from(&[true, false, true][..])) };
        let mut out = [9; 6];
        encode(&column, &variable(DType::I16, Some(Number::Int(-9))), Order::Big, &mut out).unwrap();
        assert_eq!(out, [0, 1, 0xff, 0xf7, 0xff, 0xfe]);
        encode(&column, &variable(DType::I16, Some(Number::Int(-9))), Order::Little, &mut out).unwrap();
        assert_eq!(out, [1, 0, 0xf7, 0xff, 0xfe, 0xff]);
        let met = encode(&column, &variable(DType::I16, Some(Number::Int(-2))), Order::Big, &mut out);
        assert_eq!(
            met.unwrap_err().message(),
            "a value of 'v' is -2, which means a missing one in the output"
        );
        assert!(encode(&column, &variable(DType::I16, None), Order::Big, &mut out).is_err());
    }

    #[test]
    fn floats_keep_their_bits() {
        let bits = [0x8000_0000_u32, 0x7fc0_1234, 0x0000_0001];
        let column = Column { data: Data::F32(bits.map(f32::from_bits).to_vec()), valid: None };
        let mut out = [0; 12];
        encode(&column, &variable(DType::F32, Some(Number::Float(f64::NAN))), Order::Big, &mut out).unwrap();
        assert_eq!(out.as_chunks::<4>().0.iter().map(|b| u32::from_be_bytes(*b)).collect::<Vec<_>>(), bits);
    }

    #[test]
    fn texts_have_nuls_behind_them() {
        let column = Column {
            data: Data::Str(Texts::from_iter(["aé", "lost", ""])),
            valid: Some(Mask::from(&[true, false, true][..])),
        };
        let text = Variable { name: "t".into(), kind: Kind::Text(4), attrs: Vec::new(), fill: None };
        let mut out = [1; 12];
        encode(&column, &text, Order::Big, &mut out).unwrap();
        assert_eq!(&out, "aé\0\0\0\0\0\0\0\0\0".as_bytes());
    }
}
