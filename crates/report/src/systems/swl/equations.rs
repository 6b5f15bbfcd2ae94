//! Equations 1 to 3 of section 3.1. `other` is PreProcess + TransHostMem + UpdateMMU + PostProcess.

use coldframe_core::Ps;

/// Equation 1: t(SeqHandler).
pub fn seq_handler(other: Ps, get_freeframe: Ps, load_stopover: Ps) -> Ps {
    other + get_freeframe + load_stopover
}

/// Equation 2: t(ParHandler).
pub fn par_handler(other: Ps, get_freeframe: Ps, load_stopover: Ps) -> Ps {
    other + load_stopover.max(get_freeframe)
}

/// Equation 3: t(ParEffect), the gain of the parallel handler.
pub fn par_effect(get_freeframe: Ps, load_stopover: Ps) -> Ps {
    load_stopover.min(get_freeframe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_equation_is_the_difference_of_the_first_two() {
        for (other, search, load) in [(57, 9, 21), (57, 30, 21), (0, 0, 5), (3, 7, 7)] {
            let (other, search, load) = (Ps(other), Ps(search), Ps(load));
            let gain = seq_handler(other, search, load) - par_handler(other, search, load);
            assert_eq!(gain, par_effect(search, load));
        }
    }
}
