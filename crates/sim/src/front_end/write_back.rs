//! A write-back cache that allocates on writes, for the front end `l1`.
//!
//! Like [`super::cache::Cache`], but a way stores its whole line number and a dirty bit, because a dirty line is
//! written back when another line replaces it.

/// A line of an address space: (space, line number).
pub type Line = (u32, u64);

/// The result of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The line was there.
    Hit,
    /// The line has to be read; the dirty line that it replaces, if any, has to be written.
    Miss {
        /// The dirty line.
        written_back: Option<Line>,
    },
}

/// Which line of a set a new one replaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Replacement {
    /// The one that has been there longest (ARM926's round-robin).
    #[default]
    RoundRobin,
    /// The one that was used longest ago.
    Lru,
}

impl Replacement {
    /// All of them.
    pub const ALL: [Replacement; 2] = [Replacement::RoundRobin, Replacement::Lru];

    /// As in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Replacement::RoundRobin => "round-robin",
            Replacement::Lru => "lru",
        }
    }
}

#[derive(Clone, Copy)]
struct Way {
    line: Line,
    dirty: bool,
    filled: bool,
}

/// The cache.
pub struct WriteBackCache {
    ways: Box<[Way]>,
    /// The way of each set that is replaced next. Under LRU it stays 0, because the ways are in the order of their use.
    pointer: Box<[u8]>,
    replacement: Replacement,
    n: usize,
    sets_mask: u64,
}

impl WriteBackCache {
    /// `sets` must be a power of two; 1 <= `ways` <= 255.
    pub fn new(sets: usize, ways: usize, replacement: Replacement) -> WriteBackCache {
        assert!(sets.is_power_of_two() && (1..=255).contains(&ways), "{sets} sets of {ways} ways");
        let empty = Way { line: (0, 0), dirty: false, filled: false };
        WriteBackCache {
            ways: vec![empty; sets * ways].into_boxed_slice(),
            pointer: vec![0; sets].into_boxed_slice(),
            replacement,
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
            if self.replacement == Replacement::Lru {
                ways[i..].rotate_left(1);
            }
            return Outcome::Hit;
        }
        let pointer = &mut self.pointer[set];
        let way = &mut ways[*pointer as usize];
        let written_back = (way.filled && way.dirty).then_some(way.line);
        *way = Way { line, dirty: writing, filled: true };
        match self.replacement {
            Replacement::RoundRobin => *pointer = (*pointer + 1) % self.n as u8,
            Replacement::Lru => ways.rotate_left(1),
        }
        Outcome::Miss { written_back }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dirty_line_goes_back_when_another_takes_its_place_and_a_clean_one_does_not() {
        let mut cache = WriteBackCache::new(2, 2, Replacement::RoundRobin);
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

    /// A list of the lines of each set, the last used last.
    fn naive_lru(sets: usize, ways: usize, accesses: &[(u64, bool)]) -> Vec<Outcome> {
        let mut of = vec![Vec::<(u64, bool)>::new(); sets];
        let one = |&(line, writing): &(u64, bool)| {
            let set = &mut of[line as usize % sets];
            let found = set.iter().position(|(l, _)| *l == line).map(|i| set.remove(i));
            set.push((line, writing || found.is_some_and(|(_, dirty)| dirty)));
            if found.is_some() {
                return Outcome::Hit;
            }
            let oldest = (set.len() > ways).then(|| set.remove(0));
            Outcome::Miss { written_back: oldest.and_then(|(line, dirty)| dirty.then_some((0, line))) }
        };
        accesses.iter().map(one).collect()
    }

    #[test]
    fn lru_replaces_the_line_used_longest_ago_as_a_list_does() {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for (sets, ways) in [(1, 1), (2, 2), (4, 3), (8, 4)] {
            let accesses: Vec<(u64, bool)> =
                (0..4000).map(|_| (random(3 * (sets * ways) as u64), random(3) == 0)).collect();
            let mut cache = WriteBackCache::new(sets, ways, Replacement::Lru);
            let ours: Vec<Outcome> = accesses.iter().map(|(line, w)| cache.access((0, *line), *w)).collect();
            assert_eq!(ours, naive_lru(sets, ways, &accesses), "{sets} sets of {ways} ways");
        }
    }
}
