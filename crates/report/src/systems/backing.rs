//! Backings: where a swap area lies that is rewritten in place, or holds a log.

use coldframe_core::Ps;

use super::{Area, System, ALL};

/// Where the swap area lies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backing {
    /// The name in tables.
    pub name: &'static str,
    /// Its sheet; `None`: none, since the area lies in the RAM that there is, or there is no area and only the killer makes room.
    pub sheet: Option<&'static str>,
    /// Swapped pages are read where they lie.
    pub direct_read: bool,
    /// Software on the way of each page beside the copy itself.
    pub path: Path,
    /// A copy from it takes this many times the copy from DRAM, a copy to it that many.
    pub slowdown: (u64, u64),
    /// Pages are compressed on their way, and lie in the RAM that there is.
    pub compression: Option<Compression>,
}

/// What a page goes through besides its copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// A memory copy and nothing else.
    Memory,
    /// The block layer, down to a memory copy ("fake I/O path", DR.Swap section V.F).
    FakeIo,
    /// The block layer and the device.
    BlockLayer,
}

/// How pages are compressed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compression {
    /// A page of 4 KiB compressed, by the processor.
    pub compress: Ps,
    /// The same decompressed.
    pub decompress: Ps,
    /// How many times smaller a page becomes, unless `swap.ratio` says otherwise.
    pub ratio: f64,
}

/// Every backing of every system.
pub fn all() -> impl Iterator<Item = &'static Backing> {
    ALL.iter().flat_map(|system| match system.area {
        Area::Backed(_, all) => all,
        Area::Home | Area::Log(_) => &[],
    })
}

/// The backing of this name.
pub fn find(name: &str) -> Option<&'static Backing> {
    all().find(|backing| backing.name == name)
}

/// What compressing with this algorithm takes, as measured for the first backing that has it.
pub fn compressor(algorithm: &str) -> Option<Compression> {
    let has = |backing: &&Backing| backing.name.rsplit('-').next() == Some(algorithm);
    all().filter(has).find_map(|backing| backing.compression)
}

/// The backing that is meant if none is named: the system's, or that of the first system that has some.
///
/// # Panics
/// If no system has one.
pub fn default_of(system: Option<&System>) -> &'static str {
    let of = |system: &System| match system.area {
        Area::Backed(name, _) => Some(name),
        Area::Home | Area::Log(_) => None,
    };
    system.and_then(of).or_else(|| ALL.iter().find_map(|system| of(system))).expect("a system has backings")
}
