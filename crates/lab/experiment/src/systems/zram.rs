//! zram: the swap area is RAM that holds compressed pages, as in Linux (`drivers/block/zram`;
//! Documentation/admin-guide/blockdev/zram.rst).
//!
//! ```text
//!   RAM   [ frames ................................ ][ compressed pages: size / ratio when the area is full ]
//!   out   block layer, compress                          in   block layer, decompress
//! ```
//!
//! No device takes part: the processor does all the work, and nothing is erased. Compressed pages take RAM from the
//! frames; the area is counted as full from the beginning, which is the pessimistic assumption. When not to use it:
//! for pages that do not compress. It goes with every driver: `--scheduler cfs --swap-device zram-lz4`.
//!
//! Left out: the store's own waste (zsmalloc), pages of one value, which take no room, and pages that do not compress.
//! One ratio holds for all pages (`swap.ratio`).

use coldframe_core::Ps;

use crate::systems::backing::{Backing, Compression, Path};
use crate::systems::{drswap, lobi, AreaKind, Defaults, Driver, System};

/// The entry of the table of systems.
pub const SYSTEM: System = System {
    name: "zram",
    paper: "Linux: zram: Compressed RAM-based block devices (Documentation/admin-guide/blockdev/zram.rst)",
    summary: "a swap area in RAM whose pages are compressed",
    defaults: Defaults::PLAIN,
    // The stages of a fault have not been measured for it.
    prices: lobi::prices,
    driver: Driver::Foreground(&drswap::FOREGROUND),
    area: AreaKind::Backed("zram-lz4", &BACKINGS),
    front_end: None,
    live: None,
    parts: &[],
};

/// The two compressors that Linux users choose between. Times and ratios were measured on the pages of live programs:
/// of the heap of a Python dictionary (perl's hash: ratio 3.0 and 6.5, awk's array: 4.3 and 8.3), the fastest of four
/// runs on one core of an Intel Xeon of 2026 in a virtual machine, with `lz4_flex` 0.14 and `zstd` 1.5.7, level 1.
pub const BACKINGS: [Backing; 2] = [
    compressed("zram-lz4", Compression { compress: Ps(4_670_000), decompress: Ps(3_650_000), ratio: 3.5 }),
    compressed("zram-zstd", Compression { compress: Ps(13_360_000), decompress: Ps(7_350_000), ratio: 6.9 }),
];

const fn compressed(name: &'static str, compression: Compression) -> Backing {
    Backing { name, path: Path::FakeIo, compression: Some(compression), ..Backing::PLAIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason to choose zstd: smaller pages for more time.
    #[test]
    fn zstd_is_slower_and_smaller() {
        let [lz4, zstd] = BACKINGS.map(|backing| backing.compression.expect("it compresses"));
        assert!(zstd.compress > lz4.compress && zstd.decompress > lz4.decompress && zstd.ratio > lz4.ratio);
    }
}
