//! The energy of a swap area, term by term: equations 1 to 14 of *Energy-Efficient In-Memory Paging for Smartphones*
//! (DR.Swap, TCAD 2016) as pure functions over counts and up-time.
//!
//! ```text
//! (1)   E_DRAM  = (PRE_PDN + PRE_STBY + ACT_PDN + ACT_STBY + REF) t_TOTAL + ACT t_ACT + RD t_RD + WR t_WR + DQ t_DQ
//! (2)   t_RD    = (bursts N_rd  BL/2 + N_rd RL) t_CK             bursts = P_size 8 / (BL BW), those of one page
//! (3)   t_WR    = (bursts N_wr (BL/2 + t_WR / t_CK) + N_wr WL) t_CK
//! (4)   t_ACT   = t_RD + t_WR + (N_rd + N_wr) t_RCD
//! (5)   t_DQ    = bursts (N_rd + N_wr) BL/2 t_CK
//! (6-9) E_FLASH = V (I_1 t_RD + I_2 t_WR + I_3 t_STBY)
//! (10)  t_RD    = (block 8 / (2 BW) + RL) / f for each block of N_rd pages;   (11) t_WR alike
//! (12)  t_STBY  = t_TOTAL - t_RD - t_WR
//! (13)  E_PCM   = as (1) without REF;   (14) t_RD as (2) with N'_rd, the swap-ins that copy
//! ```
//!
//! Equation 3 is printed as `BL/2 + t_WR`, a count of cycles plus nanoseconds, times t_CK. We take t_WR / t_CK
//! cycles, which is the meaning of a write recovery of 15 ns after each burst. REF is the chip's refresh, scaled by
//! the swap area's part of the chip (section V.E).
//!
//! Products are exact in 128 bits. Each term is rounded down once, to a picojoule; each time of a card is rounded
//! down to a picosecond.

use coldframe_core::{Bytes, MicroWatt, Pj, Ps};

use crate::sheet::electric::{BusMemory, Card};

/// What a swap area did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwapCounts {
    /// Pages copied from the area: `N_rd`, with direct read `N'_rd`.
    pub swap_ins: u64,
    /// Pages copied to it: `N_wr`.
    pub swap_outs: u64,
    /// How long it was on: `t_TOTAL`.
    pub up_time: Ps,
}

/// The time of a memory on the bus, by activity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BusTimes {
    /// `t_ACT`.
    pub active: Ps,
    /// `t_RD`.
    pub read: Ps,
    /// `t_WR`.
    pub write: Ps,
    /// `t_DQ`.
    pub data_out: Ps,
}

/// Energy by term. Terms that a memory does not have are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwapLedger {
    /// Background without refresh; for a card its standby.
    pub background: Pj,
    /// Refresh, for the swap area's part of the chip.
    pub refresh: Pj,
    /// Activations.
    pub active: Pj,
    /// Reads.
    pub read: Pj,
    /// Writes.
    pub write: Pj,
    /// The pins for data.
    pub data_out: Pj,
}

impl SwapLedger {
    /// The sum.
    pub fn total(&self) -> Pj {
        self.terms().into_iter().map(|(_, term)| term).sum()
    }

