//! Files by the suffix of their name: what a name asks for is written, or the name is refused by the parser.

use std::path::{Path, PathBuf};

/// The suffix of a name.
pub fn of(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// A trace to write.
///
/// # Errors
/// The name asks for another form.
pub fn trace(name: &str) -> Result<PathBuf, String> {
    one_of(name, &["parquet"])
}

/// Settings to write.
///
/// # Errors
/// The name asks for another form.
pub fn settings(name: &str) -> Result<PathBuf, String> {
    one_of(name, &["toml"])
}

/// A picture to write: its name must say in which form.
///
/// # Errors
/// The name asks for another form, or for none.
pub fn picture(name: &str) -> Result<PathBuf, String> {
    let forms = ["svg", "png"];
    of(Path::new(name)).ok_or_else(|| other(&forms)).and_then(|_| one_of(name, &forms))
}

/// A name that ends in one of these, or that has no suffix and so asks for none.
///
/// # Errors
/// The name asks for another form.
pub fn one_of(name: &str, forms: &[&str]) -> Result<PathBuf, String> {
    let path = Path::new(name);
    of(path).is_none_or(|form| forms.contains(&form)).then(|| path.into()).ok_or_else(|| other(forms))
}

fn other(forms: &[&str]) -> String {
    format!("it cannot be written in that form; give a name that ends in .{}", forms.join(" or ."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_asks_for_another_form_is_refused() {
        for (name, fits) in [("a.svg", true), ("b/a.png", true), ("a.jpg", false), ("a", false), ("svg", false)] {
            assert_eq!(picture(name).is_ok(), fits, "{name}");
        }
        for (name, fits) in [("a.parquet", true), ("/dev/null", true), ("a.csv", false), ("a.parquet.zst", false)] {
            assert_eq!(trace(name).is_ok(), fits, "{name}");
        }
    }
}
