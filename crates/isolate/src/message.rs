//! Requests and answers, in the alphabet of manifests.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use sieva_format::manifest::SUBJECT;
use sieva_types::wire::{Reader, Writer};
use sieva_types::{Bx, Error, Result, Texts};

use crate::limits::WorkerLimits;

/// What a worker opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenRequest {
    /// The file.
    pub path: PathBuf,
    /// Names of arrays' dimensions: array path and names, outermost first.
    pub dims: Vec<(String, Vec<String>)>,
    /// Directories that links out of the file may lead to.
    pub external_roots: Vec<PathBuf>,
    /// Device and number of the file where it may open nothing else, as who would have to be asked is not there.
    pub alone: Option<(u64, u64)>,
}

/// What is asked of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To open a file; the answer is a manifest, with all layouts or with none.
    Open {
        /// The file.
        request: OpenRequest,
        /// What the worker may take. The first request sets it for its life.
        limits: WorkerLimits,
        /// Whether the manifest has all layouts.
        layouts: bool,
    },
    /// The layout of an array.
    Layout(usize),
    /// The elements of a box of an array that the format's own reader gives.
    Library(usize, Bx),
    /// The texts of such a box.
    Texts(usize, Bx),
    /// Whether nothing of such a box was ever written.
    Unwritten(usize, Bx),
}

impl Request {
    /// As a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Self::Open { request, limits, layouts } => {
                w.byte(0);
                w.blob(request.path.as_os_str().as_bytes());
                w.list(&request.dims, |w, (path, names)| {
                    w.text(path);
                    w.list(names, |w, name| w.text(name));
                });
                w.list(&request.external_roots, |w, root| w.blob(root.as_os_str().as_bytes()));
                w.flag(request.alone.is_some());
                request.alone.iter().flat_map(|&(device, number)| [device, number]).for_each(|n| w.uint(n));
                w.uint(limits.memory);
                w.uint(limits.cpu_seconds);
                w.uint(limits.wall.as_millis() as u64);
                w.uint(limits.answer as u64);
                w.flag(*layouts);
            }
            Self::Layout(array) => {
                w.byte(1);
                w.uint(*array as u64);
            }
            Self::Library(array, bx) => encode_box(&mut w, 2, *array, bx),
            Self::Texts(array, bx) => encode_box(&mut w, 3, *array, bx),
            Self::Unwritten(array, bx) => encode_box(&mut w, 4, *array, bx),
        }
        w.into_bytes()
    }

    /// From a message.
    ///
    /// # Errors
    /// Where it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(&SUBJECT, bytes, 1 << 26);
        let request = match r.byte()? {
            0 => Self::Open {
                request: OpenRequest {
                    path: path(&mut r)?,
                    dims: r.list(|r| Ok((r.text()?, r.list(Reader::text)?)))?,
                    external_roots: r.list(path)?,
                    alone: if r.flag()? { Some((r.uint()?, r.uint()?)) } else { None },
                },
                limits: WorkerLimits {
                    memory: r.uint()?,
                    cpu_seconds: r.uint()?,
                    wall: Duration::from_millis(r.uint()?),
                    answer: r.index()?,
                },
                layouts: r.flag()?,
            },
            1 => Self::Layout(r.index()?),
            2 => Self::Library(r.index()?, box_of(&mut r)?),
            3 => Self::Texts(r.index()?, box_of(&mut r)?),
            4 => Self::Unwritten(r.index()?, box_of(&mut r)?),
            other => return Err(r.damaged(format!("{other} is no request"))),
        };
        r.finish()?;
        Ok(request)
    }
}

fn encode_box(w: &mut Writer, kind: u8, array: usize, bx: &Bx) {
    w.byte(kind);
    w.uint(array as u64);
    w.uints(&bx.start);
    w.uints(&bx.shape);
}

fn path(r: &mut Reader<'_>) -> Result<PathBuf> {
    Ok(PathBuf::from(OsString::from_vec(r.blob()?.to_vec())))
}

fn box_of(r: &mut Reader<'_>) -> Result<Bx> {
    let (start, shape) = (r.uints()?, r.uints()?);
    if start.len() == shape.len() { Ok(Bx::new(start, shape)) } else { Err(r.damaged("a box of two ranks")) }
}

/// The first byte of an answer.
const GOOD: u8 = 0;
const BAD: u8 = 1;

/// What stands before an answer's content.
pub const GOOD_HEAD: [u8; 1] = [GOOD];

/// An answer that is an error.
pub fn encode_error(e: &Error) -> Vec<u8> {
    let mut w = Writer::default();
    w.byte(BAD);
    w.error(e);
    w.into_bytes()
}

/// The content of an answer.
///
/// # Errors
/// Outside: where it is no answer. Inside: the error that it is.
pub fn decode_answer(bytes: &[u8]) -> Result<Result<&[u8]>> {
    match bytes.split_first() {
        Some((&GOOD, content)) => Ok(Ok(content)),
        Some((&BAD, rest)) => {
            let mut r = Reader::new(&SUBJECT, rest, 1 << 20);
            let e = r.error()?;
            r.finish()?;
            Ok(Err(e))
        }
        _ => Err(Error::corrupt("neither an answer nor an error")),
    }
}

/// Texts as a message.
pub fn encode_texts(texts: &Texts) -> Vec<u8> {
    let mut w = Writer::default();
    w.uint(texts.len() as u64);
    texts.iter().for_each(|text| w.text(text));
    w.into_bytes()
}

/// Texts from a message, in at most about `limit` bytes.
///
/// # Errors
/// Where it is none.
pub fn decode_texts(bytes: &[u8], limit: usize) -> Result<Texts> {
    let mut r = Reader::new(&SUBJECT, bytes, limit);
    let texts = r.list(Reader::text)?;
    r.finish()?;
    Ok(texts.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_as_they_were() {
        let request = OpenRequest {
            path: PathBuf::from(OsString::from_vec(b"/a/\xff.nc".to_vec())),
            dims: vec![("g/x".into(), vec!["angle".into(), "z".into()])],
            external_roots: vec!["/data".into()],
            alone: Some((7, u64::MAX)),
        };
        let bx = Bx::new(vec![1, 2], vec![3, u64::MAX]);
        for request in [
            Request::Open { request, limits: WorkerLimits::default(), layouts: true },
            Request::Layout(7),
            Request::Library(1, bx.clone()),
            Request::Texts(2, bx.clone()),
            Request::Unwritten(3, bx),
        ] {
            let bytes = request.encode();
            assert_eq!(Request::decode(&bytes).unwrap(), request);
            for n in 0..bytes.len() {
                assert!(Request::decode(&bytes[..n]).is_err(), "{n} bytes of {request:?}");
            }
        }
    }
}
