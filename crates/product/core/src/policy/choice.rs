//! The names of policies, `name:key=value,...`: reading and printing.
//!
//! This is in the core because all users of an engine read such a name: the board in its settings, the live pager in
//! its environment, a replay in the head of a journal. A policy reads its values from [`Arguments`].

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::{find, Made, PolicySpec, ALL, INSERT_BIT};

/// A parameter of a policy, `key=value` on the command line.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The key.
    pub name: &'static str,
    /// What it means, with its unit and source.
    pub help: &'static str,
    /// The values that it takes.
    pub kind: ParamKind,
}

/// The values that a parameter takes.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A whole number, at least `min`. Without a default it must be given.
    Count {
        /// The least.
        min: u32,
        /// The default.
        default: Option<u32>,
    },
    /// A number of frames: a whole number from 1 on, or a percentage of all frames.
    Frames {
        /// The default in percent of all frames; `None`: the parameter must be given.
        default_percent: Option<u32>,
    },
    /// Like `Count`; the default is no limit.
    Limit,
    /// `set` or `clear`.
    Bit {
        /// Whether `set` is the default.
        default: bool,
    },
}

/// A value that was given or is the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// A whole number.
    Count(u32),
    /// A percentage of all frames.
    Percent(u32),
    /// No limit.
    Unlimited,
    /// Set or clear.
    Bit(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(n) => write!(f, "{n}"),
            Value::Percent(n) => write!(f, "{n}%"),
            Value::Unlimited => f.write_str("unlimited"),
            Value::Bit(true) => f.write_str("set"),
            Value::Bit(false) => f.write_str("clear"),
        }
    }
}

/// A policy with values for all its parameters, as in `name:key=value,...`.
#[derive(Clone, Debug)]
pub struct PolicyChoice {
    /// The policy.
    pub spec: &'static PolicySpec,
    /// Its values.
    pub arguments: Arguments,
}

/// Values for all parameters of a policy, in the order of `PolicySpec::params`.
#[derive(Clone, Debug)]
pub struct Arguments {
    policy: &'static str,
    params: &'static [Param],
    values: Vec<Value>,
}

impl PolicyChoice {
    /// Reads `name` or `name:key=value,...`.
    ///
    /// # Errors
    /// An unknown name or key, a value that cannot be read, or a missing value. `build` checks whether the values fit
    /// the frames.
    pub fn parse(text: &str) -> Result<PolicyChoice, PolicyError> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let spec = find(name).ok_or_else(|| PolicyError::UnknownPolicy { name: name.to_string() })?;
        Ok(PolicyChoice { spec, arguments: Arguments::parse(spec.name, spec.params, rest)? })
    }

    /// Makes the policy.
    ///
    /// # Errors
    /// [`PolicyError::OutOfRange`] if a value does not fit the number of frames.
    pub fn build(&self, frames: usize, pages: usize) -> Result<Made, PolicyError> {
        let insert_bit =
            self.spec.params.iter().all(|p| p.name != INSERT_BIT.name) || self.arguments.bit(INSERT_BIT.name);
        Ok(Made { policy: (self.spec.build)(&self.arguments, frames, pages)?, insert_bit })
    }

    /// Like [`fmt::Display`], without values that are the default.
    pub fn short(&self) -> String {
        let Arguments { params, values, .. } = &self.arguments;
        let given = params.iter().zip(values).filter(|(param, value)| param.default() != Some(**value));
        let parts: Vec<String> = given.map(|(param, value)| alloc::format!("{}={value}", param.name)).collect();
        let colon = if parts.is_empty() { "" } else { ":" };
        alloc::format!("{}{colon}{}", self.spec.name, parts.join(","))
    }
}

impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.spec.name, self.arguments)
    }
}

