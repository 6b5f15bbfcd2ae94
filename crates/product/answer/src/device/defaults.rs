//! The swap that systems make by themselves, beside what is recommended.

use schemars::JsonSchema;
use serde::Serialize;

/// A system's own swap, for so much RAM.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct DefaultSwap {
    /// The system.
    pub system: &'static str,
    /// Whether it is compressed RAM; else a file.
    pub zram: bool,
    /// Its size.
    pub bytes: u64,
    /// RAM that it takes if it is full of pages such as those that were tried; null: no page was, or a file.
    pub full_bytes: Option<u64>,
    /// Who says so.
    pub source: &'static str,
}

const GIB: u64 = 1 << 30;

/// Those of known systems; `share`: of its size that a page takes in zram.
pub(crate) fn defaults(ram: u64, share: Option<f64>) -> Vec<DefaultSwap> {
    let swap = |system, zram: bool, bytes: u64, source| DefaultSwap {
        system,
        zram,
        bytes,
        full_bytes: share.filter(|_| zram).map(|share| (bytes as f64 * share) as u64),
        source,
    };
    vec![
        swap("Fedora", true, ram.min(8 * GIB), "fedoraproject.org/wiki/Changes/Scale_ZRAM_to_full_memory_size"),
        swap("Raspberry Pi OS", true, ram.min(2 * GIB), "rpi-swap, swap.conf(5): RamMultiplier=1, MaxSizeMiB=2048"),
        swap("Armbian", true, ram / 2, "armbian/build, armbian-zram-config: ZRAM_PERCENTAGE:=50"),
        swap("OpenWrt", true, ram / 2, "openwrt/openwrt, package/system/zram-swap/files/zram.init"),
        swap(
            "Home Assistant OS",
            false,
            (ram as f64 * 0.33) as u64,
            "home-assistant/operating-system, haos-swapfile: 33 % of RAM, from 1 to 4 GiB",
        ),
    ]
    .into_iter()
    .map(|swap| if swap.zram { swap } else { DefaultSwap { bytes: swap.bytes.clamp(GIB, 4 * GIB), ..swap } })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_systems_own_rule_gives_its_size_for_this_ram() {
        let gib = |ram: u64| defaults(ram * GIB, Some(0.25)).iter().map(|one| one.bytes / GIB).collect::<Vec<_>>();
        assert_eq!((gib(1), gib(4)), (vec![1, 1, 0, 0, 1], vec![4, 2, 2, 2, 1]));
        assert_eq!(gib(24), [8, 2, 12, 12, 4]);
        let full: Vec<_> = defaults(4 * GIB, Some(0.25)).iter().map(|one| one.full_bytes).collect();
        assert_eq!(full, [Some(GIB), Some(GIB / 2), Some(GIB / 2), Some(GIB / 2), None]);
    }
}
