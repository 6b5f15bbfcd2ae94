//! The readers of data from outside, with valid inputs.

use coldframe_core::fault::handler;
use coldframe_core::{Caps, Config, Event};
use coldframe_journal::{Entry, Head, Journal};

/// A reader under test.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Valid inputs, or nearly valid ones.
    pub seeds: Vec<Vec<u8>>,
    /// Reads an input; the result does not matter.
    pub read: fn(&[u8]),
}

/// A target for a reader of the trace crate.
macro_rules! reader {
    ($name:literal, $seeds:expr) => {
        Target { name: $name, seeds: $seeds, read: |d| drop(coldframe_formats::format::fuzz_read($name, d)) }
    };
}

const DAMO: &[u8] = br#"[{"target_id":0,"snapshots":[{"end_time":"1,100","regions":[
    {"start":"4,096","end":8192,"nr_accesses":{"samples":3}}]}]}]"#;
const SWAP: &[u8] = b"ts_ns,op,slot,pid,vpn,type,flag
5,out,7,28,b2e23,heap,a
6,evict,7,28,b2e23,heap,w
9,fault,7,28,b2e23,heap,Mw
9,mark,,,,,a, b
";

/// Numbers of 32 bits, little-endian.
fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Every reader of data from outside.
pub fn targets() -> Vec<Target> {
    let lackey = b"==7== x\nI  0401ab70,3\n L 1fff000740,8\n S 1fff000748,8\n M 04038e10,4\n".to_vec();
    let din = b"2 400000\n0 7fff0010 rest\n1 7fff0014\n4 0\n".to_vec();
    let zst = |text: &[u8]| [&[0x28, 0xb5, 0x2f, 0xfd, 0x00][..], text].concat();
    vec![
        reader!("lackey", vec![lackey.clone(), zst(&lackey)]),
        reader!("din", vec![din]),
        Target {
            name: "swap",
            seeds: vec![SWAP.to_vec()],
            read: |d| {
                let input = coldframe_formats::format::Input::Bytes(d.to_vec().into());
                drop(coldframe_formats::swap::read_input(input));
            },
        },
        reader!("damon", vec![DAMO.to_vec()]),
        reader!("blkparse", vec![b"8,0 3 1 0.000000001 697 D W 223490 + 8 [kj]\n".to_vec()]),
        reader!("oracleGeneral", vec![words(&[1, 7, 0, 100, 0, 0]).repeat(3)]),
        reader!("vscsi", vec![words(&[1, 512, 1, 0x0100_002a, 9, 0, 5, 0]).repeat(3)]),
        reader!("msr", vec![b"128166372003061629,src1,0,Read,7014609920,24576,41286\n".to_vec()]),
        reader!("fio", vec![b"fio version 3 iolog\n26 f add\n175 f write 0 4096\n".to_vec()]),
        reader!("csv", vec![b"4096,512,r,1,5\n".to_vec()]),
        reader!("block-csv", vec![b"4096,512,r,1,5\n".to_vec()]),
        reader!("tsv", vec![b"4096\t512\tr\t1\t5\n".to_vec()]),
        reader!("blanks", vec![b"4096 512 r 1 5\n".to_vec()]),
        Target { name: "store", seeds: vec![store()], read: |d| drop(coldframe_store::store::fuzz_read(d)) },
        Target { name: "journal", seeds: vec![journal(), lent()], read: |d| drop(coldframe_journal::replay(d)) },
        Target {
            name: "settings",
            seeds: vec![b"policy = \"clock\"\nframes = 3\n[limit]\nskip = 1\n[time]\nprogram = \"1us\"\n".to_vec()],
            read: |d| {
                let text = String::from_utf8_lossy(d);
                drop(coldframe_experiment::Settings::read(
                    Some(("fuzz", &text)),
                    &[text.lines().next().unwrap_or_default().into()],
                ));
            },
        },
        Target {
            name: "sheet",
            seeds: coldframe_sheet::sheet::SHIPPED.iter().map(|(_, text)| text.as_bytes().to_vec()).collect(),
            read: |d| drop(coldframe_sheet::sheet::parse("fuzz", &String::from_utf8_lossy(d))),
        },
        Target {
            name: "policy",
            seeds: ["clock:insert-bit=clear", "pa-fifo-sc:valid=25%,max-downgrades=4", "clock-pro:cold=5%"]
                .map(|s| s.into())
                .to_vec(),
            read: |d| {
                if let Ok(choice) = coldframe_core::policy::PolicyChoice::parse(&String::from_utf8_lossy(d)) {
                    for frames in [1, 2, 7] {
                        drop(choice.build(frames, 20));
                    }
                }
            },
        },
        Target {
            name: "quantity",
            seeds: ["18.96us", "64KiB", "1.5MiB", "213 s"].map(|s| s.into()).to_vec(),
            read: |d| {
                let text = String::from_utf8_lossy(d);
                drop((coldframe_sheet::quantity::time(&text), coldframe_sheet::quantity::bytes(&text)));
            },
        },
    ]
}

