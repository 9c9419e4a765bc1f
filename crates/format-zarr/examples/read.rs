//! Reads all numbers of a local Zarr hierarchy, block by block, and tells how fast: `read DIRECTORY [REPEATS]`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use sieva_format::ArraySource;
use sieva_format::buffer::Buffer;
use sieva_format::layout::Placement;
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_format_zarr::{ZarrOptions, ZarrSource};
use sieva_store::DirTree;
use sieva_types::{Bx, Result};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_default();
    let repeats = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    for _ in 0..repeats {
        let start = Instant::now();
        let source =
            Arc::new(ZarrSource::open(Arc::new(DirTree::open(Path::new(&path))?), &ZarrOptions::default())?);
        let opened = start.elapsed();
        let bytes = read(&source)?;
        let seconds = (start.elapsed() - opened).as_secs_f64();
        println!(
            "{} arrays, opened in {opened:?}, {bytes} bytes in {seconds:.3} s, {:.0} MB/s",
            source.schema().arrays.len(),
            bytes as f64 / seconds / 1e6
        );
    }
    Ok(())
}

fn read(source: &Arc<ZarrSource>) -> Result<u64> {
    let (mut bytes, mut out, mut workspace) = (0, Buffer::default(), Workspace::default());
    for (i, array) in source.schema().arrays.iter().enumerate() {
        let reader = BlockReader::new(
            Arc::clone(source) as Arc<dyn ArraySource>,
            i,
            Arc::new(ChunkCache::new(64 << 20)),
            1 << 30,
        )?;
        let layout = reader.layout();
        if !matches!(layout.placement, Placement::Objects) || array.shape.contains(&0) {
            continue;
        }
        let rows = layout.chunk_shape.first().copied().unwrap_or(1);
        let mut bx = Bx::whole(&array.shape);
        for start in
            (0..array.shape.first().copied().unwrap_or(1)).step_by(usize::try_from(rows).unwrap_or(1))
        {
            if let (Some(first), Some(len)) = (bx.start.first_mut(), bx.shape.first_mut()) {
                (*first, *len) = (start, rows.min(array.shape[0] - start));
            }
            reader.read(&bx, &mut out, &mut workspace)?;
            bytes += out.bytes_mut().len() as u64;
        }
    }
    Ok(bytes)
}
