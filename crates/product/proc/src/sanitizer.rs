//! The sanitizer that an executable was built with. It has its own malloc and keeps notes of all memory at addresses of
//! its own, so such a program cannot be paged.
//!
//! Each of them is known by names in the tables of symbols and libraries: a function of its run time, which the program
//! calls or contains, or a library. Those for the dynamic linker are enough, but for GCC's `-static-libtsan`. Nothing
//! is allocated here, and little stack used: this also runs between a vfork and an exec.

/// Ends of names of functions and starts of names of libraries, each behind the end of the name before.
const KNOWN: [(&[u8], &str); 10] = [
    (b"\0__asan_init\0", "AddressSanitizer"),
    (b"\0libasan.so", "AddressSanitizer"),
    (b"\0__tsan_init\0", "ThreadSanitizer"),
    (b"\0libtsan.so", "ThreadSanitizer"),
    (b"\0__msan_init\0", "MemorySanitizer"),
    (b"\0__hwasan_init\0", "HWAddressSanitizer"),
    (b"\0libhwasan.so", "HWAddressSanitizer"),
    (b"\0__lsan_init\0", "LeakSanitizer"),
    (b"\0liblsan.so", "LeakSanitizer"),
    (b"\0__dfsan_init\0", "DataFlowSanitizer"),
];
/// The longest of them.
const LONGEST: usize = 16;
/// The most bytes of a table of names, entries of the dynamic section, headers, and tables: to read more takes longer
/// than a start may.
const NAMES_MAX: u64 = 16 << 20;
const ENTRIES_MAX: u64 = 1000;
const HEADERS_MAX: u64 = 1000;
const TABLES_MAX: usize = 4;

/// Which one; `None`: none, or not an ELF file of 64 bits. `read` reads bytes of the file at a place, and says how
/// many.
///
/// ELF-64 object file format, version 1.5: in a program header the type at 0, the offset at 8, the address at 16, the
/// length in the file at 32; in the dynamic section, pairs of a tag (5: the address of the names, 10: their length) and
/// a value; in a section header the type at 4 (3: names), the offset at 24, the length at 32.
pub fn sanitizer(read: impl Fn(u64, &mut [u8]) -> usize) -> Option<&'static str> {
    let number = |offset: u64, bytes: usize| {
        let mut word = [0; 8];
        (read(offset, &mut word[..bytes]) == bytes).then(|| u64::from_le_bytes(word))
    };
    if number(0, 6)? != u64::from_le_bytes(*b"\x7fELF\x02\x01\0\0") {
        return None;
    }
    of_linker(&read, number).or_else(|| {
        const NAMES: u64 = 3;
        let (table, size, count) = (number(40, 8)?, number(58, 2)?, number(60, 2)?.min(HEADERS_MAX));
        let field = |i: u64, field: u64, bytes: usize| number(table.checked_add(i * size + field)?, bytes);
        let names = (0..count).filter(|i| field(*i, 4, 4) == Some(NAMES));
        let places = names.filter_map(|i| field(i, 24, 8).zip(field(i, 32, 8))).filter(|(_, len)| *len < NAMES_MAX);
        places
            .filter_map(|(start, len)| Some(start..start.checked_add(len)?))
            .take(TABLES_MAX)
            .find_map(|names| search(names, &read))
    })
}

fn of_linker(
    read: &impl Fn(u64, &mut [u8]) -> usize,
    number: impl Fn(u64, usize) -> Option<u64>,
) -> Option<&'static str> {
    const LOAD: u64 = 1;
    const DYNAMIC: u64 = 2;
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?.min(HEADERS_MAX));
    let part = |i: u64| table.checked_add(i * size);
    let kind = |i: &u64| part(*i).and_then(|offset| number(offset, 4));
    let place = |i: u64, field: u64| part(i).and_then(|offset| number(offset.checked_add(field)?, 8));
    let dynamic = (0..count).find(|i| kind(i) == Some(DYNAMIC))?;
    let (start, len) = (place(dynamic, 8)?, place(dynamic, 32)?);
    let entries = || {
        (0..(len / 16).min(ENTRIES_MAX))
            .map_while(|i| Some((number(start.checked_add(i * 16)?, 8)?, start + i * 16 + 8)))
    };
    let value = |tag: u64| entries().take_while(|entry| entry.0 != 0).find(|entry| entry.0 == tag);
    let (names, len) = (number(value(5)?.1, 8)?, number(value(10)?.1, 8)?.min(NAMES_MAX));
    let inside = |i: &u64| Some(names.checked_sub(place(*i, 16)?)? < place(*i, 32)?);
    let loaded = (0..count).filter(|i| kind(i) == Some(LOAD)).find(|i| inside(i) == Some(true))?;
    let first = place(loaded, 8)?.checked_add(names - place(loaded, 16)?)?;
    search(first..first.checked_add(len)?, read)
}