impl Arguments {
    /// Reads `key=value,...` for the given parameters. Oracles outside this crate use it, too.
    ///
    /// # Errors
    /// As [`PolicyChoice::parse`].
    pub fn parse(policy: &'static str, params: &'static [Param], text: Option<&str>) -> Result<Arguments, PolicyError> {
        let mut given: Vec<Option<Value>> = params.iter().map(|_| None).collect();
        for part in text.into_iter().flat_map(|t| t.split(',')) {
            let (key, value) = part.split_once('=').ok_or_else(|| PolicyError::BadValue {
                policy,
                param: part.to_string(),
                value: String::new(),
                expected: "key=value, with commas between",
            })?;
            let i = params
                .iter()
                .position(|p| p.name == key)
                .ok_or_else(|| PolicyError::UnknownParam { policy, param: key.to_string() })?;
            given[i] = Some(params[i].read(policy, value)?);
        }
        let values = params.iter().zip(given).map(|(param, value)| match value {
            Some(value) => Ok(value),
            None => param.default().ok_or(PolicyError::Missing { policy, param: param.name }),
        });
        Ok(Arguments { policy, params, values: values.collect::<Result<_, _>>()? })
    }

    fn value(&self, name: &str) -> (&'static Param, Value) {
        let i = self.params.iter().position(|p| p.name == name).expect("a policy asks for its own parameters");
        (&self.params[i], self.values[i])
    }

    /// A bit parameter.
    pub fn bit(&self, name: &str) -> bool {
        matches!(self.value(name).1, Value::Bit(true))
    }

    /// A count. The caller gives the bounds that the number of frames allows.
    ///
    /// # Errors
    /// [`PolicyError::OutOfRange`] outside `min..=max`.
    pub fn count(&self, name: &str, frames: usize, min: u32, max: u32) -> Result<u32, PolicyError> {
        let (param, value) = self.value(name);
        let value = match value {
            Value::Count(n) => n,
            Value::Percent(n) => ((frames as u64 * u64::from(n) / 100) as u32).max(1),
            Value::Unlimited | Value::Bit(_) => max,
        };
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        Err(PolicyError::OutOfRange { policy: self.policy, param: param.name, value, min, max, frames })
    }

    /// A limit; `None` if there is none.
    pub fn limit(&self, name: &str) -> Option<u32> {
        match self.value(name).1 {
            Value::Count(n) => Some(n),
            _ => None,
        }
    }
}

impl fmt::Display for Arguments {
    /// `:key=value,...` with every value in force, or nothing if there are no parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (param, value)) in self.params.iter().zip(&self.values).enumerate() {
            write!(f, "{}{}={value}", if i == 0 { ":" } else { "," }, param.name)?;
        }
        Ok(())
    }
}

impl Param {
    pub(super) fn default(&self) -> Option<Value> {
        match self.kind {
            ParamKind::Count { default, .. } => default.map(Value::Count),
            ParamKind::Frames { default_percent } => default_percent.map(Value::Percent),
            ParamKind::Limit => Some(Value::Unlimited),
            ParamKind::Bit { default } => Some(Value::Bit(default)),
        }
    }

    /// The accepted values, in words.
    pub fn expected(&self) -> &'static str {
        match self.kind {
            ParamKind::Count { min: 0, .. } => "a whole number from 0 on",
            ParamKind::Count { .. } => "a whole number from 1 on",
            ParamKind::Frames { .. } => "a number of frames from 1 on, or a percentage of all frames (1% to 100%)",
            ParamKind::Limit => "a whole number from 0 on, or `unlimited`",
            ParamKind::Bit { .. } => "`set` or `clear`",
        }
    }

    fn read(&self, policy: &'static str, text: &str) -> Result<Value, PolicyError> {
        let number = text.parse::<u32>().ok();
        let percent = text.strip_suffix('%').and_then(|t| t.parse::<u32>().ok());
        let value = match self.kind {
            ParamKind::Count { min, .. } => number.filter(|n| *n >= min).map(Value::Count),
            ParamKind::Frames { .. } => number
                .filter(|n| *n >= 1)
                .map(Value::Count)
                .or(percent.filter(|n| (1..=100).contains(n)).map(Value::Percent)),
            ParamKind::Limit if text == "unlimited" => Some(Value::Unlimited),
            ParamKind::Limit => number.map(Value::Count),
            ParamKind::Bit { .. } => match text {
                "set" => Some(Value::Bit(true)),
                "clear" => Some(Value::Bit(false)),
                _ => None,
            },
        };
        value.ok_or_else(|| PolicyError::BadValue {
            policy,
            param: self.name.to_string(),
            value: text.to_string(),
            expected: self.expected(),
        })
    }
}

