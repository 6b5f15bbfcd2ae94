//! Texts of the kernel's files, and the numbers in them.

use std::path::Path;

/// The text of a file, without space around it; empty if it cannot be read.
pub fn text(path: &Path) -> String {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_string()).unwrap_or_default()
}

/// The number behind a name in a text of lines `NAME NUMBER`, or its bytes in one of lines `NAME: NUMBER kB`.
pub fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        let rest = rest.strip_prefix(':').or(rest.strip_prefix(' '))?.trim();
        match rest.strip_suffix(" kB") {
            Some(kib) => kib.parse::<u64>().ok().map(|kib| kib * 1024),
            None => rest.parse().ok(),
        }
    })
}

/// The entries of a folder that are numbers.
pub(crate) fn numbers_in(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counters_or_bytes_and_their_names_are_whole() {
        assert_eq!(field("pswpin 7\npswpout 9\n", "pswpout"), Some(9));
        assert_eq!(field("MemTotal:   10 kB\nVmRSS:\t   2 kB\n", "VmRSS"), Some(2048));
        assert_eq!(field("Threads:\t3\n", "Threads"), Some(3));
        assert_eq!(field("pswpout 9\n", "pswp"), None);
        assert_eq!(field("frozen x\n", "frozen"), None);
    }
}
