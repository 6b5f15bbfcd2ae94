//! Where the program's own work begins in a trace: the start, in which the loader maps and relocates libraries, touches
//! pages once, and a limit would be about these.

use std::path::Path;

use coldframe_experiment::error::ExperimentError;
use coldframe_sheet::quantity;
use coldframe_store::{Block, Kind, Mapping, Provenance, Reader, Reference, Wanted};

/// A row of a trace, by what is known of it.
enum Moment {
    /// The first fetch of this address.
    Fetch(u64),
    /// The first row from this time on, in nanoseconds of the trace's clock.
    Time(u64),
}

/// The first row after the start: `main`, or another function of the program, whose first fetch it is; `entry`, where
/// the loader hands over; an address, 0x...; or a time of the trace's clock.
///
/// # Errors
/// Nothing in the trace or in the program's file says where that is.
pub fn row(path: &Path, text: &str) -> Result<u64, ExperimentError> {
    let mut reader = Reader::open(path)?;
    let trace = reader.provenance().clone();
    let bad = |reason: String| ExperimentError::setting("after", format!("`{text}` {reason}"));
    let moment = match text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16)) {
        Some(address) => Moment::Fetch(address.map_err(|_| bad("is no address".into()))?),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => {
            let time = quantity::time(text).map_err(|e| ExperimentError::quantity("after", e))?;
            if !reader.columns().time {
                return Err(bad("is a time, and the trace has none; give main, entry or 0xADDRESS".into()));
            }
            Moment::Time(time.0 / 1000)
        }
        None => Moment::Fetch(symbol(&trace, text).ok_or_else(|| {
            bad("is not in the symbols of the program's files on this machine; give entry, 0xADDRESS or a time".into())
        })?),
    };
    let page = trace.page_size.unwrap_or(1).max(1);
    let fits = |row: &Reference| match moment {
        Moment::Time(time) => row.time >= time,
        Moment::Fetch(address) => {
            let (first, last) = (row.address / page, (row.address + u64::from(row.size.max(1) - 1)) / page);
            row.kind == Kind::Fetch && (first..=last).contains(&(address / page))
        }
    };
    let (mut block, mut before) = (Block::new(), 0);
    while reader.read(&mut block, Wanted::ALL)? > 0 {
        if let Some(row) = block.iter().position(|row| fits(&row)) {
            return Ok(before + row as u64);
        }
        before += block.len() as u64;
    }
    Err(bad("never comes in the trace; give entry, 0xADDRESS or a time".into()))
}

/// The address of a function in the recorded program, by the files that were mapped.
fn symbol(trace: &Provenance, name: &str) -> Option<u64> {
    let files = trace.mappings.iter().filter(|mapping| mapping.name.starts_with('/'));
    let mut files: Vec<&Mapping> = files.collect();
    // The program's own file comes first: a library may have a function of that name, too.
    let command = trace.command.as_deref().and_then(|words| words.split(' ').next()).unwrap_or_default();
    let is_program = |file: &Mapping| Path::new(&file.name).file_name() == Path::new(command).file_name();
    files.sort_by_key(|file| (!is_program(file), file.start));
    files.dedup_by(|next, first| next.name == first.name);
    files.iter().find_map(|file| {
        let elf = Elf(std::fs::read(&file.name).ok()?);
        let address = if name == "entry" { elf.entry() } else { elf.function(name) }?;
        Some(file.start + address.checked_sub(elf.lowest()?)?)
    })
}

/// A program's file, little-endian.
struct Elf(Vec<u8>);

