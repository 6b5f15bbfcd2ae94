//! Backings: the place of a swap area that is rewritten in place, or that holds a log.

use coldframe_core::{Bytes, Ps};

use super::{AreaKind, System, ALL};

/// A page, and a slot of an area with a backing.
pub const PAGE: Bytes = Bytes(4096);

/// The place of a swap area.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backing {
    pub name: &'static str,
    /// Its sheet. `None`: the area is in the existing RAM, or there is no area and only the killer makes room.
    pub sheet: Option<&'static str>,
    /// Whether swapped pages are read in their slots.
    pub direct_read: bool,
    /// The software that each page passes, in addition to the copy itself.
    pub path: Path,
    /// A copy from it takes this many times as long as a copy from DRAM; a copy to it, that many.
    pub slowdown: (u64, u64),
    /// Pages are compressed and are in the existing RAM.
    pub compression: Option<Compression>,
}

impl Backing {
    /// Memory like DRAM, without a sheet.
    pub(super) const PLAIN: Backing = Backing {
        name: "none",
        sheet: None,
        direct_read: false,
        path: Path::Memory,
        slowdown: (1, 1),
        compression: None,
    };
}

/// The software that a page passes, in addition to its copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// A memory copy and nothing else.
    Memory,
    /// The block layer, down to a memory copy ("fake I/O path", DR.Swap section V.F).
    FakeIo,
    BlockLayer,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compression {
    /// The processor's time to compress a page of 4 KiB.
    pub compress: Ps,
    /// The processor's time to decompress it.
    pub decompress: Ps,
    /// The compression ratio, unless `swap.ratio` gives another.
    pub ratio: f64,
}

pub fn all() -> impl Iterator<Item = &'static Backing> {
    ALL.iter().flat_map(|system| match system.area {
        AreaKind::Backed(_, all) => all,
        AreaKind::Home | AreaKind::Log(_) => &[],
    })
}

pub fn find(name: &str) -> Option<&'static Backing> {
    all().find(|backing| backing.name == name)
}

/// The default backing: the system's, or that of the first system with a backing.
///
/// # Panics
/// If no system has one.
pub fn default_of(system: Option<&System>) -> &'static str {
    let of = |system: &System| match system.area {
        AreaKind::Backed(name, _) => Some(name),
        AreaKind::Home | AreaKind::Log(_) => None,
    };
    system.and_then(of).or_else(|| ALL.iter().find_map(|system| of(system))).expect("a system has backings")
}
