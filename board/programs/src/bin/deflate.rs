//! A compressor: deflates a text at several levels and inflates it again. The text and the code's tables are read-only
//! data.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_slice_iter_to_slice;
use programs::write;

programs::program!(run);

/// The licence: 11 KiB of English.
static TEXT: &[u8] = include_bytes!("../../../../LICENSE");

fn run() {
    let packed = compress_to_vec(TEXT, 6);
    write(&packed);
    let mut unpacked = alloc::vec![0; TEXT.len()];
    let length = decompress_slice_iter_to_slice(&mut unpacked, core::iter::once(&packed[..]), false, false);
    let same = length == Ok(TEXT.len()) && unpacked == TEXT;
    write(if same { b"same\n" } else { b"different\n" });
}
