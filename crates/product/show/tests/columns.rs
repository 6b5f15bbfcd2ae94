//! Tables of what runs, which no test of the command line can fix: their numbers on narrow terminals.

use std::collections::VecDeque;
use std::time::Duration;

use coldframe_answer::run::paged::Snapshot;
use coldframe_answer::service::park::{Parked, Program};
use coldframe_answer::service::top::Top;
use coldframe_show::{parked, text, top};

fn look(read: u64) -> Top {
    let now = Snapshot { resident: 7_680, frames: 8_000, device_bytes_read: read, ..Snapshot::default() };
    let program = "./shop --a-long-option 4000000 400000 and some more words of its command line".into();
    Top { process: 1_234_567, program, user: "somebody".into(), seconds: Some(1.0), now }
}

#[test]
fn top_and_park_show_their_numbers_and_the_program_in_80_and_in_60_columns() {
    let looks: VecDeque<Top> = [0, 4_096 * 12_345].map(look).into();
    let bytes = serde_json::json!({ "ram": 1 << 20, "swapped": 123 << 20, "listed": 45 << 20 });
    let program: Program = serde_json::from_value(serde_json::json!({
        "name": "a-very-long-name-of-a-unit@instance.service", "process": 1_234_567, "program": "jupyter-notebook",
        "user": "somebody", "parked": true, "bytes": bytes }))
    .unwrap();
    let parked = Parked { programs: vec![program] };
    for columns in [80, 60] {
        text::fit(columns);
        let all = top::list(&[&looks], Some(Duration::from_secs(1)));
        for words in ["30.0 MiB", "31.2 MiB", "12 345", "1234567", "./shop", "reads/s", "in RAM"] {
            assert!(all.contains(words), "{columns}, {words}:\n{all}");
        }
        let list = parked::table(&parked);
        for words in ["1 MiB", "123 MiB", "45 MiB", "1234567", "a-very-long", "used", "in swap"] {
            assert!(list.contains(words), "{columns}, {words}:\n{list}");
        }
        for text in [all, list] {
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{text}");
        }
    }
}
