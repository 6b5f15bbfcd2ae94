//! The processors that threads run on, and may run on.

use super::{call, Sys};

/// On machines with more processors, the scheduler decides alone.
const MOST: usize = 1024;
const WORDS: usize = MOST / usize::BITS as usize;

/// A set of processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processors([usize; WORDS]);

impl Processors {
    /// A set of one.
    pub fn only(processor: usize) -> Processors {
        let mut words = [0; WORDS];
        words[processor / usize::BITS as usize % WORDS] = 1 << (processor % usize::BITS as usize);
        Processors(words)
    }

    /// The processors of a thread; 0: the calling one.
    pub fn of(thread: u32) -> Sys<Processors> {
        let mut words = [0usize; WORDS];
        let a = [thread as usize, size_of_val(&words), words.as_mut_ptr() as usize, 0, 0, 0];
        // SAFETY: the kernel writes at most this many bytes.
        unsafe { call(libc::SYS_sched_getaffinity, a) }.map(|_| Processors(words))
    }

    /// From now on the thread may run on these.
    pub fn set(&self, thread: u32) -> Sys<()> {
        let a = [thread as usize, size_of_val(&self.0), self.0.as_ptr() as usize, 0, 0, 0];
        // SAFETY: the kernel reads this many bytes.
        unsafe { call(libc::SYS_sched_setaffinity, a) }.map(drop)
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether it is one of them.
    pub fn has(&self, processor: usize) -> bool {
        self.0
            .get(processor / usize::BITS as usize)
            .is_some_and(|word| word >> (processor % usize::BITS as usize) & 1 != 0)
    }
}

/// Asks for short time slices of 100 us for the calling thread (sched_setattr(2); EEVDF respects it since Linux 6.12,
/// earlier kernels ignore it). A thread that it wakes then does not run before the calling thread sleeps.
pub fn ask_for_short_slices() {
    // size, policy, flags (u64), nice, priority, runtime, deadline, period.
    let words: [u32; 12] = [48, 0, 0, 0, 0, 0, 100_000, 0, 0, 0, 0, 0];
    // SAFETY: the kernel reads the number of bytes in the first word.
    let _ = unsafe { call(libc::SYS_sched_setattr, [0, words.as_ptr() as usize, 0, 0, 0, 0]) };
}

/// The processor that the calling thread runs on. None: the kernel does not report it.
pub fn here() -> Option<usize> {
    let mut processor = 0u32;
    // SAFETY: the kernel writes one number.
    unsafe { call(libc::SYS_getcpu, [&raw mut processor as usize, 0, 0, 0, 0, 0]) }.ok().map(|_| processor as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_it_is_made_to_be() {
        let all = Processors::of(0).unwrap();
        for processor in (0..MOST).filter(|i| all.has(*i)).take(4) {
            std::thread::spawn(move || {
                Processors::only(processor).set(0).unwrap();
                assert_eq!(Processors::of(0), Ok(Processors::only(processor)));
                assert_eq!(here(), Some(processor));
            })
            .join()
            .unwrap();
        }
        assert_eq!(Processors::of(0), Ok(all));
    }
}
