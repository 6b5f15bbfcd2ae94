//! Quantities with units: read and written exactly, as people and data sheets write them (`64KiB`, `18.96us`,
//! `1295.48nJ`), and rounded for people (`84 MiB`, `12.3 s`, `1 234`).

use std::fmt;

use coldframe_core::{Bytes, Pj, Ps};

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

/// A unit of quantities: its names with their scales, and the accepted forms in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    names: &'static [(&'static str, u64)],
    expected: &'static str,
}

impl Unit {
    /// Bytes; `K`, `M` and `G` are binary.
    pub const SIZE: Unit = Unit {
        names: &[
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
        ],
        expected: "a size such as 64KiB, 1.5MiB or 4096 (bytes)",
    };
    /// Picoseconds.
    pub const TIME: Unit = Unit {
        names: &[
            ("ps", 1),
            ("ns", 1_000),
            ("us", 1_000_000),
            ("µs", 1_000_000),
            ("ms", 1_000_000_000),
            ("s", 1_000_000_000_000),
            ("m", 60_000_000_000_000),
            ("min", 60_000_000_000_000),
            ("h", 3_600_000_000_000_000),
        ],
        expected: "a time with its unit such as 25us, 20.64us or 10ns",
    };
    /// Picojoules.
    pub const ENERGY: Unit = Unit {
        names: &[("pJ", 1), ("nJ", 1_000), ("uJ", 1_000_000), ("mJ", 1_000_000_000), ("J", 1_000_000_000_000)],
        expected: "an energy with its unit such as 1295.48nJ or 2uJ",
    };
    /// Microwatts.
    pub const POWER: Unit = Unit {
        names: &[("uW", 1), ("mW", 1_000), ("W", 1_000_000)],
        expected: "a power with its unit such as 12.4mW or 350uW",
    };
    /// Millivolts.
    pub const VOLTAGE: Unit =
        Unit { names: &[("mV", 1), ("V", 1_000)], expected: "a voltage with its unit such as 3.3V" };
    /// Microamperes.
    pub const CURRENT: Unit = Unit {
        names: &[("uA", 1), ("mA", 1_000), ("A", 1_000_000)],
        expected: "a current with its unit such as 100mA or 350uA",
    };
    /// Hertz.
    pub const FREQUENCY: Unit = Unit {
        names: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)],
        expected: "a frequency with its unit such as 26MHz",
    };

    /// Reads a quantity as a whole number of the smallest unit.
    ///
    /// # Errors
    /// Not a number and a unit, negative, finer than the smallest unit, or more than 2^63 - 1.
    pub fn read(&self, text: &str) -> Result<u64, QuantityError> {
        scaled(text, self.names).ok_or_else(|| QuantityError { text: text.into(), expected: self.expected })
    }
}

/// Reads a size, at most 2^63 - 1 bytes. A bare number is bytes; `K`, `M` and `G` are binary.
///
/// # Errors
/// Not a number and a unit, not a whole number of bytes, or more than 2^63 - 1 bytes.
pub fn bytes(text: &str) -> Result<Bytes, QuantityError> {
    Unit::SIZE.read(text).map(Bytes)
}

/// The same with its unit: a number alone would be bytes, which nobody means who writes `64`.
///
/// # Errors
/// As [`bytes`], or a number without a unit.
pub fn bytes_with_unit(text: &str) -> Result<Bytes, QuantityError> {
    if text.trim().ends_with(|c: char| c.is_ascii_digit()) {
        return Err(QuantityError { text: text.into(), expected: "a size with its unit, such as 64MiB" });
    }
    bytes(text)
}

/// Reads a time in whole picoseconds, at most 2^63 - 1 (106 days). The unit must be there.
///
/// # Errors
/// Not a number and a unit, finer than a picosecond, or more than 2^63 - 1 picoseconds (106 days).
pub fn time(text: &str) -> Result<Ps, QuantityError> {
    Unit::TIME.read(text).map(Ps)
}

