//! Sorts numbers in the data region, so that its pages are written again and again, and writes them all out.
#![cfg_attr(target_os = "none", no_std, no_main)]

use programs::{data, write};

programs::program!(run);

fn run() {
    let bytes = data();
    assert!(bytes.iter().all(|byte| *byte == 0), "the region starts as zeros");
    let mut random = 1u32;
    for number in bytes.chunks_exact_mut(4) {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        number.copy_from_slice(&random.to_le_bytes());
    }
    // Shell's sort with Knuth's gaps: strides over the whole region, then over less and less of it.
    let numbers = bytes.len() / 4;
    let mut gap = 1;
    while gap < numbers / 3 {
        gap = 3 * gap + 1;
    }
    while gap > 0 {
        sort_with(bytes, numbers, gap);
        gap /= 3;
    }
    write(bytes);
}

fn sort_with(bytes: &mut [u8], numbers: usize, gap: usize) {
    for i in gap..numbers {
        let number = get(bytes, i);
        let mut to = i;
        while to >= gap && get(bytes, to - gap) > number {
            let above = get(bytes, to - gap);
            put(bytes, to, above);
            to -= gap;
        }
        put(bytes, to, number);
    }
}

fn get(bytes: &[u8], i: usize) -> u32 {
    u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four bytes"))
}

fn put(bytes: &mut [u8], i: usize, number: u32) {
    bytes[4 * i..4 * i + 4].copy_from_slice(&number.to_le_bytes());
}
