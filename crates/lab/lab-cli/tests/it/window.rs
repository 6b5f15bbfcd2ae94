//! Compares the bounds of a window trace with an exact recording of the same program.

use std::path::Path;
use std::process::Command;

use coldframe_store::{Block, Kind, Reader, Wanted};
use coldframe_toolbox::{have, GCC, QEMU};

/// Touches 600 pages at random, some more than others, and prints their address.
const TOUCH: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define PAGES 600
int main(void) {
    volatile char *block = malloc((PAGES + 1) * 4096);
    volatile char *page = (volatile char *)(((unsigned long)block + 4095) & ~4095ul);
    unsigned long seed = 12345, sum = 0;
    for (int i = 0; i < 40000; i++) {
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        unsigned long number = seed >> 33;
        unsigned long at = number % 8 ? number / 8 % (PAGES / 6) : number / 8 % PAGES;
        if (number & 64) page[at * 4096]++;
        else sum += page[at * 4096];
    }
    printf("%lx %lu\n", (unsigned long)page, sum);
}
"#;

const PAGES: u64 = 600;

/// The block's pages, in the order of the rows.
fn string(program: &Path, trace: &Path, options: &[&str]) -> Vec<u64> {
    // With a window, this machine's pager records; else QEMU.
    let name = if options.contains(&"--window") { "coldframe" } else { "coldframe-lab" };
    let mut record = Command::new(coldframe_toolbox::program(name));
    let output = record.args(["--quiet", "record"]).args(options).arg("-o").arg(trace).arg("--").arg(program).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let start = u64::from_str_radix(text.split(' ').next().unwrap(), 16).unwrap();
    let mut reader = Reader::open(trace).unwrap();
    let (mut block, mut pages) = (Block::new(), Vec::new());
    while reader.read(&mut block, Wanted::ALL).unwrap() > 0 {
        let rows = block.iter().filter(|row| row.kind != Kind::Fetch);
        let places = rows.filter_map(|row| row.address.checked_sub(start)).map(|offset| offset / 4096);
        pages.extend(places.filter(|page| *page < PAGES));
    }
    pages
}

/// Misses of exact LRU with this many pages: a list that is searched.
fn lru(string: &[u64], pages: usize) -> usize {
    let (mut list, mut misses) = (Vec::new(), 0);
    for page in string {
        match list.iter().position(|other| other == page) {
            Some(place) => _ = list.remove(place),
            None => {
                misses += 1;
                list.truncate(pages - 1);
            }
        }
        list.insert(0, *page);
    }
    misses
}

#[test]
fn misses_of_the_program_lie_between_those_of_its_window_trace() {
    if !have(&[GCC, QEMU]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("touch.c"), TOUCH).unwrap();
    assert!(Command::new("gcc").arg("-O0").arg("-o").arg(at("touch")).arg(at("touch.c")).status().unwrap().success());
    let exact = string(&at("touch"), &at("exact.parquet"), &["--level", "page", "--page", "4KiB"]);
    assert!(exact.len() > 30_000, "{} references", exact.len());
    const WINDOW: usize = 64;
    let rows = string(&at("touch"), &at("window.parquet"), &["--window", &WINDOW.to_string()]);
    assert!(rows.len() < exact.len());
    // The window also holds other pages of the heap, so for these pages it is never longer than WINDOW.
    for pages in [2 * WINDOW, 200, 300, 450, 600] {
        let (least, program, most) = (lru(&rows, pages + WINDOW), lru(&exact, pages), lru(&rows, pages - WINDOW));
        assert!(least <= program && program <= most, "{pages} pages: {least} <= {program} <= {most}");
    }
    assert!(lru(&rows, 2 * WINDOW) > 2 * PAGES as usize, "the string misses much: the bounds say something");
}
