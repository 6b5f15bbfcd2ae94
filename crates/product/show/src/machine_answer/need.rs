//! What a program takes and needs: its time, its heap, and what is not paged.

use coldframe_answer::{Answer, Method, NotPaged};
use coldframe_sheet::quantity::{human_seconds, human_size};

/// The first sentences: the time, the size and its parts.
pub(super) fn needs(answer: &Answer) -> String {
    let (heap, rest) = (answer.managed_bytes.max(answer.together_bytes), answer.not_paged_bytes);
    let of_heap = match (answer.processes, answer.recorded()) {
        (2.., Some(_)) => format!(" at one time (the largest process {})", human_size(answer.managed_bytes)),
        _ => String::new(),
    };
    let parts = match rest {
        0 => format!("of heap{of_heap}; its other memory is not known"),
        rest => {
            let kinds = answer.not_paged.as_ref().filter(|_| 10 * rest > heap + rest).map_or(String::new(), kinds);
            format!("heap {}{of_heap}, the rest {}{kinds}", human_size(heap), human_size(rest))
        }
    };
    let joint = if rest == 0 { " " } else { ": " };
    let ended = match answer.exit {
        Some(0) => String::new(),
        Some(code) => format!(" It ended with exit code {code}."),
        None => " A signal ended it.".into(),
    };
    let (time, size) = (alone(answer), human_size(heap + rest));
    let about = if answer.method() == Method::ReferencedBits { "about " } else { "" };
    format!("{} takes {time} and needs {about}{size}{joint}{parts}.{ended}", answer.program)
}

/// The program's own time.
fn alone(answer: &Answer) -> String {
    let time = human_seconds(answer.program_seconds);
    if answer.plain().is_some() {
        time
    } else {
        format!("about {time}")
    }
}

/// The kinds of what is not paged that are a tenth of all of it or more.
pub(super) fn kinds(not_paged: &NotPaged) -> String {
    let named = [
        ("mapped files {}", not_paged.files_bytes),
        ("shared memory {}", not_paged.shared_bytes),
        ("code {}", not_paged.code_bytes),
        ("stacks {}", not_paged.stacks_bytes),
        ("other {}", not_paged.other_bytes),
    ];
    let sum: u64 = named.iter().map(|(_, bytes)| bytes).sum();
    let named = named.iter().filter(|(_, bytes)| 10 * bytes >= sum.max(1));
    let words: Vec<String> = named.map(|(words, bytes)| words.replace("{}", &human_size(*bytes))).collect();
    format!(" ({})", words.join("; "))
}
