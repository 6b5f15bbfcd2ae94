//! The file into which a live pager records a program: which page entered its window, when, and whether it was
//! written. The pager maps the file, so all records are there however the program ends. [`mod@crate::window`] reads
//! it.
//!
//! ```text
//!   4096 bytes: head, 8-byte words | records of 16 bytes: what, page, thread | value
//! ```
//! The words are in the byte order of the machine; the reader runs on the machine that wrote them.

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

/// Nanoseconds of processor time that a thread spends in the kernel for a fault: into it, asleep, awake again and out of it (measured: 3.0 to 3.5
/// for perl, lua and bzip2).
pub const FAULT_NS: f64 = 3_200.0;
/// Nanoseconds that a fault costs a thread outside the kernel, where it finds cold what was in the processor's caches (measured: 0.7 for
/// bzip2, 1.4 perl, 1.5 a Python program, 2.5 sort, 3.3 lua).
pub const COLD_NS: f64 = 1_500.0;
/// Nanoseconds that handler and thread wait for each other's processor in a fault.
pub const TURN_NS: f64 = 6_000.0;
/// Nanoseconds that the kernel takes for a page's first touch where nobody pages.
pub const FILL_NS: f64 = 400.0;

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
    /// Nanoseconds of processor time that the program's threads have had outside the kernel since the pager had started.
    User,
    /// And within the kernel.
    System,
    /// Nanoseconds in which a thread neither worked nor waited for a fault, while no other thread had one.
    Idle,
    /// Nanoseconds of processor time that handlers had had when that was last looked at.
    Handled,
    /// Nanoseconds that handlers and threads that faulted had waited for a processor by then, since other programs had it, or each other.
    Delayed,
    /// Pages that were compressed when they left the window, for a try.
    Tried,
    /// Of those, pages that became small enough to be kept in a compressed tier.
    Kept,
    /// Bytes of the latter, compressed.
    KeptBytes,
    /// Nanoseconds of all tries, both ways.
    PackNanos,
}

/// What the program's threads have worked for the program itself, in nanoseconds of processor time: all outside the kernel, and in the kernel
/// what entries do not explain.
pub fn worked(word: impl Fn(Word) -> u64) -> f64 {
    let [system, faults, fills] = [Word::System, Word::Faults, Word::ZeroFills].map(|of| word(of) as f64);
    let user = word(Word::User) as f64;
    (user - faults * COLD_NS).max(0.5 * user) + (system - faults * FAULT_NS).max((fills * FILL_NS).min(system))
}

/// Nanoseconds that handlers and threads have waited for a processor since other programs had it. Several threads also wait for each other, so
/// that nothing is known of them.
pub fn delayed(word: impl Fn(Word) -> u64) -> f64 {
    if word(Word::Threads) > 1 {
        return 0.0;
    }
    (word(Word::Delayed) as f64 - word(Word::Faults) as f64 * TURN_NS).max(0.0)
}

/// What of a recording's time, in nanoseconds, was the program's own: what it worked and what it waited for others than its pager and those
/// who had the processors. A thread alone is known well. With several, what they do beside each other is shortened as their work is by faults.
pub fn own(word: impl Fn(Word) -> u64) -> f64 {
    let of = |which| word(which) as f64;
    let (worked, elapsed) = (worked(&word), of(Word::Ended) - of(Word::Started));
    if word(Word::Threads) <= 1 {
        let idle = (of(Word::Idle) - delayed(&word)).max(0.0);
        return (worked + idle).min(elapsed);
    }
    let system = (of(Word::User) + of(Word::System) - worked).max(0.0);
    let handled = if word(Word::Handled) == 0 { of(Word::Handling) } else { of(Word::Handled).min(of(Word::Handling)) };
    let taken = handled + of(Word::Faults) * of(Word::Way) + system;
    match worked + taken {
        busy if busy > elapsed => elapsed * worked / busy,
        _ => (elapsed - taken - delayed(&word)).max(worked.min(elapsed - taken)),
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
        // 4 s outside the kernel, 0.15 of them for what 100,000 faults left cold; what these took in the kernel and no more; 1 s asleep, of
        // which others had the processor for half: 1.1 s of waiting, 0.6 of them for the handler.
        let given = [
            (Word::User, 4 * S),
            (Word::System, S / 1000 * 320),
            (Word::Faults, 100_000),
            (Word::Idle, S),
            (Word::Delayed, S / 10 * 11),
            (Word::Threads, 1),
        ];
        assert!((own(words(&given)) - 4.35e9).abs() < 1.0, "{}", own(words(&given)));
        // What faults do not explain is the program's.
        let given = [(Word::User, 4 * S), (Word::System, S / 100 * 232), (Word::Faults, 100_000), (Word::Threads, 1)];
        assert!((own(words(&given)) - 5.85e9).abs() < 1.0, "{}", own(words(&given)));
        // Nor does it have more than there was.
        assert_eq!(own(words(&[(Word::User, 11 * S), (Word::Threads, 1)])), 1e10);
    }

    #[test]
    fn threads_beside_each_other_are_slowed_as_their_work_is() {
        // Two threads, 6 s each, 2 s each for faults: 2 x 10 s would be 8 + 8 busy.
        let given = [(Word::User, 12 * S), (Word::Handling, 4 * S), (Word::Threads, 2)];
        assert_eq!(own(words(&given)), 7.5e9);
        // Threads that mostly wait: what was taken of them is taken off.
        let given = [(Word::User, S), (Word::Handling, 2 * S), (Word::Threads, 2)];
        assert_eq!(own(words(&given)), 8e9);
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
