//! The file into which a live pager records a program: which page entered its window, when, and whether it was
//! written. The pager maps the file, so all records are in the file however the program ends. `coldframe-store`
//! reads it.
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
pub const MAGIC: u64 = u64::from_le_bytes(*b"coldent3");
/// The command line's place in the head: 256 bytes, arguments ended by zeros.
pub const COMMAND: core::ops::Range<usize> = 512..768;

/// The most processor time that a fault takes from its thread, entering, sleeping, waking up and cold caches, as a part
/// of the handlers' for it. Fitted by eye to a Python program, jq, wordfreq, sqlite3, sort and perl, against runs
/// without a pager on one host, where most lay between 0.45 and 0.85; on another they lay between 0.26 and 0.64.
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
    /// Pages that left the window with the same bytes as before.
    Unchanged,
    /// Pages that left with other bytes.
    Changed,
    /// Nanoseconds of processor time of the program's threads since the pager started.
    Program,
    /// Nanoseconds in which a thread neither worked nor waited for a fault, while no other thread had one.
    Idle,
    /// Nanoseconds of processor time of the handlers at the last check.
    Handled,
    /// Nanoseconds that handlers and faulting threads had waited for a processor by then, because other programs used
    /// it, or they waited for each other.
    Delayed,
    /// Pages compressed as a trial when they left the window.
    Tried,
    /// Of those, pages that take at most three quarters of a page.
    Compressible,
    /// Compressed bytes of the latter.
    CompressibleBytes,
    /// Nanoseconds of all trials, both directions.
    PackNanos,
    /// Pages of an equal sample of all that have left the window, each once.
    Alike,
    /// Bytes that they take compressed, as they were when they last left.
    AlikeBytes,
    /// Nanoseconds of processor time between two faults of a thread, in the median. Most faults are near each other,
    /// with hardly any work in between.
    Fault,
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
    let (program, most) = (of(Word::Program), PART * of(Word::Handled));
    let taken = match of(Word::Fault) {
        0.0 => most,
        fault => most.min(fault * of(Word::Faults)),
    };
    ((program - taken).max(0.0) + FILL_NS * of(Word::ZeroFills)).min(program)
}

/// Nanoseconds that handlers and threads have waited for a processor because of other programs: more than a way takes
/// anyway. Several threads also wait for each other, so for them this is not known.
pub fn delayed(word: impl Fn(Word) -> u64) -> f64 {
    if word(Word::Threads) > 1 {
        return 0.0;
    }
    word(Word::Delayed).saturating_sub(word(Word::Ways)) as f64
}

/// The program's own part of a recording's time, in nanoseconds: its work, and its waiting for others than its pager
/// and the programs that used the processors. Work that several threads do in parallel is reduced in the same
/// proportion as their work by faults.
pub fn own(word: impl Fn(Word) -> u64) -> f64 {
    let of = |which| word(which) as f64;
    let (worked, elapsed) = (worked(&word), of(Word::Ended) - of(Word::Started));
    if word(Word::Threads) <= 1 {
        return (worked + (of(Word::Idle) - delayed(&word)).max(0.0)).min(elapsed);
    }
    let taken = of(Word::Handled).min(of(Word::Handling)) + of(Word::Ways) + of(Word::Program) - worked;
    match worked + taken {
        busy if busy > elapsed => elapsed * worked / busy,
        _ => (elapsed - taken).max(worked.min(elapsed - taken)),
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
    fn a_thread_alone_has_had_what_it_worked_and_what_it_waited_for_others() {
        // 4 s, of which faults took 0.62: handlers worked for 1 s. 1 s asleep, and others used the processor for half
        // of it: 1.1 s of waiting, 0.6 of them on the way to the handler.
        let given = [
            (Word::Program, 4 * S),
            (Word::Handled, S),
            (Word::Idle, S),
            (Word::Delayed, S / 10 * 11),
            (Word::Ways, S / 10 * 6),
            (Word::Threads, 1),
        ];
        assert!((own(words(&given)) - 3.88e9).abs() < 1.0, "{}", own(words(&given)));
        // The program cannot have more time than there was, nor less than its pages' first touches.
        assert_eq!(own(words(&[(Word::Program, 11 * S), (Word::Threads, 1)])), 1e10);
        let given = [(Word::Program, S), (Word::Handled, 2 * S), (Word::ZeroFills, 1_000_000), (Word::Threads, 1)];
        assert_eq!(own(words(&given)), 4e8);
    }

    #[test]
    fn a_fault_takes_what_lies_between_two_of_them_and_not_more_than_a_part_of_the_handlers_time() {
        let of = |fault| {
            let given = [(Word::Program, 4 * S), (Word::Handled, S), (Word::Faults, 100_000), (Word::Fault, fault)];
            worked(words(&given))
        };
        assert_eq!([of(2_000), of(20_000), of(0)], [3.8e9, 3.38e9, 3.38e9]);
    }

    #[test]
    fn parallel_threads_are_slowed_as_their_work_is() {
        // Two threads in parallel, 12 s in all, of which faults took 1.24 s; in addition, these were 2 s in the handler
        // and 0.76 s on their way: 16 s - 1.24 s of busy threads in 10 s.
        let given =
            [(Word::Program, 12 * S), (Word::Handled, 2 * S), (Word::Handling, 2 * S), (Word::Ways, S / 100 * 76)];
        let given = [given.as_slice(), &[(Word::Threads, 2)]].concat();
        assert!((own(words(&given)) - 1e10 * 10.76 / 14.76).abs() < 1.0, "{}", own(words(&given)));
        // Threads that mostly wait: the time taken from them is subtracted.
        let given = [(Word::Program, 2 * S), (Word::Handled, S), (Word::Handling, 2 * S), (Word::Threads, 2)];
        assert!((own(words(&given)) - (9e9 - 0.62e9)).abs() < 1.0, "{}", own(words(&given)));
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
