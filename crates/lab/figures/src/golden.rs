//! Printed figures as data: a paper's `golden.toml`. Names are those of the paper's tables, and units are in the names.

use toml::Value;

/// A paper's printed figures.
pub struct Golden(Value);

impl Golden {
    /// Reads a file's text.
    ///
    /// # Panics
    /// If it is not TOML. The files are part of the program and tested.
    pub fn read(text: &str) -> Golden {
        Golden(Value::Table(text.parse().expect("golden.toml is tested")))
    }

    /// What has this name, with the tables before it: `fig7.sequential_us.walk_1`.
    ///
    /// # Panics
    /// If there is nothing, as all of these.
    pub fn at(&self, name: &str) -> &Value {
        let value_at = name.split('.').try_fold(&self.0, |value, key| value.get(key));
        value_at.unwrap_or_else(|| panic!("golden.toml has no {name}"))
    }

    pub fn number(&self, name: &str) -> f64 {
        number(self.at(name))
    }

    pub fn numbers<const N: usize>(&self, name: &str) -> [f64; N] {
        numbers(self.at(name))
    }

    pub fn keys(&self, name: &str) -> impl Iterator<Item = &str> {
        self.at(name).as_table().expect("a table").keys().map(String::as_str)
    }
}

fn number(value: &Value) -> f64 {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64)).expect("a number")
}

/// A value that is a list of numbers.
///
/// # Panics
/// If it is not, or has another length.
pub fn numbers<const N: usize>(value: &Value) -> [f64; N] {
    let list = value.as_array().expect("a list");
    assert_eq!(list.len(), N, "{list:?}");
    std::array::from_fn(|i| number(&list[i]))
}