impl Elf {
    fn word(&self, place: usize, bytes: usize) -> Option<u64> {
        let bytes = self.0.get(place..place.checked_add(bytes)?)?;
        Some(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }

    /// Whether its words have 64 bits; `None`: it is none.
    fn is_long(&self) -> Option<bool> {
        (self.0.starts_with(b"\x7fELF") && self.0.get(5) == Some(&1)).then(|| self.0[4] == 2)
    }

    fn entry(&self) -> Option<u64> {
        self.word(24, if self.is_long()? { 8 } else { 4 })
    }

    /// The parts of a table: place, size and number of its entries by the fields of the file's header.
    fn entries(&self, place: usize, size: usize) -> Option<impl Iterator<Item = usize>> {
        let long = if self.is_long()? { 8 } else { 4 };
        let (place, number) = (self.word(place, long)? as usize, self.word(size + 2, 2)? as usize);
        let size = self.word(size, 2)? as usize;
        Some((0..number).map(move |i| place + i * size))
    }

    /// The lowest page of its segments.
    fn lowest(&self) -> Option<u64> {
        let (header, address, long) = if self.is_long()? { ((32, 54), 16, 8) } else { ((28, 42), 8, 4) };
        let loads = self.entries(header.0, header.1)?.filter(|header| self.word(*header, 4) == Some(1));
        loads.filter_map(|header| self.word(header + address, long)).map(|address| address & !4095).min()
    }

    /// The address of a function, by its table of symbols, or that of dynamic ones.
    fn function(&self, name: &str) -> Option<u64> {
        let long = self.is_long()?;
        let (header, bytes) = if long { ((40, 58), 8) } else { ((32, 46), 4) };
        // Offset, size and link of a section; name, kind and value of a symbol.
        let ([offset, length, link], [kind, value], each) =
            if long { ([24, 32, 40], [4, 8], 24) } else { ([16, 20, 24], [12, 4], 16) };
        let sections: Vec<usize> = self.entries(header.0, header.1)?.collect();
        let tables = sections.iter().filter(|section| matches!(self.word(**section + 4, 4), Some(2 | 11)));
        for table in tables {
            let names = sections.get(self.word(table + link, 4)? as usize)?;
            let names = self.word(names + offset, bytes)? as usize;
            let from = self.word(table + offset, bytes)? as usize;
            let number = self.word(table + length, bytes)? as usize / each;
            let found = (0..number).map(|i| from + i * each).find(|symbol| {
                let text = self.word(*symbol, 4).and_then(|name| self.0.get(names + name as usize..));
                let is_named =
                    text.is_some_and(|text| text.starts_with(name.as_bytes()) && text.get(name.len()) == Some(&0));
                is_named && self.0.get(symbol + kind).is_some_and(|kind| kind & 15 == 2)
            });
            let address = found.and_then(|symbol| self.word(symbol + value, bytes)).filter(|address| *address > 0);
            if address.is_some() {
                // The lowest bit says that ARM's code is Thumb's.
                return address.map(|address| if long { address } else { address & !1 });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use coldframe_store::{Columns, Fidelity, Writer};

    use super::*;

    /// Fetches of 4 bytes, the first that of the loader, each 100 ns.
    fn trace(path: &Path, fetches: &[u64], mappings: Vec<Mapping>, time: bool) {
        let row = |(i, at): (usize, &u64)| Reference { time: i as u64 * 100, ..Reference::new(*at, 4, Kind::Fetch) };
        let mut writer = Writer::create(path, Columns { time, ..Columns::default() }).unwrap();
        writer.write(&fetches.iter().enumerate().map(row).collect()).unwrap();
        writer.finish(Provenance { mappings, ..Provenance::new("test", Fidelity::ExactReferences) }).unwrap();
    }

    #[test]
    fn the_start_ends_at_a_function_an_address_or_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let own = std::env::current_exe().unwrap();
        let elf = Elf(std::fs::read(&own).unwrap());
        let main = 0x50_0000_0000 + elf.function("main").unwrap() - elf.lowest().unwrap();
        let entry = 0x50_0000_0000 + elf.entry().unwrap() - elf.lowest().unwrap();
        assert!(main != entry);
        let name = own.display().to_string();
        let mapping =
            |start, name: &str| Mapping { name: name.into(), start, end: start + 4096, protection: "r-xp".into() };
        let mappings = vec![mapping(0x40_0000_0000, "/none/ld.so"), mapping(0x50_0000_0000, &name)];
        trace(&path, &[0x40_0000_0000, entry, 0x1000, main - 2, main], mappings, true);
        for (text, expected) in [("entry", 1), ("main", 3), ("0x1000", 2), ("150ns", 2), ("0s", 0)] {
            assert_eq!(row(&path, text).unwrap(), expected, "{text}");
        }
        for (text, word) in [("nobody", "symbols"), ("0x77", "never comes"), ("0xz", "address"), ("1s", "never")] {
            let error = row(&path, text).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("entry") | error.contains("address"), "{text}: {error}");
        }
        trace(&path, &[1], Vec::new(), false);
        assert!(row(&path, "1s").unwrap_err().to_string().contains("the trace has none"));
    }
}
