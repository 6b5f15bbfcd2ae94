//! The sanitizer that an executable was built with. It has its own malloc and keeps notes of all memory at addresses of
//! its own, so such a program cannot be paged.
//!
//! Each of them is known by names for the dynamic linker: a function of its run time, which the program calls or
//! contains, or a library. Nothing is allocated here, and little stack used: this also runs between a vfork and an exec.

/// Ends of names of functions and starts of names of libraries, each behind the end of the name before.
const KNOWN: [(&[u8], &str); 9] = [
    (b"\0__asan_init\0", "AddressSanitizer"),
    (b"\0libasan.so", "AddressSanitizer"),
    (b"\0__tsan_init\0", "ThreadSanitizer"),
    (b"\0libtsan.so", "ThreadSanitizer"),
    (b"\0__msan_init\0", "MemorySanitizer"),
    (b"\0__hwasan_init\0", "HWAddressSanitizer"),
    (b"\0libhwasan.so", "HWAddressSanitizer"),
    (b"\0liblsan.so", "LeakSanitizer"),
    (b"\0__dfsan_init\0", "DataFlowSanitizer"),
];
/// The longest of them.
const LONGEST: usize = 16;

/// Which one; `None`: none, or not an ELF file of 64 bits. `read` reads bytes of the file at a place, and says how many.
///
/// ELF-64 object file format, version 1.5: in a program header the type at 0, the offset at 8, the address at 16, the
/// length in the file at 32; in the dynamic section, pairs of a tag (5: the address of the names, 10: their length) and
/// a value.
pub fn sanitizer(read: impl Fn(u64, &mut [u8]) -> usize) -> Option<&'static str> {
    const LOAD: u64 = 1;
    const DYNAMIC: u64 = 2;
    let number = |at: u64, bytes: usize| {
        let mut word = [0; 8];
        (read(at, &mut word[..bytes]) == bytes).then(|| u64::from_le_bytes(word))
    };
    if number(0, 6)? != u64::from_le_bytes(*b"\x7fELF\x02\x01\0\0") {
        return None;
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let part = |i: u64| table.checked_add(i * size);
    let kind = |i: &u64| part(*i).and_then(|at| number(at, 4));
    let place = |i: u64, field: u64| part(i).and_then(|at| number(at.checked_add(field)?, 8));
    let dynamic = (0..count).find(|i| kind(i) == Some(DYNAMIC))?;
    let (start, len) = (place(dynamic, 8)?, place(dynamic, 32)?);
    let entries = || (0..len / 16).map_while(|i| Some((number(start.checked_add(i * 16)?, 8)?, start + i * 16 + 8)));
    let value = |tag: u64| entries().take_while(|entry| entry.0 != 0).find(|entry| entry.0 == tag);
    let (names, len) = (number(value(5)?.1, 8)?, number(value(10)?.1, 8)?);
    let inside = |i: &u64| Some(names.checked_sub(place(*i, 16)?)? < place(*i, 32)?);
    let loaded = (0..count).filter(|i| kind(i) == Some(LOAD)).find(|i| inside(i) == Some(true))?;
    let first = place(loaded, 8)?.checked_add(names - place(loaded, 16)?)?;
    search(first..first.checked_add(len)?, read)
}

fn search(names: std::ops::Range<u64>, read: impl Fn(u64, &mut [u8]) -> usize) -> Option<&'static str> {
    let mut bytes = [0; 4096];
    let mut at = names.start;
    while at < names.end {
        let most = (names.end - at).min(bytes.len() as u64) as usize;
        let len = read(at, &mut bytes[..most]);
        let has = |name: &[u8]| bytes[..len].windows(name.len()).any(|part| part == name);
        if let Some((_, name)) = KNOWN.into_iter().find(|(name, _)| has(name)) {
            return Some(name);
        }
        // A name may go on in the next part.
        at += len.checked_sub(LONGEST).filter(|step| *step > 0)? as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executable whose names for the dynamic linker are these, and which has `other` among its data.
    fn found(names: &[u8], other: &[u8]) -> Option<&'static str> {
        let mut file = vec![0; 0x1000];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |at: usize, words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            file[at..at + bytes.len()].copy_from_slice(&bytes);
        };
        put(32, &[64]);
        put(54, &[56 | 2 << 16]);
        put(64, &[1, 0, 0x40_0000, 0, 0x10_0000]);
        put(120, &[2, 0x200, 0x40_0200, 0, 48]);
        put(0x200, &[5, 0x40_1000, 10, names.len() as u64, 0]);
        file.extend(names);
        file.extend(other);
        sanitizer(|at, into| {
            let there = file.get(at as usize..).unwrap_or_default();
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
        let mut random = 1u64;
        for _ in 0..20_000 {
            sanitizer(|at, into| {
                for (byte, i) in into.iter_mut().zip(at..) {
                    random = random.wrapping_mul(6364136223846793005).wrapping_add(i);
                    *byte = if i < 6 { b"\x7fELF\x02\x01"[i as usize] } else { (random >> 60) as u8 };
                }
                into.len()
            });
        }
    }
}