fn search(names: std::ops::Range<u64>, read: &impl Fn(u64, &mut [u8]) -> usize) -> Option<&'static str> {
    let mut bytes = [0; 4096];
    let mut offset = names.start;
    while offset < names.end {
        let limit = (names.end - offset).min(bytes.len() as u64) as usize;
        let len = read(offset, &mut bytes[..limit]);
        let here = |i: usize| KNOWN.iter().find(|(name, _)| bytes[i..len].starts_with(name));
        if let Some((_, name)) = (0..len).filter(|i| bytes[*i] == 0).find_map(here) {
            return Some(name);
        }
        // A name may go on in the next part.
        offset += len.checked_sub(LONGEST).filter(|step| *step > 0)? as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executable whose names for the dynamic linker are these, and which has `other` among its data.
    fn found(names: &[u8], other: &[u8]) -> Option<&'static str> {
        found_in(names, other, 0)
    }

    /// The same; `other` is in a section of this type.
    fn found_in(names: &[u8], other: &[u8], kind: u64) -> Option<&'static str> {
        let mut file = vec![0; 0x1000];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |offset: usize, words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            file[offset..offset + bytes.len()].copy_from_slice(&bytes);
        };
        put(32, &[64]);
        put(40, &[0x300]);
        put(54, &[56 | 2 << 16 | 64 << 32 | 1 << 48]);
        put(0x300, &[kind << 32, 0, 0, (0x1000 + names.len()) as u64, other.len() as u64]);
        put(64, &[1, 0, 0x40_0000, 0, 0x10_0000]);
        put(120, &[2, 0x200, 0x40_0200, 0, 48]);
        put(0x200, &[5, 0x40_1000, 10, names.len() as u64, 0]);
        file.extend(names);
        file.extend(other);
        sanitizer(|offset, into| {
            let there = file.get(offset as usize..).unwrap_or_default();
            let len = there.len().min(into.len());
            into[..len].copy_from_slice(&there[..len]);
            len
        })
    }

    #[test]
    fn a_sanitizer_is_known_by_the_names_for_the_linker_and_not_by_other_bytes() {
        assert_eq!(found(b"\0malloc\0__tsan_init\0", b""), Some("ThreadSanitizer"));
        assert_eq!(found(b"\0libm.so.6\0libasan.so.8\0", b""), Some("AddressSanitizer"));
        assert_eq!(found(b"\0malloc\0my__tsan_init\0", b"\0__asan_init\0"), None);
        assert_eq!(found_in(b"\0", b"\0__tsan_init\0", 1), None);
        assert_eq!(found_in(b"\0", b"\0__tsan_init\0", 3), Some("ThreadSanitizer"));
        assert_eq!(sanitizer(|_, _| 0), None);
    }

    #[test]
    fn a_name_is_found_wherever_it_stands_among_many() {
        for before in 4070..4110 {
            let names = [&[0][..], &vec![b'x'; before], b"\0__asan_init\0", &vec![b'y'; 9000], b"\0"].concat();
            assert_eq!(found(&names, b""), Some("AddressSanitizer"), "{before}");
        }
    }

    #[test]
    fn files_of_any_bytes_are_read() {
        let random = std::cell::Cell::new(1u64);
        for _ in 0..300 {
            sanitizer(|offset, into| {
                for (byte, i) in into.iter_mut().zip(offset..) {
                    random.set(random.get().wrapping_mul(6364136223846793005).wrapping_add(i));
                    *byte = if i < 6 { b"\x7fELF\x02\x01"[i as usize] } else { (random.get() >> 60) as u8 };
                }
                into.len()
            });
        }
    }
}