    /// Each term with its name.
    pub fn terms(&self) -> [(&'static str, Pj); 6] {
        [
            ("background", self.background),
            ("refresh", self.refresh),
            ("active", self.active),
            ("read", self.read),
            ("write", self.write),
            ("data_out", self.data_out),
        ]
    }
}

fn bursts(m: &BusMemory, page: Bytes) -> u64 {
    (page.0 * 8).div_ceil(m.burst * m.width)
}

/// Equations 2 (14) to 5.
pub fn bus_times(m: &BusMemory, page: Bytes, n: &SwapCounts) -> BusTimes {
    let (bursts, half) = (bursts(m, page), m.clock * (m.burst / 2));
    let read = (half * bursts + m.clock * m.read_latency) * n.swap_ins;
    let write = ((half + m.t_wr) * bursts + m.clock * m.write_latency) * n.swap_outs;
    let pages = n.swap_ins + n.swap_outs;
    BusTimes { active: read + write + m.t_rcd * pages, read, write, data_out: half * bursts * pages }
}

/// Equation 1, and 13 for a memory without refresh, for a swap area of `area` bytes.
pub fn bus_energy(m: &BusMemory, page: Bytes, area: Bytes, n: &SwapCounts) -> SwapLedger {
    let times = bus_times(m, page, n);
    let background = MicroWatt(m.pre_pdn.0 + m.pre_stby.0 + m.act_pdn.0 + m.act_stby.0);
    SwapLedger {
        background: over(background, n.up_time),
        refresh: part(over(m.refresh, n.up_time), area, m.chip),
        active: over(m.act, times.active),
        read: over(m.rd, times.read),
        write: over(m.wr, times.write),
        data_out: over(m.dq, times.data_out),
    }
}

/// How often a page is used until its move has paid: the time of its way there and back over that of reading a line of
/// 64 bytes, both by equations 2 to 4.
pub fn break_even(m: &BusMemory) -> f64 {
    let time = |bytes, swap_outs| {
        let counts = SwapCounts { swap_ins: 1, swap_outs, ..SwapCounts::default() };
        bus_times(m, Bytes(bytes), &counts).active.0 as f64
    };
    time(4096, 1) / time(64, 0).max(1.0)
}

/// Equations 10 and 11: a card's reading and writing time.
pub fn card_times(c: &Card, page: Bytes, n: &SwapCounts) -> (Ps, Ps) {
    let time = |block: Bytes, latency: u64, pages: u64| {
        let cycles = (block.0 * 8).div_ceil(2 * c.width) + latency;
        let blocks = page.0.div_ceil(block.0) * pages;
        let ps = u128::from(cycles) * u128::from(blocks) * 1_000_000_000_000 / u128::from(c.frequency_hz);
        Ps(ps as u64)
    };
    (time(c.read_block, c.read_latency, n.swap_ins), time(c.write_block, c.write_latency, n.swap_outs))
}

/// Equations 6 to 12. A card that works longer than it is on has no standby time.
pub fn card_energy(c: &Card, page: Bytes, n: &SwapCounts) -> SwapLedger {
    let (read, write) = card_times(c, page, n);
    let standby = n.up_time.saturating_sub(read + write);
    SwapLedger {
        background: over(c.standby, standby),
        read: over(c.rd, read),
        write: over(c.wr, write),
        ..SwapLedger::default()
    }
}

/// Microwatts times picoseconds are 10^-18 J.
fn over(power: MicroWatt, time: Ps) -> Pj {
    Pj((u128::from(power.0) * u128::from(time.0) / 1_000_000) as u64)
}

fn part(whole: Pj, of: Bytes, chip: Bytes) -> Pj {
    Pj((u128::from(whole.0) * u128::from(of.0) / u128::from(chip.0)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::find;

    #[test]
    fn a_page_pays_sooner_where_a_line_takes_longer() {
        let of = |name: &str| break_even(&find(name).unwrap().bus_memory().unwrap());
        // Table II: a page takes 5.135 us there and 8.965 us back and 160 ns for rows; a line 95 ns and 80 ns.
        let (pcm, cxl) = (of("LPDDR2-PCM"), of("CXL-DDR4"));
        assert!((80.0..83.0).contains(&pcm) && cxl < 20.0, "{pcm} {cxl}");
    }

    const PAGE: Bytes = Bytes(4096);

    fn counts(swap_ins: u64, swap_outs: u64) -> SwapCounts {
        SwapCounts { swap_ins, swap_outs, up_time: Ps(1_000_000_000_000) }
    }

    #[test]
    fn times_of_one_page_by_hand() {
        let dram = find("LPDDR2-DRAM").unwrap().bus_memory().unwrap();
        // 4096 * 8 / (8 * 32) = 128 bursts of 4 cycles of 2.5 ns, and 6 cycles: 518 * 2.5 ns.
        let read = bus_times(&dram, PAGE, &counts(1, 0));
        assert_eq!((read.read, read.data_out, read.active), (Ps(1_295_000), Ps(1_280_000), Ps(1_337_000)));
        // 128 * (10 + 15) ns + 4 * 2.5 ns.
        assert_eq!(bus_times(&dram, PAGE, &counts(0, 1)).write, Ps(3_210_000));
        let pcm = find("LPDDR2-PCM").unwrap().bus_memory().unwrap();
        // 256 * 20 ns + 3 * 5 ns; 256 * (20 + 15) ns + 5 ns.
        let both = bus_times(&pcm, PAGE, &counts(1, 1));
        assert_eq!((both.read, both.write), (Ps(5_135_000), Ps(8_965_000)));
    }

    #[test]
    fn a_card_moves_eight_blocks_a_page() {
        let card = find("iNAND-eMMC").unwrap().card().unwrap();
        assert_eq!((card.rd, card.standby), (MicroWatt(330_000), MicroWatt(1_155)));
        // 8 * (256 + 2) / 26 MHz and 8 * (256 + 32) / 26 MHz.
        assert_eq!(card_times(&card, PAGE, &counts(1, 1)), (Ps(79_384_615), Ps(88_615_384)));
        let idle = card_energy(&card, PAGE, &counts(0, 0));
        assert_eq!((idle.total(), idle.background), (Pj(1_155_000_000), Pj(1_155_000_000)));
    }

    #[test]
    fn refresh_goes_by_the_areas_part_of_the_chip() {
        let dram = find("LPDDR2-DRAM").unwrap().bus_memory().unwrap();
        let of = |mib: u64| bus_energy(&dram, PAGE, Bytes(mib << 20), &counts(0, 0));
        // 12.4 mW for one second, an eighth of it.
        assert_eq!((of(1024).refresh, of(128).refresh), (Pj(12_400_000_000), Pj(1_550_000_000)));
        assert_eq!(of(128).background, Pj(19_600_000_000));
    }
}
