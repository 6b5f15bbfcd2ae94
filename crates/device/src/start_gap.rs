//! Start-gap wear levelling (Qureshi et al., *Enhancing Lifetime and Security of PCM-Based Main Memory with Start-Gap Wear Leveling*,
//! MICRO 2009, section 4): one spare line, the gap, wanders through the memory, and each line lies one place further when it has passed.
//!
//! ```text
//!  gap = 4        gap = 3        ...  gap = 0        start = 1, gap = 4
//!  A B C D .      A B C . D           . A B C D      D A B C .
//! ```
//!
//! [`StartGap::write`] for each write; the places of all lines follow from two registers. Every `psi`th write moves the gap, which costs one
//! write more. Without its optional randomizer: neighbours stay neighbours. When not to use it: where a log or an FTL already goes round.

/// The registers, and what has been written to each place.
#[derive(Clone, Debug)]
pub struct StartGap {
    start: usize,
    gap: usize,
    /// Writes after which the gap moves; `None`: never, and nothing is levelled.
    psi: Option<u32>,
    since: u32,
    /// Writes to each place, the gap's included.
    worn: Vec<u32>,
}

impl StartGap {
    /// A memory of so many lines.
    ///
    /// # Panics
    /// If there is no line, or the gap shall move after no write.
    pub fn new(lines: usize, psi: Option<u32>) -> StartGap {
        assert!(lines > 0 && psi != Some(0), "a memory without lines, or a gap that never rests");
        StartGap { start: 0, gap: lines, psi, since: 0, worn: vec![0; lines + 1] }
    }

    /// Lines it holds.
    pub fn lines(&self) -> usize {
        self.worn.len() - 1
    }

    /// Where the line lies now: section 4.2's `(line + start) mod lines`, one further at and behind the gap.
    pub fn place(&self, line: usize) -> usize {
        let place = (line + self.start) % self.lines();
        place + usize::from(place >= self.gap)
    }

    /// Writes to a line, and moves the gap if it is time.
    pub fn write(&mut self, line: usize) {
        let place = self.place(line);
        self.worn[place] += 1;
        self.since += 1;
        if Some(self.since) == self.psi {
            self.since = 0;
            self.move_gap();
        }
    }

    /// The line before the gap goes into it; from the first place the gap goes to the last, and all lines are one place further.
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

    /// Writes to each place, the moves' own included.
    pub fn worn(&self) -> &[u32] {
        &self.worn
    }
}

/// Writes to each place of a memory through which every line has gone round: the mean, and one in `psi` more for the moves. A memory that
/// wears out goes round often: PCM of 2^15 slots and 10^8 writes a line some 30 times, with the gap moved every 100 writes.
pub fn levelled(mean: f64, psi: u32) -> f64 {
    mean * (1.0 + 1.0 / f64::from(psi))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory itself, obviously right: what lies where, moved by hand.
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
