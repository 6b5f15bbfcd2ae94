//! The measured part of a sheet: the machine, the costs of paging on it, and the times of its disk alone.
//!
//! `coldframe doctor --calibrate` writes it. Each time has three numbers, since a machine's times vary.

use coldframe_core::Ps;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tables::Sourced;
use super::{Kind, Sheet, SheetError};
use crate::quantity::time_as_text;

/// Identifies the machine of a sheet. If any field but the last two differs, it is another machine, and the sheet's
/// numbers do not apply to it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Number of processors.
    pub processors: u32,
    /// Release of the kernel.
    pub kernel: String,
    /// The device number and the file system of the disk that holds swap files.
    pub disk: String,
    /// Version of the measurement.
    pub calibration: u32,
    /// The day on which it was measured.
    pub measured: String,
    /// The folder that the swap file was in.
    pub backing: String,
}

impl Machine {
    /// Whether the other machine's measurements apply to this one.
    pub fn is_like(&self, other: &Machine) -> bool {
        let key = |m: &Machine| (m.processor.clone(), m.processors, m.kernel.clone(), m.disk.clone(), m.calibration);
        key(self) == key(other)
    }
}

/// A time that varies: the mean of a long run, and the range of the means of short stretches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The mean of the best tenth of stretches.
    #[serde(with = "time_as_text")]
    #[schemars(with = "String")]
    pub low: Ps,
    /// The mean of all.
    #[serde(with = "time_as_text")]
    #[schemars(with = "String")]
    pub mean: Ps,
    /// The mean of the worst tenth of stretches.
    #[serde(with = "time_as_text")]
    #[schemars(with = "String")]
    pub high: Ps,
}

/// The time of a disk's requests of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Median, from submission to completion.
    #[serde(with = "time_as_text")]
    #[schemars(with = "String")]
    pub p50: Ps,
    /// Mean.
    #[serde(with = "time_as_text")]
    #[schemars(with = "String")]
    pub mean: Ps,
    /// 99th percentile.
    #[serde(with = "time_as_text")]
    #[schemars(with = "String")]
    pub p99: Ps,
    /// Time for each page moved, at the same number of requests in flight.
    #[serde(with = "time_as_text")]
    #[schemars(with = "String")]
    pub per_page: Ps,
}

