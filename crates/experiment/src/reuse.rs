//! The distances between references to a page: the histogram of reuse distances, in distinct pages touched since,
//! including the page itself.
//!
//! It comes from the misses of LRU, all sizes in one pass. A reference at distance d misses in memories of fewer than
//! d pages, so the references between two sizes are the misses that the larger memory saves. In a long trace, only
//! the pages of some classes by hash are followed, as in SHARDS (Waldspurger et al., FAST 2015, section 3): with one
//! page in K, true distances and counts are K times those seen. The total is known, so the difference between sample
//! and total is added to the nearest bin (their SHARDS-adj, section 3.4). Several classes, each a sample of its own,
//! give the error.

use std::path::Path;

use coldframe_drivers::front_end::plain::Plain;
use coldframe_drivers::front_end::FrontEnd;
use coldframe_drivers::oracle::lru::Curve;
use coldframe_drivers::oracle::{Oracle, OracleCounts};
use coldframe_drivers::Stream;
use coldframe_formats::reduce::Method;
use coldframe_lane::PageRef;
use coldframe_store::{Block, Provenance, Reader, Wanted};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ExperimentError;
use crate::systems::front_end::spaces;

/// Parts of a sample that are evaluated separately.
pub const CLASSES: usize = 8;

/// Up to this many rows, or KiB of footprint, every page is followed: a short trace is quick, and a sample of few
/// pages says little.
const EXACT_ROWS: u64 = 1 << 21;
const EXACT_KIB: u64 = 1 << 13;
/// Classes of pages in a longer trace, and how many of them are followed: one page in eight in all.
const LONG_CLASSES: usize = 32;
const FOLLOWED: usize = 4;
/// Pages have 4 KiB, or more if the trace was reduced to larger pages.
const PAGE_SHIFT: u32 = 12;

/// References by reuse distance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reuse {
    /// Bytes of a page.
    pub page: u64,
    /// From short to long distances.
    pub bins: Vec<Bin>,
    /// First references to a page.
    #[serde(rename = "first_references")]
    pub first: u64,
    /// All references.
    pub references: u64,
    /// The share of pages that was followed; 1 for all.
    pub followed: f64,
}

/// References at distances above the bin's before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bin {
    /// The largest distance, in pages.
    #[serde(rename = "up_to_pages")]
    pub up_to: u64,
    /// References.
    pub references: f64,
    /// Standard error of the count, from the classes; 0 if all pages were followed.
    pub error: f64,
}

/// The histogram of a trace.
pub fn reuse(path: &Path) -> Result<Reuse, ExperimentError> {
    let reader = Reader::open(path)?;
    let exact = reader.rows() <= EXACT_ROWS || reader.provenance().pages_1KiB <= EXACT_KIB;
    let rate = reader.provenance().reduction.and_then(|reduction| reduction.rate());
    let (classes, followed) = match (rate, exact) {
        (Some(_), _) => (CLASSES, CLASSES),
        (None, true) => (1, 1),
        (None, false) => (LONG_CLASSES, FOLLOWED),
    };
    sampled(reader, classes, followed)
}

fn sampled(mut reader: Reader, classes: usize, followed: usize) -> Result<Reuse, ExperimentError> {
    let trace = reader.provenance().clone();
    let shift = trace.page_size.map_or(0, |page| page.max(1).ilog2()).max(PAGE_SHIFT);
    let mut front = Plain::new(Stream::Both, shift, spaces(&trace), None);
    let sizes = sizes(&trace);
    let mut curves: Vec<Curve> = (0..followed).map(|_| Curve::new(&sizes)).collect();
    let mut parts: Vec<Vec<PageRef>> = vec![Vec::new(); followed];
    let (mut block, mut references) = (Block::new(), Vec::new());
    let columns = reader.columns();
    let wanted = Wanted { task: columns.task, count: columns.count, time: false, ..Wanted::ACCESS };
    while reader.read(&mut block, wanted)? > 0 {
        references.clear();
        front.filter(&block, 0, &mut references);
        for reference in &references {
            if let Some(part) = parts.get_mut(class(reference.page(), classes)) {
                part.push(*reference);
            }
        }
        for (curve, part) in curves.iter_mut().zip(&mut parts) {
            curve.feed(part);
            part.clear();
        }
    }
    let counts: Vec<_> = curves.iter_mut().map(|curve| curve.finish(&[])).collect();
    let mut whole = (front.numbering().count() as u64, front.counts().references);
    let mut rate_of_sample = 1.0;
    if let Some((reduction, rate)) = trace.reduction.and_then(|reduction| Some((reduction, reduction.rate()?))) {
        (whole, rate_of_sample) = ((reduction.pages, reduction.references), rate);
    }
    let bins = bins(&sizes, &counts, classes as f64 / rate_of_sample, whole);
    let followed = rate_of_sample * followed as f64 / classes as f64;
    Ok(Reuse { page: 1 << shift, bins, first: whole.0, references: whole.1, followed })
}