/// Why a policy cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum PolicyError {
    /// No policy of this name.
    UnknownPolicy { name: String },
    /// The policy has no parameter of this name.
    UnknownParam { policy: &'static str, param: String },
    /// A part is not `key=value`, or the value cannot be read.
    BadValue { policy: &'static str, param: String, value: String, expected: &'static str },
    /// A parameter without a default was not given.
    Missing { policy: &'static str, param: &'static str },
    /// A parameter does not fit the number of frames.
    OutOfRange {
        policy: &'static str,
        param: &'static str,
        value: u32,
        min: u32,
        /// The most it may be with this number of frames; below `min` if there is no fitting value.
        max: u32,
        frames: usize,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::UnknownPolicy { name } => {
                write!(f, "there is no policy `{name}`; there are ")?;
                list(f, ALL.iter().map(|spec| spec.name))
            }
            PolicyError::UnknownParam { policy, param } => {
                write!(f, "policy `{policy}` has no parameter `{param}`; it has ")?;
                let params = find(policy).map_or(&[][..], |spec| spec.params);
                if params.is_empty() {
                    return f.write_str("none");
                }
                list(f, params.iter().map(|param| param.name))
            }
            PolicyError::BadValue { policy, param, value, expected } => {
                write!(f, "policy `{policy}`: `{param}={value}` cannot be read; give {expected}")
            }
            PolicyError::Missing { policy, param } => {
                write!(f, "policy `{policy}` needs `{param}`; write {policy}:{param}=...")
            }
            PolicyError::OutOfRange { policy, param, value, min, max, frames } if max < min => {
                write!(f, "policy `{policy}`: `{param}={value}` cannot be with {frames} frame(s); give it more frames")
            }
            PolicyError::OutOfRange { policy, param, value, min, max, frames } => {
                write!(
                    f,
                    "policy `{policy}`: `{param}={value}` is out of range; with {frames} frames give {min} to {max}"
                )
            }
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'static str>) -> fmt::Result {
    for (i, name) in names.enumerate() {
        write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
    }
    Ok(())
}

impl core::error::Error for PolicyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_prints_every_value_in_force_and_reads_back() {
        for text in
            ["fifo", "clock", "clock:insert-bit=clear", "pa-clock:budget=13", "fifo-sc:valid=25%", "pa-fifo-sc:valid=9"]
        {
            let choice = PolicyChoice::parse(text).unwrap();
            let printed = choice.to_string();
            assert_eq!(PolicyChoice::parse(&printed).unwrap().to_string(), printed);
            assert!(printed.starts_with(text), "{printed}");
            assert_eq!(choice.short(), text);
        }
    }

    #[test]
    fn a_bad_choice_says_what_may_be_written() {
        let refusal = |text: &str| match PolicyChoice::parse(text).map(|c| c.build(8, 64).map(|_| ())) {
            Err(error) | Ok(Err(error)) => error.to_string(),
            Ok(Ok(())) => panic!("{text} was taken"),
        };
        for (text, part) in [
            ("", "there is no policy ``; there are fifo, clock"),
            ("clok", "there is no policy `clok`"),
            ("fifo:valid=1", "has no parameter `valid`; it has none"),
            ("clock:bit=set", "has no parameter `bit`; it has insert-bit"),
            ("clock:insert-bit", "give key=value"),
            ("clock:", "give key=value"),
            ("clock:insert-bit=maybe", "give `set` or `clear`"),
            ("pa-clock", "needs `budget`; write pa-clock:budget="),
            ("pa-clock:budget=0", "a whole number from 1 on"),
            ("pa-clock:budget=-3", "a whole number from 1 on"),
            ("pa-clock:budget=99999999999", "a whole number from 1 on"),
            ("fifo-sc:valid=0", "a number of frames from 1 on"),
            ("fifo-sc:valid=101%", "1% to 100%"),
            ("fifo-sc:valid=9", "with 8 frames give 1 to 8"),
            ("two-handed-clock:spread=8", "with 8 frames give 1 to 7"),
            ("pa-fifo-sc:valid=2,max-downgrades=x", "or `unlimited`"),
        ] {
            assert!(refusal(text).contains(part), "{text}: {}", refusal(text));
        }
    }
}
