//! From a format's own clock to nanoseconds since the start of the recording.

/// Takes the first time it is given as the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    start: Option<u64>,
    before_first: u64,
}

impl Clock {
    /// Nanoseconds from the first call's `time` to this one; a time before the first one counts as 0, and is
    /// remembered.
    #[inline]
    pub(super) fn since_start(&mut self, time: u64) -> u64 {
        let start = *self.start.get_or_insert(time);
        self.before_first += u64::from(time < start);
        time.saturating_sub(start)
    }

    /// The first time, by the format's own clock.
    pub(super) fn start(&self) -> Option<u64> {
        self.start
    }

    /// A note on times before the first one, if there were any.
    pub(super) fn note(&self) -> Option<String> {
        let before_first = self.before_first;
        (before_first > 0)
            .then(|| format!("{before_first} rows bear a time before that of the first row; theirs is stored as 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_before_the_first_is_zero_and_is_told() {
        let mut clock = Clock::default();
        assert_eq!([50, 70, 40].map(|time| clock.since_start(time)), [0, 20, 0]);
        assert!(clock.note().unwrap().starts_with("1 rows"));
    }
}
