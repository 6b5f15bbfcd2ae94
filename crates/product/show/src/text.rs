//! Text in lines that fit the page: the terminal's columns, of which sentences use at most 80.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use textwrap::core::Word;
use textwrap::wrap_algorithms::wrap_first_fit;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// The most columns of a sentence.
const SENTENCE: usize = 80;

/// Columns of the page; 0: no limit.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// Sets the columns of the page, for example those of a terminal; 0: no limit, which is the default.
pub fn fit(columns: usize) {
    PAGE.store(columns, Relaxed);
}

/// Columns of the page, for tables; `None`: no limit.
pub fn page() -> Option<usize> {
    Some(PAGE.load(Relaxed)).filter(|columns| *columns > 0)
}

/// Columns of a sentence.
pub fn width() -> usize {
    page().map_or(SENTENCE, |columns| columns.min(SENTENCE))
}

/// Words behind a title in lines of at most `width` columns; all but the first are indented. A word that is longer than
/// a line stays whole.
pub fn wrap(title: &str, text: &str, indent: usize, width: usize) -> Vec<String> {
    let indent = " ".repeat(indent);
    let options = Options::new(width)
        .initial_indent(title)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::wrap(text, options).into_iter().map(String::from).collect()
}

/// Sentences in lines of [`width`] columns; all but the first are indented.
pub fn paragraph(text: &str, indent: usize) -> String {
    wrap("", text, indent, width()).join("\n") + "\n"
}

/// The words of a command, quoted as a shell needs them, in lines of [`width`] columns that it reads as one.
pub fn command<'a>(words: impl IntoIterator<Item = &'a str>, first: usize, indent: usize) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("{word} ")).collect();
    let words: Vec<Word> = words.iter().map(|word| Word::from(word)).collect();
    // A blank and a backslash at the end of a line.
    let columns = |indent: usize| (width() - 2).saturating_sub(indent) as f64;
    let lines = wrap_first_fit(&words, &[columns(first), columns(indent)]);
    let line = |words: &&[Word]| words.iter().map(|word| word.word).collect::<Vec<_>>().join(" ");
    " ".repeat(first) + &lines.iter().map(line).collect::<Vec<_>>().join(&format!(" \\\n{}", " ".repeat(indent)))
}

/// Text as a terminal may get it: names and paths in it can be another user's. Of what a terminal obeys, ends of lines,
/// tabs and our own styles are left.
pub fn shown(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let style = rest.strip_prefix("\x1b[").and_then(|style| {
            let end = style.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            style[end..].starts_with('m').then_some(end + 3)
        });
        match style {
            Some(len) => out += &rest[..len],
            None if c.is_control() && !matches!(c, '\n' | '\t') => out.push('?'),
            None => out.push(c),
        }
        rest = &rest[style.unwrap_or(c.len_utf8())..];
    }
    out
}

/// Wraps lines of words that are longer than `width` columns; continuation lines are indented by two columns. Lines
/// of a table or a drawing are not changed, and neither is a word that is longer than a line.
pub fn folded(text: &str, width: usize) -> String {
    let text = &shown(text);
    let drawn = |c| ('\u{2500}'..'\u{2600}').contains(&c) || ('\u{2800}'..'\u{2900}').contains(&c);
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let words = line.trim_end();
        if words.chars().count() <= width || words.contains(drawn) {
            out += line;
            continue;
        }
        let start = words.trim_start_matches(' ');
        let indent = words.len() - start.len();
        out += &wrap(&" ".repeat(indent), start, indent + 2, width).join("\n");
        out += if line.ends_with('\n') { "\n" } else { "" };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_control_characters_but_our_own_styles() {
        assert_eq!(shown("\x1b[1;31mä\x1b[0m\n\ta\x1b]0;x\x07\x1b[2J\r\u{9b}"), "\x1b[1;31mä\x1b[0m\n\ta?]0;x??[2J??");
        assert_eq!(folded("\x1b", 12), "?");
    }

    #[test]
    fn words_go_on_in_the_next_line_and_tables_do_not() {
        assert_eq!(folded("  a line of some words\nb\n", 12), "  a line of\n    some\n    words\nb\n");
        assert_eq!(folded("short", 12), "short");
        assert_eq!(folded("averyveryverylongword is one", 12), "averyveryverylongword\n  is one");
        assert_eq!(wrap("Of: ", "some more words", 4, 9), ["Of: some", "    more", "    words"]);
        assert_eq!(wrap("reuse ", "  1.5 % of all", 6, 80), ["reuse   1.5 % of all"]);
        assert_eq!(paragraph("", 0), "\n");
        let table = format!("{}\n", "─".repeat(30));
        assert_eq!(folded(&table, 12), table);
    }

    #[test]
    fn a_command_goes_on_as_a_shell_reads_it() {
        let words = vec!["word"; 30];
        let text = command(words.iter().copied(), 2, 6);
        assert!(text.lines().all(|line| line.len() <= 80) && text.starts_with("  word word"), "{text}");
        assert!(text.contains(" word \\\n      word"), "{text}");
        assert_eq!(text.replace(" \\\n", " ").split_whitespace().collect::<Vec<_>>(), words);
        assert_eq!(command(["'a b'"], 0, 2), "'a b'");
    }
}
