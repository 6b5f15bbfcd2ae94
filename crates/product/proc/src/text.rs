//! Texts of the kernel's files, and the numbers in them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The text of a file, without space around it; empty if it cannot be read.
pub fn text(path: &Path) -> String {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_string()).unwrap_or_default()
}

/// A name that another user may have given to something, as it can be shown: a control character, which a terminal
/// may obey, is a `?`, as `ps` has it, and so is one that changes the direction of a line.
pub fn printable(name: &str) -> String {
    let turns = |c: char| matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    name.chars().map(|c| if c.is_control() || turns(c) { '?' } else { c }).collect()
}

/// A path as the kernel writes it in its tables (`seq_path` of fs/seq_file.c): white space and `\` as `\` and three
/// octal digits. Other bytes may be written so, too.
pub fn unescaped(text: &[u8]) -> Vec<u8> {
    let digit =
        |place: usize| text.get(place).filter(|byte| (b'0'..=b'7').contains(byte)).map(|byte| u32::from(byte - b'0'));
    let (mut bytes, mut place) = (Vec::with_capacity(text.len()), 0);
    while let Some(byte) = text.get(place) {
        let octal = || Some(digit(place + 1)? * 64 + digit(place + 2)? * 8 + digit(place + 3)?);
        let escaped = if *byte == b'\\' { octal().and_then(|value| u8::try_from(value).ok()) } else { None };
        bytes.push(escaped.unwrap_or(*byte));
        place += if escaped.is_some() { 4 } else { 1 };
    }
    bytes
}

/// The same path in one word, for a table of our own or the format of `printf`.
pub fn escaped(path: &Path) -> String {
    let word = |byte: &u8| match byte {
        b'\\' | b'%' | b'\'' | 0..=b' ' | 0x7f.. => format!("\\{byte:03o}"),
        byte => char::from(*byte).to_string(),
    };
    path.as_os_str().as_bytes().iter().map(word).collect()
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
    fn a_name_is_shown_without_what_a_terminal_obeys() {
        assert_eq!(printable("ev\x1b]0;x\x07il\n\u{9b}2J\u{202e}ä"), "ev?]0;x?il??2J?ä");
    }

    #[test]
    fn a_path_of_any_bytes_comes_back_from_its_word() {
        assert_eq!(unescaped(br"/a\011b\012\040\134c\9\77\777"), b"/a\tb\n \\c\\9\\77\\777");
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/a\tb\n \\'%\xff\xc3\xa4"));
        let word = escaped(path);
        assert!(word.bytes().all(|byte| byte.is_ascii_graphic()), "{word}");
        assert_eq!(unescaped(word.as_bytes()), path.as_os_str().as_bytes());
    }

    #[test]
    fn fields_are_counters_or_bytes_and_their_names_are_whole() {
        assert_eq!(field("pswpin 7\npswpout 9\n", "pswpout"), Some(9));
        assert_eq!(field("MemTotal:   10 kB\nVmRSS:\t   2 kB\n", "VmRSS"), Some(2048));
        assert_eq!(field("Threads:\t3\n", "Threads"), Some(3));
        assert_eq!(field("pswpout 9\n", "pswp"), None);
        assert_eq!(field("frozen x\n", "frozen"), None);
    }
}
