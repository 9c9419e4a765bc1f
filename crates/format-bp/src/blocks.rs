//! In which blocks a variable was written.
//!
//! Their least and greatest, which ADIOS2 keeps, are not asked for: BP3 and BP4 do not tell them through the C interface,
//! and whether they hold after compression with loss cannot be found out there.

use std::collections::BTreeMap;

use crate::abi::BlockInfo;
use crate::file::File;
use crate::library::Api;
use crate::variable::Variable;

/// More blocks of a step than this are not looked at.
const MOST_BLOCKS: usize = 1 << 20;

/// The shape of the blocks that most of a variable's first step is written in, where the library tells.
///
/// It may be asked only for variables that are in every step, of BP5: engines count the steps of others differently, and
/// those of BP4 end the process on them.
pub fn block_shape(file: &File, api: &Api, variable: &Variable) -> Option<Vec<u64>> {
    if variable.shape.is_empty() {
        return None;
    }
    let handle = file.variable(api, &variable.name).ok()?;
    // SAFETY: the handle is one of this file.
    let info = unsafe { (api.inquire_blockinfo)(file.engine(), handle.0, 0) };
    if info.is_null() {
        return None;
    }
    // SAFETY: it points to one structure, with as many blocks as it says; what is kept of it is copied.
    let counts = unsafe {
        let info = &*info;
        let sound = usize::try_from(info.dims) == Ok(variable.shape.len())
            && info.is_value == 0
            && info.is_reverse_dims == 0
            && info.blocks <= MOST_BLOCKS
            && !info.block_infos.is_null();
        let blocks: &[BlockInfo] =
            if sound { std::slice::from_raw_parts(info.block_infos, info.blocks) } else { &[] };
        let mut counts: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        for block in blocks.iter().filter(|block| !block.count.is_null()) {
            let count = std::slice::from_raw_parts(block.count, variable.shape.len());
            *counts.entry(count.iter().map(|&n| n as u64).collect()).or_default() += 1;
        }
        counts
    };
    // SAFETY: it was handed out above, and nothing points into it any more.
    unsafe { (api.free_blockinfo)(info) };
    let (mut shape, _) = counts.into_iter().max_by_key(|(_, times)| *times)?;
    if shape.contains(&0) {
        return None;
    }
    if variable.has_steps() {
        shape.insert(0, 1);
    }
    Some(shape)
}
