//! Which memory was touched when, and which code or data it belongs to: from a recording, or from referenced bits.
//!
//! Bits say how much of a mapping was referenced since they were cleared, not which part of it. So a row of their map
//! is an equal part of its mapping, and its cells are the bytes that were referenced in a stretch. Rows of a
//! recording's map are pages.

use std::collections::BTreeMap;

use coldframe_proc::Mapping;
use coldframe_store::heat::{Heat, PAGE};
use coldframe_store::window::MANAGED;
use coldframe_store::Mapping as Made;

/// Rows and columns of the map of touched memory: a page with it stays far below its bound.
pub const MAP: (usize, usize) = (40, 120);
/// Stretches that are kept; more of them are joined, two by two.
const SPANS: usize = 2 * MAP.1;
const KIB: u64 = 1024;
/// What nobody is known to own.
const UNNAMED: &str = "unnamed memory";

/// Where and when memory was touched, and who owns it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Touched {
    /// Rows of memory, columns of time. From bits, a cell has bytes that were referenced.
    pub heat: Heat,
    /// The owner of each row.
    pub names: Vec<String>,
    /// All owners, the one with the most memory first.
    pub owners: Vec<MemoryOwner>,
    /// Whether it is from referenced bits: then columns are parts of the time, else of the touches.
    pub bits: bool,
    /// Seconds of the recording.
    pub seconds: f64,
}

/// Code or data that memory belongs to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MemoryOwner {
    /// A program, a library, a kind of memory.
    pub name: String,
    /// Bytes that were touched; of bits, in RAM.
    pub bytes: u64,
    /// Its part of all touches, in percent.
    pub touches_percent: f64,
}

impl Touched {
    /// Of a recording: each row belongs to who has made most of it. `sample`: the part of the pages that was recorded.
    pub fn recorded(mut heat: Heat, made: &[Made], seconds: f64, sample: f64) -> Touched {
        let whole = |n: u64| (n as f64 / sample) as u64;
        heat.working_set.iter_mut().for_each(|pages| *pages = whole(*pages));
        let owner = |address: u64| {
            let by = made.iter().find(|entry| entry.name != MANAGED && (entry.start..entry.end).contains(&address));
            by.map_or(UNNAMED, |entry| base(&entry.name)).to_string()
        };
        let pages = heat.counts.len().max(1);
        let mut rows = vec![BTreeMap::<String, u64>::new(); heat.rows];
        let mut owners = BTreeMap::<String, (u64, u64)>::new();
        for (i, (page, touches)) in heat.counts.iter().enumerate() {
            let name = owner(page * PAGE);
            *rows[i * heat.rows / pages].entry(name.clone()).or_default() += 1;
            let entry = owners.entry(name).or_default();
            *entry = (entry.0 + whole(PAGE), entry.1 + touches);
        }
        let most = |row: &BTreeMap<String, u64>| row.iter().max_by_key(|(_, n)| **n).map(|(name, _)| name.clone());
        let names = rows.iter().map(|row| most(row).unwrap_or_default()).collect();
        Touched { heat, names, owners: sorted(owners), bits: false, seconds }
    }
}

/// Owners by their bytes and touches.
fn sorted(owners: BTreeMap<String, (u64, u64)>) -> Vec<MemoryOwner> {
    let sum = owners.values().map(|(_, touches)| touches).sum::<u64>().max(1) as f64;
    let owner = |(name, (bytes, touches)): (String, (u64, u64))| MemoryOwner {
        name,
        bytes,
        touches_percent: 100.0 * touches as f64 / sum,
    };
    let mut owners: Vec<MemoryOwner> = owners.into_iter().map(owner).collect();
    owners.sort_by_key(|owner| std::cmp::Reverse(owner.bytes));
    owners
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Who owns each mapping of a process, in the order of addresses: its file; the file before it, for memory without a
/// name that follows a file's data; else its kind.
fn owners<'a>(mappings: &[Mapping<'a>]) -> Vec<String> {
    let mut last: (u64, &'a str) = (0, "");
    let owner = |mapping: &Mapping<'a>| {
        let Mapping { start, end, inode, name, .. } = *mapping;
        let file = if inode != 0 { base(name) } else { last.1 };
        let follows = start == last.0;
        last = (end, if inode != 0 || follows { file } else { "" });
        match name {
            _ if inode != 0 => file.to_string(),
            "[heap]" => "heap (malloc)".into(),
            name if name.starts_with("[stack") => "stack".into(),
            name if name.starts_with("[anon:") => name["[anon:".len()..].trim_end_matches(']').into(),
            name if name.starts_with('[') => "kernel's pages".into(),
            _ if follows && !last.1.is_empty() => format!("{} (data)", last.1),
            _ => "mmapped memory".into(),
        }
    };
    mappings.iter().map(owner).collect()
}

