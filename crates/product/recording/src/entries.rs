//! The file into which a live pager records a program: which page entered its window, when, and whether it was written.
//! The pager maps the file, so all records are in the file however the program ends. `coldframe-store` reads it.
//!
//! ```text
//!   4096 bytes: head, 8-byte words | records of 16 bytes: what, page, thread | value
//! ```
//! The words are in the byte order of the machine; the reader runs on the machine that wrote them.

/// Bytes of the head.
pub const HEAD: usize = 4096;
/// Bytes of a record.
pub const RECORD: usize = 16;
/// Bytes of the whole file.
pub const LEN: usize = HEAD + RECORDS * RECORD;
/// The most records of a file: 6 Mi, 96 MiB. A recorder samples fewer pages before it reaches this.
pub const RECORDS: usize = 6 << 20;
/// First word of the head.
pub const MAGIC: u64 = u64::from_le_bytes(*b"coldent4");
/// The command line's place in the head: 256 bytes, arguments ended by zeros.
pub const COMMAND: core::ops::Range<usize> = 512..768;

/// The processor time that faults take from their threads, entering, sleeping, waking up and cold caches, as a part of
/// the handlers' for them. By eye, for six programs against runs without a pager: between 0.26 and 0.85 on two hosts.
pub const PART: f64 = 0.62;
/// Nanoseconds of the kernel for a page's first touch without a pager.
pub const FILL_NS: f64 = 400.0;

/// Neighbouring pages that are sampled together.
pub const CHUNK: u32 = 8;

/// Whether a page is sampled if one chunk in 2^`shift` is. A page that is sampled at one shift is sampled at each
/// smaller one.
///
/// SHARDS (Waldspurger et al., FAST 2015) samples single blocks by a hash of each. Here the hash chooses one of two
/// neighbouring chunks, then one of two such pairs, and so on. So each region of memory has exactly its share of the
/// sample, and the sample avoids patterns of addresses.
pub fn is_sampled(page: u32, shift: u32) -> bool {
    let chunk = page / CHUNK;
    (0..shift.min(u32::BITS - 1)).all(|level| {
        let pair = chunk >> level >> 1;
        chunk >> level & 1 == hash(pair ^ level.wrapping_mul(0x9e37_79b9)) & 1
    })
}

/// The finalizer of MurmurHash3 (Appleby, public domain): 32 bits that are as good as random, and others for each
/// number.
pub fn hash(number: u32) -> u32 {
    let mut h = number.wrapping_add(0x9e37_79b9);
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

/// Words of the head, by their index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Word {
    /// [`MAGIC`].
    Magic = 0,
    /// Records written, including those that did not fit any more.
    Records,
    /// The process.
    Process,
    /// The process that forked it; 0: it was started by another program.
    Parent,
    /// Address of page 0.
    Base,
    /// Pages of the managed address space.
    Pages,
    /// Nanoseconds of CLOCK_MONOTONIC at the start.
    Started,
    /// Nanoseconds of CLOCK_MONOTONIC at the last record, or at the end.
    Ended,
    /// 1: the program has ended by itself.
    Whole,
    /// Entries that were recorded.
    Entries,
    /// First touches of all pages, sampled or not.
    ZeroFills,
    /// Faults of all kinds that were answered.
    Faults,
    /// Nanoseconds of work of the handlers for these faults.
    Handling,
    /// Nanoseconds in which threads neither worked nor were served between two faults, for as long as a way to the
    /// handler and back may take.
    Ways,
    /// Nanoseconds until the pager had started.
    Starting,
    /// Most pages of managed memory in RAM.
    Managed,
    /// Most bytes in RAM that are not managed memory, without the pager's own memory.
    NotPaged,
    /// Threads that faulted, at most 1024.
    Threads,
    /// Nanoseconds of processor time of the program's threads since the pager started.
    Program,
    /// Nanoseconds of processor time of the handlers at the last check.
    Handled,
    /// Records in the file of the process that forked this one, at the fork.
    Inherited,
    /// The address at which the process has this file mapped.
    Place,
    /// Nanoseconds of CLOCK_MONOTONIC when the program that started it all saw the process last; 0: it did not.
    Gone,
}

/// The threads' work for the program itself, in nanoseconds of processor time: all but what faults took, and first
/// touches without a pager.
pub fn worked(word: impl Fn(Word) -> u64) -> f64 {
    let of = |which| word(which) as f64;
    let program = of(Word::Program);
    ((program - PART * of(Word::Handled)).max(0.0) + FILL_NS * of(Word::ZeroFills)).min(program)
}