/// Powers of two up to the trace's footprint. For a compacted trace, such multiples of the size from which it is
/// exact, since it lacks shorter distances.
fn sizes(trace: &Provenance) -> Vec<usize> {
    let most = (trace.pages_1KiB.max(1) as usize).next_power_of_two();
    let least = match trace.reduction.map(|reduction| reduction.method) {
        Some(Method::Compaction { pages }) => pages as usize,
        _ => 1,
    };
    std::iter::successors(Some(least), |size| Some(size * 2)).take_while(|size| *size <= most.max(least)).collect()
}

/// The class of a page, by the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) fn class(page: usize, classes: usize) -> usize {
    let mut z = (page as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) % classes as u64) as usize
}

/// From the misses of each class at each size; a class is one page in `scale`. `whole` gives all first references,
/// and all references. Beyond the size at which only first references miss, nothing is reused.
fn bins(sizes: &[usize], counts: &[Vec<OracleCounts>], scale: f64, whole: (u64, u64)) -> Vec<Bin> {
    let (first, references) = whole;
    let again = |class: &[OracleCounts], at: usize| (class[at].true_faults - class[at].cold_faults) as f64 * scale;
    let mut bins = Vec::new();
    for (at, size) in sizes.iter().enumerate() {
        let estimates: Vec<f64> = counts
            .iter()
            .map(|class| {
                let nearer = if at == 0 { references.saturating_sub(first) as f64 } else { again(class, at - 1) };
                nearer - again(class, at)
            })
            .collect();
        let (references, error) = mean(&estimates);
        bins.push(Bin { up_to: (*size as f64 * scale).round() as u64, references, error });
        if counts.iter().all(|class| class[at].true_faults == class[at].cold_faults) {
            break;
        }
    }
    bins
}

/// The mean and its standard error.
pub(crate) fn mean(estimates: &[f64]) -> (f64, f64) {
    let n = estimates.len() as f64;
    let mean = estimates.iter().sum::<f64>() / n;
    if estimates.len() < 2 {
        return (mean, 0.0);
    }
    let variance = estimates.iter().map(|e| (e - mean) * (e - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_store::{Columns, Fidelity, Kind, Reference, Writer};

    fn reader(folder: &Path, pages: impl Iterator<Item = u64>) -> Reader {
        let path = folder.join("t.parquet");
        let mut writer = Writer::create(&path, Columns::default()).unwrap();
        let block: Block = pages.map(|page| Reference::new(page << PAGE_SHIFT, 1, Kind::Read)).collect();
        writer.write(&block).unwrap();
        writer.finish(Provenance::new("test", Fidelity::ExactReferences)).unwrap();
        Reader::open(&path).unwrap()
    }

    #[test]
    fn distances_are_those_of_the_definition() {
        let folder = tempfile::tempdir().unwrap();
        // By hand: 7 7 has distance 1, 8 after 7 8 7 has 2, the second round of 1..=5 has 5.
        let string = [7, 7, 8, 7, 8, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5];
        let reuse = sampled(reader(folder.path(), string.into_iter()), 1, 1).unwrap();
        let bins: Vec<_> = reuse.bins.iter().map(|bin| (bin.up_to, bin.references, bin.error)).collect();
        assert_eq!(bins, [(1, 1.0, 0.0), (2, 2.0, 0.0), (4, 0.0, 0.0), (8, 5.0, 0.0)]);
        assert_eq!((reuse.first, reuse.references), (7, 15));
    }

    #[test]
    fn a_sample_finds_the_distance_of_a_loop() {
        let folder = tempfile::tempdir().unwrap();
        // Every reference but the first 3000 has distance 3000. A sample of one page in 8 sees this within its own
        // spread.
        let reuse = sampled(reader(folder.path(), (0..15_000).map(|i| i % 3000)), 8, 4).unwrap();
        let near: f64 =
            reuse.bins.iter().filter(|bin| bin.up_to > 1024 && bin.up_to <= 4096).map(|bin| bin.references).sum();
        assert!((near - 12_000.0).abs() < 1_500.0, "{near}");
        let all: f64 = reuse.bins.iter().map(|bin| bin.references).sum::<f64>() + reuse.first as f64;
        assert!((all - 15_000.0).abs() < 1e-6);
        assert!(reuse.bins.iter().any(|bin| bin.error > 0.0));
    }
}
