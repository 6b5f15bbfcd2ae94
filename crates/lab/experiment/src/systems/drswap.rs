//! DR.Swap: a swap area in byte-addressable NVM next to DRAM, read in place (Zhong, Liu, Liang, Zhu, Long, Wang and
//! Sha: *Energy-Efficient In-Memory Paging for Smartphones*, TCAD 2016).
//!
//! Direct read and the low memory killer are in the core (`swap/slots`, `fault/in_slot`), its energy equations in the
//! device crate (`swap_energy`). This file has its numbers: the backings that it compares ([`BACKINGS`]).

use coldframe_core::Bytes;
use coldframe_sheet::quantity::show_bytes;

use crate::systems::backing::{Backing, Path};
use crate::systems::{lobi, AreaKind, Defaults, Driver, ForegroundDefaults, Part, System};

/// The entry of the table of systems.
pub const SYSTEM: System = System {
    name: "drswap",
    paper: "Zhong et al.: Energy-Efficient In-Memory Paging for Smartphones, IEEE TCAD 2016",
    summary: "a swap area in NVM beside DRAM, whose pages are read where they lie",
    defaults: Defaults { device: "LPDDR2-PCM", ..Defaults::PLAIN },
    // The paper has no times of a fault's stages either.
    prices: lobi::prices,
    driver: Driver::Foreground(&FOREGROUND),
    area: AreaKind::Backed("nvm-dr", &BACKINGS),
    front_end: None,
    live: Some("coldframe-lab run --slow node:1 --ram 64MiB -- PROGRAM"),
    parts: &[PART],
};

/// A quarter of the memory is PCM instead of RAM, before the area on flash; its pages are read in their slots. The
/// share is our choice: the paper prints no price of a byte.
const PART: Part = Part {
    name: "drswap",
    text: "DR.Swap: read in NVM",
    apply: |s| {
        let memory = s.frames.unwrap_or(0);
        let area = Bytes(memory / 4 * PAGE.0);
        s.frames = Some(memory - memory / 4);
        (s.swap.backing, s.swap.size) = (Some("nvm-dr".into()), Some(show_bytes(area)));
    },
    tasks_min: 1,
    needs_dma: false,
    idle: |_| "no page had to leave RAM",
};

/// The smallest area of the evaluation (table IV).
pub const FOREGROUND: ForegroundDefaults = ForegroundDefaults { area: Bytes(128 << 20) };

/// A page and a swap slot (section IV.A, P_size).
pub const PAGE: Bytes = crate::systems::backing::PAGE;

/// The five compared backings (sections IV and V, figure 2 for none).
pub const BACKINGS: [Backing; 5] = [
    Backing { name: "dram", sheet: Some("LPDDR2-DRAM"), path: Path::FakeIo, ..Backing::PLAIN },
    Backing { name: "emmc", sheet: Some("iNAND-eMMC"), path: Path::BlockLayer, ..Backing::PLAIN },
    NVM,
    Backing { name: "nvm-dr", direct_read: true, ..NVM },
    Backing::PLAIN,
];

const NVM: Backing = Backing { name: "nvm", sheet: Some("LPDDR2-PCM"), slowdown: (2, 12), ..Backing::PLAIN };
