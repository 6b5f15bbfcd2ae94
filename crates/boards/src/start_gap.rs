//! Start-gap wear levelling (Qureshi et al., *Enhancing Lifetime and Security of PCM-Based Main Memory with Start-Gap
//! Wear Leveling*, MICRO 2009, section 4). One spare line, the gap, moves through the memory. When it has passed a
//! line, that line is one place further.
//!
//! ```text
//!  gap = 4        gap = 3        ...  gap = 0        start = 1, gap = 4
//!  A B C D .      A B C . D           . A B C D      D A B C .
//! ```
//!
//! Call [`StartGap::write`] for each write; the places of all lines follow from two registers. Every `psi`th write
//! moves the gap, which costs one more write. The optional randomizer is left out: neighbours stay neighbours. When
//! not to use it: if a log or an FTL already spreads the writes.

/// The registers, and what has been written to each place.
#[derive(Clone, Debug)]
pub struct StartGap {
    start: usize,
    gap: usize,
    /// Writes after which the gap moves; `None`: the gap never moves, and wear is not levelled.
    psi: Option<u32>,
    since: u32,
    /// Writes to each place, including the gap's.
    worn: Vec<u32>,
}

impl StartGap {
    /// A memory of `lines` lines.
    ///
    /// # Panics
    /// If there is no line, or `psi` is 0.
    pub fn new(lines: usize, psi: Option<u32>) -> StartGap {
        assert!(lines > 0 && psi != Some(0), "a memory without lines, or a gap that never rests");
        StartGap { start: 0, gap: lines, psi, since: 0, worn: vec![0; lines + 1] }
    }

    pub fn lines(&self) -> usize {
        self.worn.len() - 1
    }

    /// The place of the line now: section 4.2's `(line + start) mod lines`, and one further if that is at or behind
    /// the gap.
    pub fn place(&self, line: usize) -> usize {
        let place = (line + self.start) % self.lines();
        place + usize::from(place >= self.gap)
    }

    /// Counts a write to a line, and moves the gap if it is time.
    pub fn write(&mut self, line: usize) {
        let place = self.place(line);
        self.worn[place] += 1;
        self.since += 1;
        if Some(self.since) == self.psi {
            self.since = 0;
            self.move_gap();
        }
    }

    /// The line before the gap moves into it. From the first place the gap goes to the last, and all lines are then
    /// one place further.
    fn move_gap(&mut self) {
        let lines = self.lines();
        self.worn[self.gap] += 1;
        if self.gap == 0 {
            self.gap = lines;
            self.start = (self.start + 1) % lines;
        } else {
            self.gap -= 1;
        }
    }

    /// Writes to each place, including those of the moves.
    pub fn worn(&self) -> &[u32] {
        &self.worn
    }
}

/// Writes to each place of a memory in which every line has been at every place: the mean, plus one in `psi` for the
/// moves. A memory that wears out goes round often: PCM of 2^15 slots and 10^8 writes a line goes round some 30 times
/// if the gap moves every 100 writes.
pub fn levelled(mean: f64, psi: u32) -> f64 {
    mean * (1.0 + 1.0 / f64::from(psi))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory itself, as simple as possible: the content of each place, moved by hand.
    struct Naive {
        places: Vec<Option<usize>>,
        worn: Vec<u32>,
    }

    impl Naive {
        fn move_gap(&mut self) {
            let gap = self.places.iter().position(Option::is_none).unwrap();
            let from = gap.checked_sub(1).unwrap_or(self.places.len() - 1);
            self.places.swap(gap, from);
            self.worn[gap] += 1;
        }
    }

    #[test]
    fn every_line_lies_where_a_memory_moved_by_hand_has_it() {
        for (lines, psi) in [(1, 1), (4, 1), (5, 3), (16, 7), (33, 100)] {
            let mut registers = StartGap::new(lines, Some(psi));
            let mut naive = Naive { places: (0..lines).map(Some).chain([None]).collect(), worn: vec![0; lines + 1] };
            for write in 0..lines * psi as usize * 40 {
                let line = write * write % lines;
                naive.worn[naive.places.iter().position(|p| *p == Some(line)).unwrap()] += 1;
                registers.write(line);
                if (write + 1) % psi as usize == 0 {
                    naive.move_gap();
                }
                let places: Vec<_> = (0..lines).map(|line| registers.place(line)).collect();
                let by_hand: Vec<_> =
                    (0..lines).map(|line| naive.places.iter().position(|p| *p == Some(line)).unwrap()).collect();
                assert_eq!(places, by_hand, "{lines} lines, psi {psi}, write {write}");
            }
            assert_eq!(registers.worn(), naive.worn);
        }
    }

    #[test]
    fn one_hot_line_wears_one_place_out_or_all_of_them_evenly() {
        let hammer = |psi| {
            let mut memory = StartGap::new(50, psi);
            (0..50 * 51 * 100).for_each(|_| memory.write(7));
            memory
        };
        let (off, on) = (hammer(None), hammer(Some(100)));
        assert_eq!(off.worn().iter().max(), Some(&255_000));
        // The gap goes 50 times round: each of 51 places has had the line for 50 x 100 writes, and the gap's moves.
        let (least, most) = (on.worn().iter().min().unwrap(), on.worn().iter().max().unwrap());
        assert!(*least >= 5_000 && *most <= 5_000 + 100 + 51, "{least} {most}");
        let moves: u32 = on.worn().iter().sum::<u32>() - 255_000;
        assert_eq!(moves, 2_550, "one write more in a hundred");
        let predicted = levelled(255_000.0 / 51.0, 100);
        assert!((f64::from(*most) / predicted - 1.0).abs() < 0.03, "{most} writes, {predicted} predicted");
    }
}
