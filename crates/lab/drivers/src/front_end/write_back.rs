//! A write-back cache that allocates on writes, for the front end `l1`.
//!
//! A [`Cache`] whose ways also store the whole line number and a dirty bit, because a dirty line is written back when
//! another line replaces it.

use super::cache::Cache;

/// A line of an address space: (space, line number).
pub type Line = (u32, u64);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheOutcome {
    Hit,
    /// The line has to be read; the dirty line that it replaces, if any, has to be written.
    Miss {
        written_back: Option<Line>,
    },
}

pub struct WriteBackCache {
    tags: Cache,
    /// The line in each way, and whether it is dirty.
    ways: Box<[(Line, bool)]>,
}

impl WriteBackCache {
    /// As [`Cache::new`].
    pub fn new(sets: usize, ways: usize) -> WriteBackCache {
        WriteBackCache { tags: Cache::new(sets, ways), ways: vec![((0, 0), false); sets * ways].into_boxed_slice() }
    }

    /// Reads or writes within a line.
    #[inline]
    pub fn access(&mut self, line: Line, writing: bool) -> CacheOutcome {
        let (way, hit) = self.tags.place(line.0, line.1);
        let (held, dirty) = &mut self.ways[way];
        if hit {
            *dirty |= writing;
            return CacheOutcome::Hit;
        }
        let written_back = dirty.then_some(*held);
        (*held, *dirty) = (line, writing);
        CacheOutcome::Miss { written_back }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dirty_line_goes_back_when_another_takes_its_place_and_a_clean_one_does_not() {
        let mut cache = WriteBackCache::new(2, 2);
        let miss = |line| CacheOutcome::Miss { written_back: line };
        // Lines 0, 2, 4, 6 share set 0.
        assert_eq!(cache.access((0, 0), true), miss(None));
        assert_eq!(cache.access((0, 2), false), miss(None));
        assert_eq!(cache.access((0, 2), true), CacheOutcome::Hit);
        assert_eq!(cache.access((0, 4), false), miss(Some((0, 0))));
        assert_eq!(cache.access((0, 6), false), miss(Some((0, 2))), "written by a hit");
        assert_eq!(cache.access((0, 0), false), miss(None), "line 4 was only read");
        assert_eq!(cache.access((1, 0), false), miss(None), "another space's line 0");
    }
}