macro_rules! measured {
    ($(#[$sdoc:meta])* $name:ident, $table:literal, $entry:ty { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$sdoc])*
        #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$doc])* pub $field: Option<Sourced<$entry>>,)*
        }

        impl $name {
            /// Each field in order: its name `table.key`, and its value.
            pub fn all(&self) -> Vec<(&'static str, Option<&Sourced<$entry>>)> {
                vec![$((concat!($table, ".", stringify!($field)), self.$field.as_ref()),)*]
            }

            /// The field of this key, to be set.
            pub fn of(&mut self, key: &str) -> Option<&mut Option<Sourced<$entry>>> {
                match key {
                    $(stringify!($field) => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

measured! {
    /// The cost of each paging event, as time of the thread that causes the event.
    Live, "live", Spread {
        /// The first touch of a page without the pager: the kernel's own zero-fill fault, huge pages off.
        zero_fill_native,
        /// The same for each 4 KiB, with huge pages as the kernel has them set.
        zero_fill_huge,
        /// The first touch of a page under the pager, while no page has to leave.
        zero_fill,
        /// A page loaded from the device, one at a time, while clean pages are evicted.
        device_fault,
        /// Each page of a sequential stream that is read ahead, while clean pages are evicted.
        read_ahead,
        /// A page that is needed again before it was written to the device; evictions for it are not included.
        memory_fault,
        /// A touch of a page in RAM that was unmapped.
        false_fault,
        /// The first write to a page that was mapped read-only.
        first_write,
        /// The extra time of a fault for each clean page evicted with it, if no device time hides it.
        evict_clean,
        /// The extra time of a fault for each dirty page evicted with it, if no device time hides it.
        evict_dirty,
        /// The extra time of a fault that waits for the device, if a dirty page is evicted instead of a clean one.
        evict_dirty_read,
        /// A page at a random place from the kernel's swap on a disk, while another one is pushed out.
        swap_fault,
        /// Each page of a sequential stream from there.
        swap_ahead,
        /// A page from the kernel's swap in compressed RAM (zram, zswap), while another one is pushed out.
        zram_fault,
        /// A recorder's trial of a page as it was swapped there: lz4 in both directions, and two hashes.
        /// The entry of a page into the recorder's window, while another page leaves the window.
        entry,
    }
}

measured! {
    /// The times of the disk with direct requests and no pager: reads of one page at random places, with several in
    /// flight; writes of several pages together, with one in flight.
    Disk, "disk", Latency {
        /// One read in flight.
        read_1,
        /// Four in flight.
        read_4,
        /// Sixteen in flight.
        read_16,
        /// Writes of one page at random places.
        write_1,
        /// Writes of 8 pages at random places.
        write_8,
        /// Writes of 32 pages in order, as the log writes them.
        write_32,
    }
}

/// Checks that apply to every measured number.
fn refused<T>(
    table: &[(&'static str, Option<&Sourced<T>>)],
    reason: impl Fn(&T) -> Option<String>,
) -> Option<(&'static str, String)> {
    let given = table.iter().filter_map(|(field, entry)| Some((*field, (*entry)?)));
    let why = |entry: &Sourced<T>| match entry.source.trim() {
        "" => Some("has no source; say how it was measured".into()),
        _ => reason(&entry.value),
    };
    given.filter_map(|(field, entry)| Some((field, why(entry)?))).next()
}

const ZERO: &str = "is 0; leave the field out if it is not known";

fn varies(s: &Spread) -> Option<String> {
    match s.low == Ps::ZERO {
        true => Some(ZERO.into()),
        false => (s.low > s.mean || s.mean > s.high).then(|| "low, mean and high are not in this order of size".into()),
    }
}

fn takes(of: &Latency) -> Option<String> {
    match [of.p50, of.mean, of.p99, of.per_page].contains(&Ps::ZERO) {
        true => Some(ZERO.into()),
        false => (of.p50 > of.p99).then(|| "p50 is more than p99".into()),
    }
}

impl Sheet {
    pub(super) fn check_machine(&self, file: &str) -> Result<(), SheetError> {
        let bad = |(field, reason)| SheetError::Field { file: file.into(), field, reason };
        let refusal = refused(&self.live.all(), varies).or_else(|| refused(&self.disk.all(), takes));
        refusal.map_or(Ok(()), |field| Err(bad(field)))?;
        match (self.kind, &self.machine) {
            (Kind::Machine, None) => Err(bad(("machine", "is missing; a machine says which one it is".into()))),
            _ => Ok(()),
        }
    }

    /// The cost of an event on this machine, by the name of its field, `live.key`.
    ///
    /// # Errors
    /// The sheet does not have it.
    pub fn cost(&self, field: &'static str) -> Result<Spread, SheetError> {
        let missing = || SheetError::NotMeasured { device: self.name.clone(), field };
        let entry = self.live.all().into_iter().find(|(name, _)| *name == field).and_then(|(_, entry)| entry);
        Ok(entry.ok_or_else(missing)?.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::here::Here;
    use crate::sheet::parse;

    fn sheet() -> Sheet {
        let machine = Machine {
            processor: "a \"fast\" one".into(),
            processors: 2,
            kernel: "6.18".into(),
            disk: "253:0 ext4".into(),
            calibration: 1,
            measured: "2026-11-22".into(),
            backing: "/tmp".into(),
        };
        let text = "name = \"here\"\nkind = \"machine\"\ntitle = \"this one\"\n";
        let mut sheet = parse("x", &format!("{text}[machine]\n{}", toml::to_string(&machine).unwrap())).unwrap();
        let fields: Vec<_> = sheet.live.all().into_iter().map(|(field, _)| field).collect();
        for (i, field) in fields.iter().enumerate() {
            let ps = |factor: u64| Ps(factor * (1_234_567 + i as u64));
            let value = Spread { low: ps(1), mean: ps(2), high: ps(3) };
            *sheet.live.of(field.strip_prefix("live.").unwrap()).unwrap() =
                Some(Sourced { value, source: "by hand".into() });
        }
        let [p50, mean, p99, per_page] = [70, 80, 1000, 10].map(|us| Ps(us * 1_000_000));
        sheet.disk.read_16 = Some(Sourced { value: Latency { p50, mean, p99, per_page }, source: "by hand".into() });
        sheet
    }

    #[test]
    fn a_machines_sheet_is_read_as_it_was_written() {
        let sheet = sheet();
        let text = sheet.to_toml();
        assert_eq!(parse("here.toml", &text).unwrap(), sheet, "{text}");
        for line in text.lines().filter(|line| line.contains("value =")) {
            assert!(line.contains("source = \"by hand\""), "{line}");
        }
        let here = Here::of(&sheet).unwrap();
        assert_eq!(here.zero_fill_native, Spread { low: Ps(1_234_567), mean: Ps(2_469_134), high: Ps(3_703_701) });
        assert_ne!(here.zero_fill_native, here.zero_fill);
        for (_, text) in crate::sheet::SHIPPED {
            let sheet = parse("x", text).unwrap();
            assert_eq!(parse("x", &sheet.to_toml()).unwrap(), sheet);
        }
    }

    #[test]
    fn a_cost_that_is_missing_is_named_with_what_measures_it() {
        let fields = ["zero_fill_native", "zero_fill", "device_fault", "read_ahead", "memory_fault"];
        for field in fields.into_iter().chain(["false_fault", "first_write", "evict_clean", "evict_dirty", "entry"]) {
            let mut sheet = sheet();
            *sheet.live.of(field).unwrap() = None;
            let error = Here::of(&sheet).unwrap_err().to_string();
            assert!(error.contains(&format!("`live.{field}`")) && error.contains("doctor --calibrate"), "{error}");
        }
        let error = Here::of(&parse("x", crate::sheet::SHIPPED[0].1).unwrap()).unwrap_err().to_string();
        assert!(error.contains("KFG1G16Q2M") && error.contains("`live.zero_fill_native`"), "{error}");
    }

    #[test]
    fn a_bad_machine_names_the_field() {
        let good = sheet().to_toml();
        for (from, to, reason) in [
            ("low = \"1.234567us\"", "low = \"1.2\"", "`1.2` cannot be read"),
            ("low = \"1.234567us\"", "low = \"0ns\"", "`live.zero_fill_native`: is 0"),
            ("low = \"1.234567us\"", "low = \"9s\"", "`live.zero_fill_native`: low, mean and high"),
            ("p50 = \"70us\"", "p50 = \"2ms\"", "`disk.read_16`: p50 is more"),
            ("p50 = \"70us\"", "p50 = \"0us\"", "`disk.read_16`: is 0"),
            ("source = \"by hand\"", "source = \"\"", "has no source"),
            ("read_16", "read_17", "unknown field `read_17`"),
            ("[machine]", "[machines]", "unknown field `machines`"),
        ] {
            assert!(good.contains(from), "{from}\n{good}");
            let error = parse("my.toml", &good.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains("my.toml") && error.contains(reason), "{from} -> {to}: {error}");
        }
    }

    #[test]
    fn another_processor_kernel_disk_or_way_of_measuring_is_another_machine() {
        let one = sheet().machine.unwrap();
        let day = Machine { measured: "2027-01-01".into(), backing: "/var/tmp".into(), ..one.clone() };
        assert!(one.is_like(&day));
        for other in [
            Machine { processor: "slow".into(), ..one.clone() },
            Machine { processors: 3, ..one.clone() },
            Machine { kernel: "6.19".into(), ..one.clone() },
            Machine { disk: "253:1 ext4".into(), ..one.clone() },
            Machine { calibration: 2, ..one.clone() },
        ] {
            assert!(!one.is_like(&other), "{other:?}");
        }
    }
}