/// Bytes of a mapping in RAM and referenced, in a stretch.
type SeenBytes = BTreeMap<(u32, u64), (String, u64, u64)>;

/// One stretch: when it began and ended, and what was referenced.
#[derive(Clone, PartialEq, Debug, Default)]
struct Span {
    from: f64,
    to: f64,
    seen: SeenBytes,
}

/// What stretches show of each mapping.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct TouchLog {
    spans: Vec<Span>,
    now: Span,
    /// Whether a look has begun that has shown nothing yet.
    fresh: bool,
}

impl TouchLog {
    /// A look begins. Once it shows something, that is all of the stretch so far: bits are kept until they are cleared.
    pub fn begin(&mut self) {
        self.fresh = true;
    }

    /// A process at a look, at this time in seconds.
    pub fn process(&mut self, process: u32, mappings: &[Mapping<'_>], now: f64) {
        if std::mem::take(&mut self.fresh) {
            self.now.seen.clear();
        }
        self.now.to = now;
        for (mapping, name) in mappings.iter().zip(owners(mappings)) {
            if mapping.counts.rss > 0 {
                let bytes = (name, mapping.counts.rss * KIB, mapping.counts.referenced * KIB);
                self.now.seen.insert((process, mapping.start), bytes);
            }
        }
    }

    /// A stretch is over; the next one begins at this time.
    pub fn next(&mut self, now: f64) {
        let span = std::mem::replace(&mut self.now, Span { from: now, to: now, seen: SeenBytes::new() });
        if span.to > span.from && !span.seen.is_empty() {
            self.spans.push(span);
        }
        if self.spans.len() > SPANS {
            self.spans = self.spans.chunks(2).map(joined).collect();
        }
    }

    /// The map, of a program that was watched for so many seconds; `None`: nothing was seen.
    pub fn map(&self, seconds: f64) -> Option<Touched> {
        let mut largest = BTreeMap::<(u32, u64), (String, u64)>::new();
        let mut owners = BTreeMap::<String, (u64, u64)>::new();
        for span in &self.spans {
            for (key, (name, rss, _)) in &span.seen {
                let entry = largest.entry(*key).or_insert_with(|| (name.clone(), 0));
                entry.1 = entry.1.max(*rss);
            }
        }
        largest.values().for_each(|(name, rss)| owners.entry(name.clone()).or_default().0 += rss);
        let touches = self.spans.iter().flat_map(|span| span.seen.values());
        touches.for_each(|(name, _, referenced)| owners.entry(name.clone()).or_default().1 += referenced);
        let sum: u64 = largest.values().map(|(_, rss)| rss).sum();
        // Small mappings have no row.
        let parts = |rss: u64| (rss as f64 * MAP.0 as f64 / sum.max(1) as f64).round() as usize;
        let row = |(key, (name, rss)): (&(u32, u64), &(String, u64))| {
            let parts = parts(*rss);
            (0..parts)
                .map(|part| (*key, name.clone(), parts, key.1 + rss * part as u64 / parts as u64))
                .collect::<Vec<_>>()
        };
        let rows: Vec<_> = largest.iter().flat_map(row).collect();
        let columns = MAP.1;
        let mut heat = Heat { rows: rows.len(), columns, reads: vec![0; rows.len() * columns], ..Heat::default() };
        heat.writes = heat.reads.clone();
        heat.working_set = vec![0; columns];
        heat.addresses = rows.iter().map(|row| row.3).collect();
        let column = |time: f64| ((time / seconds.max(1e-9) * columns as f64) as usize).min(columns - 1);
        for span in &self.spans {
            let sum: u64 = span.seen.values().map(|(_, _, referenced)| referenced / PAGE).sum();
            for time in column(span.from)..=column(span.to) {
                heat.working_set[time] = heat.working_set[time].max(sum);
                for (i, (key, _, parts, _)) in rows.iter().enumerate() {
                    let bytes = span.seen.get(key).map_or(0, |(_, _, referenced)| referenced / *parts as u64);
                    let cell = &mut heat.reads[i * columns + time];
                    *cell = bytes.max(*cell);
                }
            }
        }
        let names = rows.into_iter().map(|row| row.1).collect();
        (heat.rows > 0).then(|| Touched { heat, names, owners: sorted(owners), bits: true, seconds })
    }
}

/// Stretches as one: the most that was seen of each mapping.
fn joined(spans: &[Span]) -> Span {
    let mut sum = Span { from: spans[0].from, to: spans[spans.len() - 1].to, seen: SeenBytes::new() };
    for (key, (name, rss, referenced)) in spans.iter().flat_map(|span| &span.seen) {
        let entry = sum.seen.entry(*key).or_insert_with(|| (name.clone(), 0, 0));
        (entry.1, entry.2) = (entry.1.max(*rss), entry.2.max(*referenced));
    }
    sum
}

#[cfg(test)]
mod tests {
    use coldframe_proc::mappings;

