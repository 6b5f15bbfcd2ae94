//! A worker that touches its memory again and again, like those of the paper's stress test (SAP section 5.2): a table
//! of read-only data, swept from end to end, with a sum for each sweep.
#![cfg_attr(target_os = "none", no_std, no_main)]

use programs::write;

programs::program!(run);

/// Words of the table: 10 KiB.
const WORDS: usize = 2560;
const SWEEPS: u32 = 150;

static TABLE: [u32; WORDS] = table();

/// Numbers of a linear congruential generator.
const fn table() -> [u32; WORDS] {
    let (mut words, mut random, mut i) = ([0; WORDS], 1u32, 0);
    while i < WORDS {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        words[i] = random;
        i += 1;
    }
    words
}

fn run() {
    let mut sum = 0u32;
    for sweep in 0..SWEEPS {
        for word in &TABLE {
            sum = (sum ^ word).rotate_left(7).wrapping_add(sweep);
        }
        write(&sum.to_le_bytes());
    }
}
