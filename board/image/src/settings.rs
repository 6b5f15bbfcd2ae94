//! The command line: `policy=clock handler=parallel frames=16 pages=64`, and the files to write.

use coldframe_core::fault::handler::{self, Handler};
use coldframe_core::policy::PolicyChoice;

/// A run.
pub struct Settings<'a> {
    /// Policy with its parameters, as coldframe's command line takes it.
    pub policy: PolicyChoice,
    /// Handler.
    pub handler: &'static Handler,
    /// Frames of RAM.
    pub frames: u32,
    /// Bytes of the program's image in the chip.
    pub image: u32,
    /// Bytes of the data region, and erase blocks of its swap area; none without.
    pub swap: Option<(u32, u32)>,
    /// File of the host for what the program writes.
    pub out: &'a str,
    /// File of the host for the journal; none is kept without.
    pub journal: Option<&'a str>,
}

impl<'a> Settings<'a> {
    /// Reads the words after the image's own name.
    ///
    /// # Panics
    /// On a word that says nothing, or a missing one, with the word.
    pub fn parse(line: &'a str) -> Settings<'a> {
        let value =
            |key: &str| line.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let given = |key: &str| value(key).unwrap_or_else(|| panic!("the command line gives no {key}="));
        let number =
            |key: &str| given(key).parse::<u32>().unwrap_or_else(|_| panic!("{key}={} is no number", given(key)));
        let handler = given("handler");
        let both = value("journal").is_some() && value("data").is_some();
        assert!(!both, "journal= and data= do not go together: a journal's head tells nothing of a swap area");
        Settings {
            policy: PolicyChoice::parse(given("policy")).unwrap_or_else(|e| panic!("{e}")),
            handler: handler::find(handler).unwrap_or_else(|| panic!("there is no handler `{handler}`")),
            frames: number("frames"),
            image: number("image"),
            swap: value("data").map(|_| (number("data"), number("blocks"))),
            out: given("out"),
            journal: value("journal"),
        }
    }
}