/// The program's own part of a recording's time, about, in nanoseconds: its work, and the time in which it neither
/// worked nor waited for a fault; threads that work side by side are slowed as their work is.
pub fn own(word: impl Fn(Word) -> u64) -> f64 {
    let of = |which| word(which) as f64;
    let (worked, elapsed) = (worked(&word), of(Word::Ended) - of(Word::Started));
    let busy = of(Word::Program) + of(Word::Handling) + of(Word::Ways);
    if busy > elapsed {
        elapsed * worked / busy
    } else {
        worked + elapsed - busy
    }
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
    /// A page left the window with other bytes than when it last left, or than zeros.
    Changed {
        /// The page.
        page: u32,
    },
    /// Pages were unmapped: their content is gone.
    Released {
        /// The first page.
        page: u32,
        /// How many.
        pages: u64,
    },
    /// From here on the window has this many sampled pages, and one chunk in 2^shift is sampled.
    Window {
        /// Sampled pages.
        pages: u32,
        /// Of the chunks one in 2^shift.
        shift: u32,
    },
    /// Memory was mapped or allocated.
    Mapping {
        /// The first page.
        page: u32,
        /// How many.
        pages: u32,
        /// The address in the program or a library to which the call returns.
        caller: u64,
    },
    /// The time.
    Clock {
        /// Nanoseconds of CLOCK_MONOTONIC.
        time: u64,
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
            Record::Clock { time } => [word(6, 0, 0), time],
            Record::Mapping { page, pages, caller } => [word(7, page, pages), caller],
        }
    }

    /// `None`: it was not written, since the program was killed just then, or it is not a record.
    pub fn decode([first, value]: [u64; 2]) -> Option<Record> {
        let (page, thread) = ((first >> TAG) as u32 & ((1 << PAGE) - 1), (first >> (TAG + PAGE)) as u32);
        match first & ((1 << TAG) - 1) {
            tag @ 1..=2 => Some(Record::Entry { page, write: tag == 2, thread, time: value }),
            3 => Some(Record::Changed { page }),
            4 => Some(Record::Released { page, pages: value }),
            5 => Some(Record::Window { pages: value as u32, shift: (value >> 32) as u32 }),
            6 => Some(Record::Clock { time: value }),
            7 => Some(Record::Mapping { page, pages: thread, caller: value }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a recording of 10 s.
    fn words(given: &[(Word, u64)]) -> impl Fn(Word) -> u64 + '_ {
        move |word| {
            given
                .iter()
                .find(|(known, _)| *known == word)
                .map_or(if word == Word::Ended { 10_000_000_000 } else { 0 }, |(_, n)| *n)
        }
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_program_has_had_what_its_faults_did_not_take() {
        // 4 s of work, of which faults took 0.62; 1 s in handlers and 0.6 s on the way to them, and 4.4 s of waiting.
        let one = [(Word::Program, 4 * S), (Word::Handled, S), (Word::Handling, S), (Word::Ways, S / 10 * 6)];
        assert!((own(words(&one)) - 7.78e9).abs() < 1.0, "{}", own(words(&one)));
        // Two threads side by side: 12 s of work, of which faults took 1.24, and 2.8 s for faults.
        let two = [(Word::Program, 12 * S), (Word::Handled, 2 * S), (Word::Handling, 2 * S), (Word::Ways, S / 10 * 8)];
        assert!((own(words(&two)) - 1e10 * 10.76 / 14.8).abs() < 1.0, "{}", own(words(&two)));
        // First touches take what they take without a pager.
        let none = [(Word::Program, S), (Word::Handled, 2 * S), (Word::ZeroFills, 1_000_000)];
        assert_eq!(worked(words(&none)), 4e8);
    }

    #[test]
    fn what_is_encoded_is_decoded_and_nothing_is_zero() {
        let page = (1 << PAGE) - 1;
        for record in [
            Record::Entry { page, write: true, thread: (1 << 22) - 1, time: u64::MAX },
            Record::Entry { page: 0, write: false, thread: 0, time: 0 },
            Record::Changed { page: 7 },
            Record::Released { page, pages: 1 << 40 },
            Record::Window { pages: 64, shift: 9 },
            Record::Clock { time: u64::MAX },
            Record::Mapping { page, pages: u32::MAX, caller: u64::MAX },
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
        // Each region has its share: of any 2^shift neighbouring chunks that begin at a multiple of 2^shift, one.
        for region in (0..pages).step_by(CHUNK as usize * 8) {
            let sampled = (region..region + CHUNK * 8).filter(|page| is_sampled(*page, 3)).count();
            assert_eq!(sampled, CHUNK as usize);
        }
        let alike = |page: u32| is_sampled(page, 3) == is_sampled(page / CHUNK * CHUNK, 3);
        assert!((0..pages).all(alike));
    }
}