    use super::*;

    fn smaps(heap: u64, heap_referenced: u64) -> String {
        let mapping =
            |head: &str, rss: u64, referenced: u64| format!("{head}\nRss: {rss} kB\nReferenced: {referenced} kB\n");
        mapping("1000-2000 r-xp 00000000 fe:00 7 /usr/bin/job", 4, 4)
            + &mapping("2000-4000 rw-p 00000000 00:00 0", 8, 0)
            + &mapping("10000-90000 rw-p 00000000 00:00 0 [heap]", heap, heap_referenced)
            + &mapping("a0000-b0000 rw-p 00000000 00:00 0", 64, 64)
            + &mapping("c0000-d0000 rw-p 00000000 00:00 0 [stack]", 8, 8)
    }

    #[test]
    fn memory_belongs_to_its_file_to_the_file_before_it_or_to_its_kind() {
        let text = smaps(400, 400);
        let names = ["job", "job (data)", "heap (malloc)", "mmapped memory", "stack"];
        assert_eq!(owners(&mappings(&text)), names);
    }

    #[test]
    fn bits_make_a_map_of_mappings_over_time() {
        let mut log = TouchLog::default();
        for (referenced, from, look, to) in [(400, 0.0, 0.9, 1.0), (0, 1.0, 1.9, 2.0)] {
            assert_eq!(log.now.from, from);
            log.begin();
            log.process(7, &mappings(&smaps(400, referenced)), look);
            log.next(to);
        }
        let touched = log.map(2.0).unwrap();
        assert_eq!((touched.owners[0].name.as_str(), touched.owners[0].bytes), ("heap (malloc)", 400 << 10));
        let row = touched.names.iter().position(|name| name == "heap (malloc)").unwrap();
        let cells = &touched.heat.reads[row * MAP.1..(row + 1) * MAP.1];
        assert!(cells[10] > 0 && cells[100] == 0, "{cells:?}");
        assert_eq!(touched.heat.working_set[10] - touched.heat.working_set[100], 100);
        assert!(touched.heat.rows.abs_diff(MAP.0) <= 2 && touched.names.len() == touched.heat.rows);
        assert_eq!(TouchLog::default().map(1.0), None);
    }

    #[test]
    fn many_stretches_are_joined() {
        let mut log = TouchLog::default();
        for i in 0..2000 {
            log.begin();
            log.process(7, &mappings(&smaps(400, 400)), f64::from(i) + 0.5);
            log.next(f64::from(i) + 1.0);
        }
        assert!(log.spans.len() <= SPANS && log.map(2000.0).unwrap().heat.reads.iter().any(|bytes| *bytes > 0));
    }

    #[test]
    fn rows_of_a_recording_are_named_by_who_made_them() {
        let heat =
            Heat { rows: 2, columns: 1, counts: vec![(1, 3), (2, 3), (9, 2)], working_set: vec![3], ..Heat::default() };
        let made = Made { name: "/usr/lib/libz.so.1".into(), start: PAGE, end: 3 * PAGE, protection: String::new() };
        let touched = Touched::recorded(heat, &[made], 2.0, 0.5);
        assert_eq!(touched.names, ["libz.so.1", UNNAMED]);
        assert_eq!(touched.heat.working_set, [6]);
        assert_eq!(touched.owners[0], MemoryOwner { name: "libz.so.1".into(), bytes: 4 * PAGE, touches_percent: 75.0 });
    }
}
