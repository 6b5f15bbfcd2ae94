//! The file into which a live pager records a program: which page entered its window, when, and what became of it. Mapped by the pager, so
//! that all that was recorded is there however the program ends; read by [`mod@crate::window`].
//!
//! ```text
//!   4096 bytes: head, 8-byte words | records of 16 bytes: what, page, thread | value
//! ```
//! The words are in the machine's own order: who reads them runs on the machine that wrote them.

/// Bytes of the head.
pub const HEAD: usize = 4096;
/// Bytes of a record.
pub const RECORD: usize = 16;
/// Most records of a file: 6 Mi, 96 MiB. A recorder samples fewer pages before it comes to that.
pub const RECORDS: usize = 6 << 20;
/// First word of the head.
pub const MAGIC: u64 = u64::from_le_bytes(*b"coldent1");
/// Where the command line stands in the head: 256 bytes, arguments ended by zeros.
pub const COMMAND: core::ops::Range<usize> = 512..768;

/// What a fault takes a program, as a multiple of its handler's work and its way: the thread's own time in the kernel comes on top, and what it
/// finds cold afterwards (measured: 1.74 for a Python program, 1.69 gawk, 1.65 perl, 1.56 sort, 1.38 jq, each beside its plain run).
pub const TAKES: f64 = 1.6;

/// Neighbouring pages that are sampled together.
pub const CHUNK: u32 = 8;

/// Whether a page is sampled when one chunk in 2^`shift` is. What is sampled at one shift is sampled at each smaller one.
///
/// SHARDS (Waldspurger et al., FAST 2015) samples single blocks by a hash of each. Here the hash chooses one of two neighbouring chunks, then
/// one of two such pairs, and so on: each region of memory has its share of the sample, exactly, and no pattern of addresses meets another one.
pub fn is_sampled(page: u32, shift: u32) -> bool {
    let chunk = page / CHUNK;
    (0..shift.min(u32::BITS - 1)).all(|level| {
        let pair = chunk >> level >> 1;
        chunk >> level & 1 == hash(pair ^ level.wrapping_mul(0x9e37_79b9)) & 1
    })
}

/// The finalizer of MurmurHash3 (Appleby, public domain): 32 bits that are as good as random.
fn hash(number: u32) -> u32 {
    let mut h = number.wrapping_add(0x9e37_79b9);
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

/// Words of the head, by their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Word {
    /// [`MAGIC`].
    Magic = 0,
    /// Records written, also those that did not fit any more.
    Records,
    /// The process.
    Process,
    /// The process that forked it; 0: it was started.
    Parent,
    /// Address of page 0.
    Base,
    /// Pages of the managed address space.
    Pages,
    /// Nanoseconds of CLOCK_MONOTONIC at the start.
    Started,
    /// And at the last record, or at the end.
    Ended,
    /// 1: the program has come to its end.
    Whole,
    /// Entries that were recorded.
    Entries,
    /// First touches of all pages, sampled or not.
    ZeroFills,
    /// Faults of all kinds that were answered.
    Faults,
    /// Nanoseconds that handlers worked for them.
    Handling,
    /// Median nanoseconds that a fault took besides, in which neither handler nor thread worked.
    Way,
    /// Nanoseconds that the pager took to start.
    Starting,
    /// Most pages of managed memory in RAM.
    Managed,
    /// Most bytes in RAM that are not managed memory, without what the pager itself takes.
    NotPaged,
    /// Threads that faulted, at most 1024.
    Threads,
    /// Pages that left as they were when they left before, and others.
    Unchanged,
    /// Pages that left with other bytes.
    Changed,
}

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// A page entered the window.
    Entry {
        /// The page.
        page: u32,
        /// By a write.
        write: bool,
        /// The thread, by the kernel's number.
        thread: u32,
        /// Nanoseconds of processor time that the thread has had.
        time: u64,
    },
    /// A page left the window with other bytes than when it left the last time, or than zeros.
    Changed {
        /// The page.
        page: u32,
    },
    /// Pages were given back: their content is gone.
    Released {
        /// The first page.
        page: u32,
        /// How many.
        pages: u64,
    },
    /// From here on the window has so many sampled pages, and one chunk in 2^shift is sampled.
    Window {
        /// Sampled pages.
        pages: u32,
        /// Of the chunks one in 2^shift.
        shift: u32,
    },
}

const TAG: u32 = 3;
const PAGE: u32 = 29;

impl Record {
    /// As it is stored. The first word is never 0.
    pub fn encode(self) -> [u64; 2] {
        let word = |tag: u64, page: u32, thread: u32| tag | u64::from(page) << TAG | u64::from(thread) << (TAG + PAGE);
        match self {
            Record::Entry { page, write, thread, time } => [word(1 + u64::from(write), page, thread), time],
            Record::Changed { page } => [word(3, page, 0), 0],
            Record::Released { page, pages } => [word(4, page, 0), pages],
            Record::Window { pages, shift } => [word(5, 0, 0), u64::from(pages) | u64::from(shift) << 32],
        }
    }

    /// `None`: it was not written, since the program was killed just then, or is none.
    pub fn decode([first, value]: [u64; 2]) -> Option<Record> {
        let (page, thread) = ((first >> TAG) as u32 & ((1 << PAGE) - 1), (first >> (TAG + PAGE)) as u32);
        match first & ((1 << TAG) - 1) {
            tag @ 1..=2 => Some(Record::Entry { page, write: tag == 2, thread, time: value }),
            3 => Some(Record::Changed { page }),
            4 => Some(Record::Released { page, pages: value }),
            5 => Some(Record::Window { pages: value as u32, shift: (value >> 32) as u32 }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_nothing_is_zero() {
        let page = (1 << PAGE) - 1;
        for record in [
            Record::Entry { page, write: true, thread: (1 << 22) - 1, time: u64::MAX },
            Record::Entry { page: 0, write: false, thread: 0, time: 0 },
            Record::Changed { page: 7 },
            Record::Released { page, pages: 1 << 40 },
            Record::Window { pages: 64, shift: 9 },
        ] {
            let words = record.encode();
            assert_ne!(words[0], 0);
            assert_eq!(Record::decode(words), Some(record));
        }
        assert_eq!(Record::decode([0, 5]), None);
    }

    #[test]
    fn a_smaller_sample_is_part_of_a_larger_one_and_chunks_stay_whole() {
        let pages = 1 << 20;
        for shift in 0..6 {
            let sampled = (0..pages).filter(|page| is_sampled(*page, shift)).count();
            assert_eq!(sampled, pages as usize >> shift);
            for page in (0..pages).filter(|page| is_sampled(*page, shift + 1)) {
                assert!(is_sampled(page, shift));
            }
        }
        // Each region has its share: of any 2^shift chunks side by side that begin at a multiple of as many, one.
        for region in (0..pages).step_by(CHUNK as usize * 8) {
            let sampled = (region..region + CHUNK * 8).filter(|page| is_sampled(*page, 3)).count();
            assert_eq!(sampled, CHUNK as usize);
        }
        let alike = |page: u32| is_sampled(page, 3) == is_sampled(page / CHUNK * CHUNK, 3);
        assert!((0..pages).all(alike));
    }
}
