//! Quantities with units, as people and data sheets write them: `64KiB`, `25us`, `18.96us`, `1295.48nJ`.

use std::fmt;

use coldframe_core::{Bytes, MicroWatt, Pj, Ps};

/// A quantity that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct QuantityError {
    /// What was written.
    pub text: String,
    /// The accepted forms.
    pub expected: &'static str,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be read; give {}", self.text, self.expected)
    }
}

const SIZES: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("B", 1),
    ("", 1),
];

const TIMES: &[(&str, u64)] =
    &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("µs", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];

const ENERGIES: &[(&str, u64)] =
    &[("pJ", 1), ("nJ", 1_000), ("uJ", 1_000_000), ("mJ", 1_000_000_000), ("J", 1_000_000_000_000)];

const POWERS: &[(&str, u64)] = &[("uW", 1), ("mW", 1_000), ("W", 1_000_000)];

const VOLTAGES: &[(&str, u64)] = &[("mV", 1), ("V", 1_000)];

const CURRENTS: &[(&str, u64)] = &[("uA", 1), ("mA", 1_000), ("A", 1_000_000)];

const FREQUENCIES: &[(&str, u64)] = &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)];

/// Reads a size. A bare number is bytes; `K`, `M` and `G` are binary.
///
/// # Errors
/// Not a number and a unit, not a whole number of bytes, or more than 2^63 - 1 bytes.
pub fn bytes(text: &str) -> Result<Bytes, QuantityError> {
    let expected = "a size such as 64KiB, 1.5MiB or 4096 (bytes)";
    scaled(text, SIZES).map(Bytes).ok_or_else(|| QuantityError { text: text.into(), expected })
}

/// Reads a time. The unit must be there.
///
/// # Errors
/// Not a number and a unit, finer than a picosecond, or more than 2^63 - 1 picoseconds (106 days).
pub fn time(text: &str) -> Result<Ps, QuantityError> {
    let expected = "a time with its unit such as 25us, 20.64us or 10ns";
    scaled(text, TIMES).map(Ps).ok_or_else(|| QuantityError { text: text.into(), expected })
}

/// Reads an energy. The unit must be there.
///
/// # Errors
/// Not a number and a unit, finer than a picojoule, or more than 2^63 - 1 picojoules (9 MJ).
pub fn energy(text: &str) -> Result<Pj, QuantityError> {
    let expected = "an energy with its unit such as 1295.48nJ or 2uJ";
    scaled(text, ENERGIES).map(Pj).ok_or_else(|| QuantityError { text: text.into(), expected })
}

/// Reads a power. The unit must be there.
///
/// # Errors
/// Not a number and a unit, negative, or finer than a microwatt.
pub fn power(text: &str) -> Result<MicroWatt, QuantityError> {
    let expected = "a power with its unit such as 12.4mW or 350uW";
    scaled(text, POWERS).map(MicroWatt).ok_or_else(|| QuantityError { text: text.into(), expected })
}

/// Reads a voltage in millivolts. The unit must be there.
///
/// # Errors
/// Not a number and a unit, negative, or finer than a millivolt.
pub fn millivolts(text: &str) -> Result<u64, QuantityError> {
    let expected = "a voltage with its unit such as 3.3V";
    scaled(text, VOLTAGES).ok_or_else(|| QuantityError { text: text.into(), expected })
}

/// Reads a current in microamperes. The unit must be there.
///
/// # Errors
/// Not a number and a unit, negative, or finer than a microampere.
pub fn microamperes(text: &str) -> Result<u64, QuantityError> {
    let expected = "a current with its unit such as 100mA or 350uA";
    scaled(text, CURRENTS).ok_or_else(|| QuantityError { text: text.into(), expected })
}

/// Reads a frequency in hertz. The unit must be there.
///
/// # Errors
/// Not a number and a unit, negative, or finer than a hertz.
pub fn hertz(text: &str) -> Result<u64, QuantityError> {
    let expected = "a frequency with its unit such as 26MHz";
    scaled(text, FREQUENCIES).ok_or_else(|| QuantityError { text: text.into(), expected })
}

/// Exact decimal arithmetic: `18.96us` is exactly 18,960,000 ps.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let scale = u128::from(units.iter().find(|(name, _)| *name == unit)?.1);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 12 {
        return None;
    }
    let ten = 10u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let value = digits.checked_mul(scale)?;
    (value % ten == 0).then_some(value / ten).and_then(|v| i64::try_from(v).ok()).map(|v| v as u64)
}

/// Writes a size in the largest binary unit that leaves no remainder.
pub fn show_bytes(size: Bytes) -> String {
    for (unit, scale) in [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if size.0 >= scale && size.0.is_multiple_of(scale) {
            return format!("{}{unit}", size.0 / scale);
        }
    }
    format!("{}B", size.0)
}

/// Writes a time exactly, in the largest unit that needs no more than six decimals.
pub fn show_time(time: Ps) -> String {
    shown(time.0, [("s", 1_000_000_000_000u64), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000)], "ps")
}

/// Writes an energy exactly, in the largest unit that needs no more than six decimals.
pub fn show_energy(energy: Pj) -> String {
    shown(energy.0, [("J", 1_000_000_000_000u64), ("mJ", 1_000_000_000), ("uJ", 1_000_000), ("nJ", 1_000)], "pJ")
}

fn shown(value: u64, units: [(&str, u64); 4], smallest: &str) -> String {
    for (unit, scale) in units {
        if value >= scale && u128::from(value) * 1_000_000 % u128::from(scale) == 0 {
            let millionths = u128::from(value % scale) * 1_000_000 / u128::from(scale);
            let text = format!("{}.{millionths:06}", value / scale);
            return format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    format!("{value}{smallest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_data_sheet_prints_is_read_exactly() {
        assert_eq!(time("18.96us"), Ok(Ps(18_960_000)));
        assert_eq!(time("2.5 ns"), Ok(Ps(2_500)));
        assert_eq!(bytes("1.5MiB"), Ok(Bytes(3 << 19)));
        assert_eq!(bytes("4096"), Ok(Bytes(4096)));
        assert_eq!(show_time(Ps(u64::MAX)), "18446744073709.551615us");
        assert_eq!(show_time(Ps(u64::MAX / 1_000_000 * 1_000_000)), "18446744.073709s");
        assert_eq!(energy("1295.48nJ"), Ok(Pj(1_295_480)));
        assert_eq!(show_energy(Pj(1_295_480)), "1.29548uJ");
        assert_eq!(show_time(Ps(18_960_000)), "18.96us");
        assert_eq!(show_bytes(Bytes(64 << 10)), "64KiB");
        assert_eq!(show_time(Ps::ZERO), "0ps");
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in
            ["", "us", "-1us", "1.us", ".5us", "1e3us", "0.1ps", "10", "99999999999999999999s", "1..2us", "3 days"]
        {
            assert!(time(text).is_err(), "{text}");
        }
        for text in ["", "nJ", "1295.48", "-1nJ", "0.1pJ", "3 cal"] {
            assert!(energy(text).is_err(), "{text}");
        }
        for text in ["", "KiB", "-64KiB", "0.3", "1e3", "64KIB", "9999999999GiB", "1.0001KiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
