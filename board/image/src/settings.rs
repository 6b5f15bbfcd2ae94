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
    /// Bytes of the data region.
    pub data: u32,
    /// Erase blocks of the data region's swap area on the chip; none without.
    pub blocks: Option<u32>,
    /// The pages' slots are in byte-addressable memory, where they are read (DR.Swap).
    pub nvm: bool,
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
        let nvm = match value("area") {
            None => false,
            Some("nvm") => true,
            Some(other) => panic!("there is no area={other}; give area=nvm, or none"),
        };
        let blocks = value("data").filter(|_| !nvm).map(|_| number("blocks"));
        let both = value("journal").is_some() && blocks.is_some();
        assert!(
            !both,
            "journal= and data= go together with area=nvm only: a journal's head tells nothing of a swap area"
        );
        Settings {
            policy: PolicyChoice::parse(given("policy")).unwrap_or_else(|e| panic!("{e}")),
            handler: handler::find(handler).unwrap_or_else(|| panic!("there is no handler `{handler}`")),
            frames: number("frames"),
            image: number("image"),
            data: value("data").map_or(0, |_| number("data")),
            blocks,
            nvm,
            out: given("out"),
            journal: value("journal"),
        }
    }
}
