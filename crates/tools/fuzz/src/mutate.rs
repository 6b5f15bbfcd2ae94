//! Mutations of an input, and one run with one of them.

use std::panic::{catch_unwind, AssertUnwindSafe};

use fastrand::Rng;

use crate::targets::Target;

const TELLING: [&[u8]; 16] = [
    b"0",
    b"-1",
    b"18446744073709551615",
    b"18446744073709551616",
    b"ffffffffffffffff",
    b"\n",
    b"\r\n",
    b"\0",
    b",",
    b"=",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"%",
    b"\x80",
    b"1e9",
    b" ",
];

/// A mutation of an input.
pub fn mutate(seed: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(0..=data.len());
        match rng.u8(0..6) {
            0 if at < data.len() => data[at] ^= 1 << rng.u8(0..8),
            1 if at < data.len() => data[at] = rng.u8(..),
            2 => data.truncate(at),
            3 => {
                let word = TELLING[rng.usize(0..TELLING.len())];
                let end = (at + rng.usize(0..=word.len())).min(data.len());
                data.splice(at..end, word.iter().copied());
            }
            4 => {
                let end = (at + rng.usize(0..40)).min(data.len());
                let piece = data[at..end].to_vec();
                let to = rng.usize(0..=data.len());
                data.splice(to..to, piece);
            }
            _ => drop(data.drain(at..(at + rng.usize(0..9)).min(data.len()))),
        }
    }
    data
}

/// Runs one mutation. The number is also the seed that replays it.
pub fn one(target: &Target, number: u64) -> Result<(), String> {
    let mut rng = Rng::with_seed(number);
    let seed = &target.seeds[rng.usize(0..target.seeds.len())];
    let data = mutate(seed, &mut rng);
    catch_unwind(AssertUnwindSafe(|| (target.read)(&data))).map_err(|_| {
        format!(
            "target {} panics on seed {number} ({} bytes); replay with: coldframe-fuzz 0 {} {number}",
            target.name,
            data.len(),
            target.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::targets;

    #[test]
    fn no_reader_panics_on_a_thousand_mutations() {
        for target in targets() {
            for number in 0..1000 {
                one(&target, number).unwrap();
            }
        }
    }
}
