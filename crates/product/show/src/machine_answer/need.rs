//! What a program takes and needs: its time, its heap, and what is not paged.

use coldframe_answer::{Answer, Method, NotPaged, Watched};
use coldframe_sheet::quantity::{human_count, human_seconds, human_size};

/// The first sentences: the time, the size and its parts.
pub(super) fn needs(answer: &Answer) -> String {
    let (heap, rest) = (answer.managed_bytes.max(answer.together_bytes), answer.not_paged_bytes);
    let of_heap = match (answer.processes, answer.recorded()) {
        (2.., Some(_)) => format!("of heap at one time (the largest process {})", human_size(answer.managed_bytes)),
        _ => "of heap".into(),
    };
    let parts = match rest {
        0 => format!("{of_heap}; memory that is not paged comes on top"),
        rest => {
            let kinds = answer.not_paged.as_ref().filter(|_| 10 * rest > heap + rest).map_or(String::new(), kinds);
            format!("{} {of_heap}, {} not paged{kinds}", human_size(heap), human_size(rest))
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
    match answer.watched().and_then(|watched| watched.process) {
        Some(process) => {
            let (time, idle) =
                (human_seconds(answer.program_seconds), answer.watched().map_or(String::new(), hardly_works));
            format!(
                "{} (process {process}), watched for {time}, has {about}{size}{joint}{parts}.{idle}",
                answer.program
            )
        }
        None => format!("{} takes {time} and needs {about}{size}{joint}{parts}.{ended}", answer.program),
    }
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

/// What a process did that used the processor for less than a hundredth of the time.
fn hardly_works(watched: &Watched) -> String {
    if watched.worked_seconds > watched.common.program_seconds / 100.0 {
        return String::new();
    }
    let (pages, time) = (human_count(watched.touched_pages), human_seconds(watched.common.program_seconds));
    format!(" It hardly worked: {pages} pages touched in {time}; watch it when it has work to do.")
}

#[cfg(test)]
mod tests {
    use coldframe_answer::Common;

    use super::*;

    #[test]
    fn a_process_that_used_the_processor_for_a_hundredth_of_the_time_hardly_worked() {
        let watched = |worked_seconds| Watched {
            common: Common { program_seconds: 6.0, ..Common::default() },
            process: Some(7),
            worked_seconds,
            touched_pages: 17,
            swap: None,
        };
        assert_eq!(hardly_works(&watched(0.07)), "");
        assert!(hardly_works(&watched(0.01)).starts_with(" It hardly worked: 17 pages touched in 6.00 s"));
    }
}
