//! What could be done about memory that was unused: nothing that stops what works, or wakes in too little.

use schemars::JsonSchema;
use serde::Serialize;

use crate::device::seen::Owner;

/// A unit's limit has this part more than it uses.
const ROOM: f64 = 1.1;
/// Who had a processor for less than this part of the time slept: timers of idle programs take up to a thousandth.
const SLEPT: f64 = 0.0005;
/// systemd-oomd kills no unit with less than this part of the swap (oomd.conf(5)); and so many units are named.
const SWAP_LEAST: f64 = 0.05;
const SLEEPERS: usize = 2;

/// What could be done about an owner's unused memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// A unit that worked: a `MemoryHigh=` of so many bytes holds all that it used.
    MemoryHigh(u64),
    /// A program that slept: it could be stopped, with its memory in swap, until somebody needs it.
    Park(u32),
    /// It worked: it is not to be stopped.
    Works,
    /// A unit that slept: what it needs when it wakes was not seen.
    Slept,
    /// One of several of that name.
    OneOfMany,
    /// A unit that exists while it runs only, or has no such name as a unit's file can have.
    NoUnitFile,
    /// Whether it worked was not seen.
    NotSeen,
}

impl Advice {
    /// For an owner as it was watched.
    pub fn new(owner: &Owner) -> Advice {
        let Some(busy) = owner.busy else { return Advice::NotSeen };
        match (busy < SLEPT, owner.unit) {
            (_, true) if !has_unit_file(&owner.name) => Advice::NoUnitFile,
            (true, true) => Advice::Slept,
            (false, true) => Advice::MemoryHigh(used(owner)),
            (_, false) if owner.processes > 1 => Advice::OneOfMany,
            (true, false) => Advice::Park(owner.process),
            (false, false) => Advice::Works,
        }
    }
}

/// The units with a file that would have more than a part of so much swap: the least that systemd-oomd looks at.
pub(crate) fn sleepers(owners: &[Owner], swap_bytes: u64) -> Vec<String> {
    let large = |owner: &&Owner| {
        owner.unit && has_unit_file(&owner.name) && owner.cold_bytes as f64 > SWAP_LEAST * swap_bytes as f64
    };
    owners.iter().filter(large).take(SLEEPERS).map(|owner| owner.name.clone()).collect()
}

/// What a limit has to hold of a unit: all that its group is charged but what it did not use, and a tenth more.
fn used(owner: &Owner) -> u64 {
    (owner.own_bytes.max(owner.charged_bytes).saturating_sub(owner.cold_bytes) as f64 * ROOM) as u64
}

/// Whether a unit can have settings in a file: scopes, and what `systemd-run` makes, end with their processes; names
/// have the characters of systemd.unit(5).
fn has_unit_file(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    name.ends_with(".service") && !name.starts_with("run-") && name.chars().all(plain) && name.len() < 256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, processes: u64, busy: Option<f64>) -> Owner {
        let unit = name.contains('.');
        Owner { name: name.into(), unit, process: 7, processes, busy, ..Owner::default() }
    }

    #[test]
    fn what_works_is_not_parked_nor_one_of_many_and_what_slept_gets_no_limit() {
        let cases = [
            ("rustc", 1, Some(0.25), Advice::Works),
            ("rustc", 3, Some(0.75), Advice::OneOfMany),
            ("bash", 22, Some(0.0), Advice::OneOfMany),
            ("redis-server", 1, Some(0.0015), Advice::Works),
            ("old-editor", 1, Some(0.0), Advice::Park(7)),
            ("kernel-command-line.service", 1, Some(0.0), Advice::Slept),
            ("words-13197708522.scope", 1, Some(0.25), Advice::NoUnitFile),
            ("run-u12.service", 1, Some(0.25), Advice::NoUnitFile),
            ("a b.service", 1, Some(0.25), Advice::NoUnitFile),
            ("cups.service", 1, None, Advice::NotSeen),
        ];
        for (name, processes, busy, advice) in cases {
            assert_eq!(Advice::new(&owner(name, processes, busy)), advice, "{name} ({processes})");
        }
    }

    #[test]
    fn units_with_more_than_a_twentieth_of_the_swap_are_those_that_oomd_would_kill() {
        let unit = |name: &str, cold_bytes| Owner { cold_bytes, ..owner(name, 1, None) };
        let owners = [unit("a.service", 6), unit("b.scope", 90), unit("c.service", 5), unit("editor", 90)];
        assert_eq!(sleepers(&owners, 100), ["a.service"]);
    }

    #[test]
    fn a_units_limit_holds_its_files_too_and_without_a_group_its_own_memory() {
        let limit = |charged_bytes| {
            let unit = Owner { own_bytes: 60, cold_bytes: 20, charged_bytes, ..owner("a@b.service", 2, Some(0.1)) };
            Advice::new(&unit)
        };
        assert_eq!([0, 100].map(limit), [44, 88].map(Advice::MemoryHigh));
    }
}