/// Reads `5%` or `5`.
///
/// # Errors
/// Not a number from 0 on.
pub fn percent(text: &str) -> Result<f64, QuantityError> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|n| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| QuantityError { text: text.into(), expected: "a share such as 5%" })
}

/// A time as the standard library has it, in whole nanoseconds.
pub fn duration(text: &str) -> Result<std::time::Duration, QuantityError> {
    time(text).map(|time| std::time::Duration::from_nanos(time.0 / 1000))
}

/// Reads an energy in whole picojoules, at most 2^63 - 1 (9 MJ). The unit must be there.
///
/// # Errors
/// Not a number and a unit, finer than a picojoule, or more than 2^63 - 1 picojoules (9 MJ).
pub fn energy(text: &str) -> Result<Pj, QuantityError> {
    Unit::ENERGY.read(text).map(Pj)
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

/// Units of time: each is used for less than so many of it.
const TIME_UNITS: [(&str, f64, f64); 7] = [
    ("ps", 1.0, 999.5),
    ("ns", 1e3, 999.5),
    ("us", 1e6, 999.5),
    ("ms", 1e9, 999.5),
    ("s", 1e12, 599.5),
    ("min", 60e12, 599.95),
    ("h", 3600e12, f64::INFINITY),
];

fn in_unit(ps: f64) -> (f64, &'static str) {
    let of = |(unit, scale, end): &(&'static str, f64, f64)| (ps / scale < *end).then_some((ps / scale, *unit));
    TIME_UNITS.iter().find_map(of).unwrap_or((ps, "ps"))
}

/// A number with three digits.
fn three_digits(value: f64) -> String {
    format!(
        "{value:.*}",
        if value >= 99.95 {
            0
        } else if value >= 9.995 {
            1
        } else {
            2
        }
    )
}

/// A time with three digits and its unit: `85.2 us`, `924 ms`, `12.3 s`, `50.0 min`.
pub fn human_time(time: Ps) -> String {
    match in_unit(time.0 as f64) {
        (0.0, _) => "0".into(),
        (value, unit) => format!("{} {unit}", three_digits(value)),
    }
}

/// The same of seconds.
pub fn human_seconds(seconds: f64) -> String {
    human_time(Ps((seconds * 1e12).round() as u64))
}

/// A time with two decimals, for columns of times that add up.
pub fn fine_time(time: Ps) -> String {
    match in_unit(time.0 as f64) {
        (0.0, _) => "0".into(),
        (value, unit) => format!("{value:.2} {unit}"),
    }
}

/// An energy with its unit, as `12.34 mJ`.
pub fn human_energy(energy: Pj) -> String {
    let pj = energy.0 as f64;
    let (value, unit) = match energy.0 {
        0 => return "0".into(),
        1..=999_999 => (pj / 1e3, "nJ"),
        1_000_000..=999_999_999 => (pj / 1e6, "uJ"),
        1_000_000_000..=999_999_999_999 => (pj / 1e9, "mJ"),
        _ => (pj / 1e12, "J"),
    };
    format!("{value:.*} {unit}", if value >= 100.0 { 0 } else { 2 })
}

/// A count with blanks between thousands.
pub fn human_count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// So many things: `1 page`, `2 pages`, `12 000 processes`.
pub fn things(n: u64, one: &str) -> String {
    let ending = match n {
        1 => "",
        _ if one.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {one}{ending}", human_count(n))
}

/// How often: `once`, `2 times`.
pub fn how_often(n: u64) -> String {
    if n == 1 {
        "once".into()
    } else {
        things(n, "time")
    }
}

/// A size with two or three digits: `84 MiB`, `13.7 MiB`, `640 KiB`.
pub fn human_size(bytes: u64) -> String {
    let (value, unit) = match bytes {
        0..=1_048_575 => (bytes as f64 / 1024.0, "KiB"),
        1_048_576..=1_073_741_823 => (bytes as f64 / 1_048_576.0, "MiB"),
        _ => (bytes as f64 / 1_073_741_824.0, "GiB"),
    };
    // A tenth of zero is not printed.
    match (unit, value < 99.95) {
        ("KiB", _) | (_, false) => format!("{value:.0} {unit}"),
        _ => format!("{} {unit}", (value * 10.0).round() / 10.0),
    }
}

/// A size in the form of `--ram`: exact, and from one MiB on in MiB if eighths of one are enough.
pub fn ram_size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 30) != 0 && b % (1 << 17) == 0 => format!("{}MiB", b as f64 / 1_048_576.0),
        b => show_bytes(Bytes(b)),
    }
}

