//! A write-back cache that allocates on writes, for the front end `l1`.
//!
//! Like [`super::cache::Cache`], but a way stores its whole line number and a dirty bit, because a dirty line is
//! written back when another line replaces it.

/// A line of an address space: (space, line number).
pub type Line = (u32, u64);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Hit,
    /// The line has to be read; the dirty line that it replaces, if any, has to be written.
    Miss {
        written_back: Option<Line>,
    },
}

#[derive(Clone, Copy)]
struct Way {
    line: Line,
    dirty: bool,
    filled: bool,
}

pub struct WriteBackCache {
    ways: Box<[Way]>,
    /// The way of each set that is replaced next: round-robin, as in ARM926.
    pointer: Box<[u8]>,
    n: usize,
    sets_mask: u64,
}

impl WriteBackCache {
    /// `sets` must be a power of two; 1 <= `ways` <= 255.
    pub fn new(sets: usize, ways: usize) -> WriteBackCache {
        assert!(sets.is_power_of_two() && (1..=255).contains(&ways), "{sets} sets of {ways} ways");
        let empty = Way { line: (0, 0), dirty: false, filled: false };
        WriteBackCache {
            ways: vec![empty; sets * ways].into_boxed_slice(),
            pointer: vec![0; sets].into_boxed_slice(),
            n: ways,
            sets_mask: sets as u64 - 1,
        }
    }

    /// Reads or writes within a line.
    #[inline]
    pub fn access(&mut self, line: Line, writing: bool) -> Outcome {
        let set = (line.1 & self.sets_mask) as usize;
        let ways = &mut self.ways[set * self.n..][..self.n];
        if let Some(i) = ways.iter().position(|way| way.filled && way.line == line) {
            ways[i].dirty |= writing;
            return Outcome::Hit;
        }
        let pointer = &mut self.pointer[set];
        let way = &mut ways[*pointer as usize];
        let written_back = (way.filled && way.dirty).then_some(way.line);
        *way = Way { line, dirty: writing, filled: true };
        *pointer = (*pointer + 1) % self.n as u8;
        Outcome::Miss { written_back }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dirty_line_goes_back_when_another_takes_its_place_and_a_clean_one_does_not() {
        let mut cache = WriteBackCache::new(2, 2);
        let miss = |line| Outcome::Miss { written_back: line };
        // Lines 0, 2, 4, 6 share set 0.
        assert_eq!(cache.access((0, 0), true), miss(None));
        assert_eq!(cache.access((0, 2), false), miss(None));
        assert_eq!(cache.access((0, 2), true), Outcome::Hit);
        assert_eq!(cache.access((0, 4), false), miss(Some((0, 0))));
        assert_eq!(cache.access((0, 6), false), miss(Some((0, 2))), "written by a hit");
        assert_eq!(cache.access((0, 0), false), miss(None), "line 4 was only read");
        assert_eq!(cache.access((1, 0), false), miss(None), "another space's line 0");
    }
}
