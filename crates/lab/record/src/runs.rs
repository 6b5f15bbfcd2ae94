//! Page level: references collapsed to runs of one page.
//!
//! Instruction fetches and data accesses are two streams. In each stream, references are collapsed while the page
//! does not change. A data run that begins with reads ends at the first write, so a run's kind says whether the page
//! is dirty from its first reference on. A row stands where its run begins, and its count grows there. So runs of
//! both streams are in the exact program order of their first references. The positions of a run's later references
//! between other pages' references are lost. A run also ends with the rows that are passed on together.
//!
//! To a simulation only the step from one reference to two matters: the second may set a bit that was clear after the
//! load, and later ones change nothing. The whole count is kept: instructions and references are counted by it.

use coldframe_store::Kind;

/// Rows of one task, column by column; `size` is the page's.
#[derive(Default)]
pub struct Runs {
    pub address: Vec<u64>,
    pub size: Vec<u32>,
    pub kind: Vec<u32>,
    pub count: Vec<u32>,
}

/// A stream's last row: its place, page and kind.
#[derive(Clone, Copy)]
struct Open {
    place: usize,
    page: u64,
    kind: u32,
}

const WRITE: u32 = Kind::Write as u32;

/// Reduces references (address, size and kind) to pages of so many bytes, a power of two. `runs` is reused.
pub fn reduce(references: impl Iterator<Item = (u64, u32, u32)>, page_bytes: u64, runs: &mut Runs) {
    let shift = page_bytes.trailing_zeros();
    let Runs { address, size, kind, count } = runs;
    address.clear();
    kind.clear();
    count.clear();
    let mut streams: [Option<Open>; 2] = [None; 2];
    for (start, bytes, access) in references {
        let open = &mut streams[usize::from(access == Kind::Fetch as u32)];
        for page in start >> shift..=(start + u64::from(bytes) - 1) >> shift {
            match open {
                Some(run) if run.page == page && (access != WRITE || run.kind == WRITE) => count[run.place] += 1,
                _ => {
                    *open = Some(Open { place: address.len(), page, kind: access });
                    address.push(page << shift);
                    kind.push(access);
                    count.push(1);
                }
            }
        }
    }
    size.resize(address.len(), page_bytes as u32);
}