/// For serde: a time as a text with its unit, without rounding.
pub(crate) mod time_as_text {
    use coldframe_core::Ps;
    use serde::{de::Error, Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(time: &Ps, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::show_time(*time))
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Ps, D::Error> {
        super::Unit::TIME.read(&String::deserialize(from)?).map(Ps).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(
            [things(1, "page"), things(1000, "page"), things(2, "process")],
            ["1 page", "1 000 pages", "2 processes"]
        );
        assert_eq!([0, 1, 2].map(how_often), ["0 times", "once", "2 times"]);
    }

    #[test]
    fn times_have_three_digits_and_where_they_add_up_two_decimals() {
        let times = [0, 7, 85_220_000, 106_700_000, 9_999_000, 2_930_000, 4_550_000_000_000].map(Ps);
        assert_eq!(times.map(human_time), ["0", "7.00 ps", "85.2 us", "107 us", "10.0 us", "2.93 us", "4.55 s"]);
        assert_eq!(
            [999_600, 600_000_000_000_000, 36_000_000_000_000_000].map(|ps| human_time(Ps(ps))),
            ["1.00 us", "10.0 min", "10.0 h"]
        );
        assert_eq!([Pj(0), Pj(1_295_480), Pj(12_350_000_000)].map(human_energy), ["0", "1.30 uJ", "12.35 mJ"]);
        assert_eq!(times.map(fine_time), ["0", "7.00 ps", "85.22 us", "106.70 us", "10.00 us", "2.93 us", "4.55 s"]);
    }

    #[test]
    fn sizes_and_times_have_two_or_three_digits() {
        let mib = 1 << 20;
        assert_eq!(
            [84 * mib, 8 * mib + mib / 2, 640 << 10, 3 << 30].map(human_size),
            ["84 MiB", "8.5 MiB", "640 KiB", "3 GiB"]
        );
        assert_eq!(
            [0.0012, 0.056, 0.924, 12.34, 123.4, 3000.0].map(human_seconds),
            ["1.20 ms", "56.0 ms", "924 ms", "12.3 s", "123 s", "50.0 min"]
        );
        assert_eq!([14_004 << 10, 999 * mib + mib / 2].map(human_size), ["13.7 MiB", "1000 MiB"]);
        assert_eq!([68 * mib, 2 << 30, 300 << 10].map(ram_size), ["68MiB", "2GiB", "300KiB"]);
        assert_eq!([38_400 << 10, 14_080 << 10, 14_004 << 10].map(ram_size), ["37.5MiB", "13.75MiB", "14004KiB"]);
        for size in [68 * mib, 38_400 << 10, 14_080 << 10, 14_004 << 10] {
            assert_eq!(bytes(&ram_size(size)), Ok(Bytes(size)), "as it is typed");
        }
    }

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
            assert!(bytes(text).is_err() && bytes_with_unit(text).is_err(), "{text}");
        }
        assert_eq!(bytes_with_unit("64MiB"), Ok(Bytes(64 << 20)));
        for text in ["0", "64", "4096 ", "1.5"] {
            let refused = bytes_with_unit(text).unwrap_err().to_string();
            assert_eq!(refused, format!("`{text}` cannot be read; give a size with its unit, such as 64MiB"));
        }
    }
}
