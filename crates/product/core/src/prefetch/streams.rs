//! Read-ahead of sequential streams. A fault right behind the last one, or right behind the pages read ahead for it,
//! continues a stream; each time the window doubles.
//!
//! ```text
//!   fault      p    p+1          p+4                p+8                           a window of 2, then 4, then 8 ...
//!   read ahead      p+2 p+3      p+5 p+6 p+7 p+8    ...
//! ```
//! The idea is Linux's (`mm/readahead.c`: the window starts small and doubles up to a bound). Several streams can be
//! active at the same time, for example one for each task or each array. A new stream replaces the one that was idle
//! longest. When not to use it: for random accesses it only costs a few compares, and for strides above one page it
//! sees no stream.

use core::ops::Range;

use crate::ids::PageId;

/// Streams that can be active at the same time.
const STREAMS: usize = 8;

/// The first window of a stream.
const WINDOW_MIN: u32 = 2;

#[derive(Clone, Copy, Default)]
struct Stream {
    /// The page at which a fault continues the stream.
    next: u32,
    /// Pages that were read ahead last.
    window: u32,
    /// When the stream was last continued.
    turn: u64,
}

/// The streams of a machine.
#[derive(Clone)]
pub struct Streams {
    streams: [Stream; STREAMS],
    turn: u64,
    window_max: u32,
}

impl Streams {
    /// Windows have at most `window_max` pages; 0: no read-ahead.
    pub fn new(window_max: u32) -> Streams {
        Streams { streams: [Stream::default(); STREAMS], turn: 0, window_max }
    }

    /// A true fault on `page`: the pages behind it to load with it. Empty if the fault continues no stream.
    pub fn fault(&mut self, page: PageId) -> Range<u32> {
        let behind = page.0.saturating_add(1);
        if self.window_max == 0 {
            return behind..behind;
        }
        self.turn += 1;
        let stream = self.streams.iter_mut().find(|s| s.next == page.0 && s.turn > 0);
        let window = stream.as_ref().map_or(0, |s| (2 * s.window).max(WINDOW_MIN).min(self.window_max));
        let stream = match stream {
            Some(stream) => stream,
            None => self.streams.iter_mut().min_by_key(|s| s.turn).expect("there are streams"),
        };
        let ahead = behind..behind.saturating_add(window);
        *stream = Stream { next: ahead.end, window, turn: self.turn };
        ahead
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn faults(streams: &mut Streams, pages: &[u32]) -> Vec<u32> {
        pages.iter().map(|page| streams.fault(PageId(*page)).len() as u32).collect()
    }

    #[test]
    fn the_window_of_a_stream_doubles_up_to_its_bound() {
        let mut streams = Streams::new(8);
        // Each fault is right behind the pages read ahead for the fault before.
        assert_eq!(faults(&mut streams, &[10, 11, 14, 19, 28, 37]), [0, 2, 4, 8, 8, 8]);
    }

    #[test]
    fn two_streams_go_on_side_by_side() {
        let mut streams = Streams::new(4);
        assert_eq!(faults(&mut streams, &[10, 90, 11, 91, 14, 94, 19, 99]), [0, 0, 2, 2, 4, 4, 4, 4]);
    }

    #[test]
    fn faults_at_random_read_nothing_ahead() {
        let mut streams = Streams::new(16);
        assert_eq!(faults(&mut streams, &[5, 900, 33, 12, 700, 4, 899]), [0; 7]);
    }

    #[test]
    fn the_stream_that_has_rested_longest_makes_room() {
        let mut streams = Streams::new(4);
        let mut pages: Vec<u32> = (0..=STREAMS as u32).map(|i| 100 * i).collect();
        pages.extend([101, 1]);
        // The second of nine streams is still followed, the first is forgotten.
        assert_eq!(faults(&mut streams, &pages)[STREAMS + 1..], [2, 0]);
    }

    #[test]
    fn a_bound_of_zero_is_no_read_ahead_and_the_last_page_has_nothing_behind_it() {
        assert_eq!(faults(&mut Streams::new(0), &[1, 2, 3]), [0; 3]);
        let mut streams = Streams::new(8);
        assert_eq!(faults(&mut streams, &[u32::MAX - 1, u32::MAX]), [0, 0]);
    }
}