/// A small trace in the store's format, as bytes.
fn store() -> Vec<u8> {
    use coldframe_store::{Block, Columns, Fidelity, Kind, Provenance, Reference, Writer};
    let path =
        std::env::temp_dir().join(format!("coldframe-fuzz-{}-{}.parquet", std::process::id(), fastrand::u64(..)));
    let write = || -> Result<Vec<u8>, Box<dyn std::error::Error>> {
        let mut writer = Writer::create(&path, Columns { time: true, count: true, task: true })?;
        let kinds = [Kind::Fetch, Kind::Read, Kind::Write];
        let block: Block =
            (0..300u64).map(|i| Reference::new(0x1000 + i * 24, 1 + i as u32 % 8, kinds[i as usize % 3])).collect();
        writer.write(&block)?;
        writer.finish(Provenance::new("fuzz", Fidelity::ExactReferences))?;
        Ok(std::fs::read(&path)?)
    };
    let bytes = write();
    let _ = std::fs::remove_file(&path);
    bytes.expect("a small trace can be written")
}

/// A few faults, written by hand.
fn journal() -> Vec<u8> {
    let head = "coldframe journal 10\npolicy=clock:insert-bit=set\nhandler=parallel\n\
                frames=1\npages=4\ntasks=1\nevict_batch=1\n\
                reference_bit=true\ndirty_bit=true\nbuffers=2\ndirect_read=true\nplaces=false\n\
                slots=3\nfiles_min=0\narrival=mapped\nslots_per_block=0\nareas=0\n\n";
    // Fault of task 0 on page 1, PreProcess, Load, LoadStopover, GetFreeframe; Loaded, Move, ...
    [head.as_bytes(), &[1, 0, 0, 1, 16, 0, 0, 0, 32, 0, 1, 1, 0, 18, 0, 0, 0, 17, 0, 0, 0, 3, 5, 0, 33, 1, 0, 0]]
        .concat()
}

/// Frames given away and got back.
fn lent() -> Vec<u8> {
    let caps = Caps { reference_bit: true, dirty_bit: true, buffers: 2, direct_read: false, places: false };
    let config = Config { frames: 8, pages: 8, tasks: 1, evict_batch: 1, caps };
    let mut journal = Journal::new(&Head::new("clock", handler::ALL[0], config));
    for event in [Event::Lend { frames: 6 }, Event::Borrow { frames: 5 }, Event::Lend { frames: 1 }] {
        journal.write(&Entry::Event { now: 7, event });
    }
    journal.drain()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_a_target() {
        let targets = targets();
        let missing = |name: &&str| targets.iter().all(|target| target.name != *name);
        let names = coldframe_formats::FORMATS.iter().map(|format| format.name);
        assert_eq!(names.filter(missing).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn the_seeds_are_good_or_nearly_so() {
        assert!(coldframe_store::store::fuzz_read(&store()).is_ok());
        let replayed = coldframe_journal::replay(&journal());
        assert!(replayed.unwrap_err().to_string().contains("its end"), "the seed ends in the middle of a fault");
        assert_eq!(coldframe_journal::replay(&lent()).unwrap().events, 3);
    }
}
