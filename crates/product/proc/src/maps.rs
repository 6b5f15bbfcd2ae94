//! The mappings of a process: `/proc/PID/maps` (`proc_pid_maps(5)`), with counts in `/proc/PID/smaps`.

/// A mapping.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Mapping<'a> {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// As `rw-p`.
    pub rights: &'a str,
    /// Where it begins in its file.
    pub offset: u64,
    /// The file's device, as `fe:00`.
    pub device: &'a str,
    /// The file's number there; 0: it has no file.
    pub inode: u64,
    /// The file's path, or a name as `[heap]`; may be empty.
    pub name: &'a str,
    /// From `smaps` only.
    pub counts: Counts,
}

/// The counts of a mapping, in KiB as the kernel prints them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Counts {
    /// In RAM.
    pub rss: u64,
    /// In RAM, each page divided by the number of its users.
    pub pss: u64,
    /// Referenced since the bits were cleared.
    pub referenced: u64,
    /// In RAM, and of no file: also pages that a private mapping of a file has changed.
    pub anonymous: u64,
    /// In huge pages.
    pub huge: u64,
    /// In swap.
    pub swap: u64,
}

impl Counts {
    /// Of each page that it has in RAM, the part that is its own if all that use the page share it; 1: not counted.
    pub fn share(&self) -> f64 {
        if self.pss == 0 {
            1.0
        } else {
            self.pss as f64 / self.rss.max(1) as f64
        }
    }
}

/// All mappings in the text of `maps` or `smaps`.
pub fn mappings(text: &str) -> Vec<Mapping<'_>> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        // A field's name begins with a capital letter, an address never does.
        if !line.starts_with(|first: char| first.is_ascii_uppercase()) {
            mappings.extend(head(line));
            continue;
        }
        let (Some(mapping), Some((name, value))) = (mappings.last_mut(), line.split_once(':')) else { continue };
        let counts = &mut mapping.counts;
        let place = match name {
            "Rss" => &mut counts.rss,
            "Pss" => &mut counts.pss,
            "Referenced" => &mut counts.referenced,
            "Anonymous" => &mut counts.anonymous,
            "AnonHugePages" => &mut counts.huge,
            "Swap" => &mut counts.swap,
            _ => continue,
        };
        *place = value.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    }
    mappings
}

/// `7f2c4000-7f2c8000 rw-p 00000000 00:00 0    [name]`. A name may have spaces.
fn head(line: &str) -> Option<Mapping<'_>> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let hex = |word| u64::from_str_radix(word, 16).ok();
    let (start, end, rights, offset) = (hex(start)?, hex(end)?, words.next()?, hex(words.next()?)?);
    let (device, inode) = (words.next()?, words.next()?.parse().ok()?);
    let name = words.next().unwrap_or("").trim();
    Some(Mapping { start, end, rights, offset, device, inode, name, ..Mapping::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_a_range_rights_a_name_and_the_counts_of_smaps() {
        let text = "\
00400000-004a0000 r-xp 00001000 fe:00 1234                               /usr/bin/a program
Size:                640 kB
Rss:                 400 kB
VmFlags: rd ex mr mw me
01c00000-01c80000 rw-p 00000000 00:00 0                                  [heap]
Rss:                 480 kB
Pss:                 240 kB
Pss_Dirty:           250 kB
Referenced:           12 kB
Anonymous:            60 kB
AnonHugePages:         4 kB
Swap:                  8 kB
SwapPss:               9 kB
7f00-7f01 rw-p 00000000 00:00 0
";
        let all = mappings(text);
        let [file, heap, unnamed] = all[..] else { panic!("{all:?}") };
        assert_eq!((file.start, file.end, file.rights), (0x40_0000, 0x4a_0000, "r-xp"));
        assert_eq!((file.offset, file.device, file.inode), (0x1000, "fe:00", 1234));
        assert_eq!((file.name, file.counts.rss), ("/usr/bin/a program", 400));
        let counts = Counts { rss: 480, pss: 240, referenced: 12, anonymous: 60, huge: 4, swap: 8 };
        assert_eq!((heap.name, heap.counts), ("[heap]", counts));
        assert_eq!((unnamed.start, unnamed.name, unnamed.counts.rss), (0x7f00, "", 0));
    }

    #[test]
    fn what_is_no_list_of_mappings_has_none() {
        assert_eq!(mappings(""), []);
        assert_eq!(mappings("Rss: 5 kB\nnonsense\n12-x\n"), []);
    }
}
