//! The command line: `policy=clock handler=parallel frames=16 pages=64`, and the files to write.

use coldframe_core::fault::handler::{self, Handler};
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::{Window, LIST_MAX};
use coldframe_core::Ps;

use crate::mmu::TASKS;
use crate::platform;
use crate::prefetch::Choice;

/// A run.
pub struct Settings<'a> {
    /// Policy with its parameters, as coldframe's command line takes it.
    pub policy: PolicyChoice,
    /// Handler.
    pub handler: &'static Handler,
    /// Frames of RAM.
    pub frames: u32,
    /// Bytes of the programs' images in the chip, one after the other; each is a task.
    pub images: [u32; TASKS as usize],
    /// How many programs there are.
    pub tasks: usize,
    /// Bytes of the data region of each.
    pub data: u32,
    /// Erase blocks of the data regions' swap area on the chip; none without.
    pub blocks: Option<u32>,
    /// Logs of the swap area, to which the tasks are distributed.
    pub logs: u32,
    /// A slice of each task, in ticks of the clock.
    pub slice: Option<u64>,
    /// What is loaded before a task waits for it.
    pub prefetch: Choice,
    /// The pages' slots are in byte-addressable memory, where they are read (DR.Swap).
    pub nvm: bool,
    /// File of the host for what the first program writes. Those of the others have 2, 3 and 4 behind its name.
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
        let (images, tasks) = images(given("image"));
        let slice = value("slice").map(|_| platform::ticks(Ps::from_us(number("slice").into())));
        assert!(tasks == 1 || slice.is_some(), "programs take turns; give slice=, in microseconds");
        let start = value("sap").map(|_| number("sap").into());
        assert!(start.is_none() || tasks > 1, "sap= loads the next task's pages; give more programs");
        let window = match value("read-ahead") {
            None => Window::Alone,
            Some(_) => Window::Block(number("read-ahead")),
        };
        assert!(window.slots().is_power_of_two(), "read-ahead={}; give 8, 16 or 32", window.slots());
        let list_max = value("list").map_or(LIST_MAX, |_| number("list") as usize);
        Settings {
            policy: PolicyChoice::parse(given("policy")).unwrap_or_else(|e| panic!("{e}")),
            handler: handler::find(handler).unwrap_or_else(|| panic!("there is no handler `{handler}`")),
            frames: number("frames"),
            images,
            tasks,
            data: value("data").map_or(0, |_| number("data")),
            blocks,
            logs: value("logs").map_or(1, |_| number("logs")),
            slice,
            prefetch: Choice { start, list_max, window },
            nvm,
            out: given("out"),
            journal: value("journal"),
        }
    }
}

/// Bytes of the images, and how many there are.
fn images(text: &str) -> ([u32; TASKS as usize], usize) {
    let (mut images, mut tasks) = ([0; TASKS as usize], 0);
    for bytes in text.split(',') {
        let image = images.get_mut(tasks).unwrap_or_else(|| panic!("image={text}; give at most {TASKS}"));
        *image = bytes.parse().unwrap_or_else(|_| panic!("image={text} is no number of bytes"));
        tasks += 1;
    }
    (images, tasks)
}
