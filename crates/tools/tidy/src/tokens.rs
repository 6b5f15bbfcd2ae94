//! Rust as words and signs, each with its line: what the counters of names, types and lines read.
//!
//! Comments are no tokens. Neither are items of tests and a policy's naive twin, which no program contains:
//! [`without_tests`] removes them.

/// What a token is. A sign is one character, except `::`, `->`, `=>`, `==`, `!=`, `<=`, `>=`, `&&` and `||`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Word,
    Sign,
    /// A number, a character, a string, a lifetime.
    Literal,
}

/// A token: its text, and the line on which it begins, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub line: usize,
}

impl Token<'_> {
    /// Whether it is this word or sign.
    pub fn is(&self, text: &str) -> bool {
        self.kind != Kind::Literal && self.text == text
    }
}

/// The tokens of a Rust file.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let (len, kind) = match first {
            _ if first.is_whitespace() => (first.len_utf8(), None),
            _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), None),
            _ if rest.starts_with("/*") => (block_comment(rest), None),
            _ => match literal(rest) {
                Some(len) => (len, Some(Kind::Literal)),
                None if is_of_word(first) => (word(rest), Some(Kind::Word)),
                None => (sign(rest), Some(Kind::Sign)),
            },
        };
        tokens.extend(kind.map(|kind| Token { kind, text: &rest[..len], line }));
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    tokens
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(text: &str) -> usize {
    text.find(|c| !is_of_word(c)).unwrap_or(text.len())
}

fn sign(text: &str) -> usize {
    let two = ["::", "->", "=>", "==", "!=", "<=", ">=", "&&", "||"].iter().any(|sign| text.starts_with(sign));
    if two {
        2
    } else {
        text.chars().next().map_or(0, char::len_utf8)
    }
}

/// The length of a comment between `/*` and `*/`, in which others may stand.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut len) = (0, 0);
    loop {
        let rest = &text[len..];
        match (rest.starts_with("/*"), rest.starts_with("*/")) {
            (true, _) => (depth, len) = (depth + 1, len + 2),
            (_, true) => (depth, len) = (depth - 1, len + 2),
            _ => len += rest.chars().next().map_or(1, char::len_utf8),
        }
        if depth == 0 || len >= text.len() {
            return len.min(text.len());
        }
    }
}

/// The length of the number, string, character or lifetime that the text begins with.
fn literal(text: &str) -> Option<usize> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(number(text));
    }
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| {
            rest.trim_start_matches('#').starts_with('"') || *prefix == "b" && rest.starts_with('\'')
        }) || prefix.is_empty()
    })?;
    let rest = &text[prefix.len()..];
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    match rest[hashes..].chars().next()? {
        '"' if prefix.contains('r') => {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = prefix.len() + hashes + 1;
            Some(text[start..].find(&end).map_or(text.len(), |len| start + len + end.len()))
        }
        '"' if hashes == 0 => Some(prefix.len() + quoted(rest, '"')),
        '\'' if hashes == 0 => Some(prefix.len() + character_or_lifetime(rest)),
        _ => None,
    }
}

/// `1..2` is two numbers, `1.5e3` and `0xff_u8` are one each.
fn number(text: &str) -> usize {
    let whole = word(text);
    match text[whole..].strip_prefix('.') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => whole + 1 + word(rest),
        _ => whole,
    }
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return i + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

fn character_or_lifetime(text: &str) -> usize {
    let mut inside = text[1..].chars();
    match (inside.next(), inside.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(text, '\''),
        _ => 1 + word(&text[1..]),
    }
}

/// The tokens without items of tests and without naive twins.
pub fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let (mut left, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        if is_attribute_of_test(&tokens[i..]) {
            i += item(&tokens[i..]);
        } else {
            left.push(tokens[i]);
            i += 1;
        }
    }
    left
}

/// Whether an attribute is `#[cfg(test)]`, `#[cfg(feature = "naive")]`, or that of a fake that tests of another crate
/// use, `#[cfg(any(test, feature = "fake"))]`.
pub fn is_attribute_of_test(tokens: &[Token]) -> bool {
    let begins =
        |words: &[&str]| words.iter().zip(tokens).filter(|(word, token)| token.text == **word).count() == words.len();
    begins(&["#", "[", "cfg", "(", "test", ")", "]"])
        || begins(&["#", "[", "cfg", "(", "feature", "=", "\"naive\"", ")", "]"])
        || begins(&["#", "[", "cfg", "(", "any", "(", "test", ",", "feature", "=", "\"fake\"", ")", ")", "]"])
}

/// The number of tokens of an item, a field or a statement, with the attributes before it.
pub fn item(tokens: &[Token]) -> usize {
    let mut i = 0;
    while tokens.get(i).is_some_and(|token| token.is("#")) {
        i += 1 + group(&tokens[i + 1..]);
    }
    let ends: &[&str] = match item_word(&tokens[i..]) {
        Some("use" | "let" | "static" | "type" | "const") => &[";"],
        Some(_) => &[";", "{"],
        None => &[";", "{", ","],
    };
    while let Some(token) = tokens.get(i).filter(|token| !is_one(token, &CLOSING)) {
        i += group(&tokens[i..]);
        if is_one(token, ends) {
            break;
        }
    }
    i
}

/// The word that says what an item is.
fn item_word<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let words =
        ["use", "let", "static", "type", "fn", "impl", "struct", "enum", "trait", "union", "mod", "macro_rules"];
    let before = ["pub", "crate", "super", "in", "unsafe", "async", "extern", "(", ")", "\"C\""];
    let first = tokens.iter().position(|token| !before.contains(&token.text))?;
    let after = tokens.get(first + 1).map_or("", |token| token.text);
    match tokens[first].text {
        "const" if ["fn", "unsafe", "extern"].contains(&after) => Some("fn"),
        word if word == "const" || words.contains(&word) => Some(word),
        _ => None,
    }
}

fn is_one(token: &Token, signs: &[&str]) -> bool {
    signs.iter().any(|sign| token.is(sign))
}

const OPENING: [&str; 3] = ["(", "[", "{"];
const CLOSING: [&str; 3] = [")", "]", "}"];

/// The number of tokens of a group in brackets, or 1 for another token.
pub fn group(tokens: &[Token]) -> usize {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate() {
        if is_one(token, &OPENING) {
            depth += 1;
        } else if is_one(token, &CLOSING) {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

/// How many lines have code.
pub fn lines_of_code(tokens: &[Token]) -> usize {
    let lines = tokens.iter().flat_map(|token| {
        token.text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()).map(|(i, _)| token.line + i)
    });
    lines.collect::<std::collections::BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_are_no_tokens_and_what_a_literal_contains_is_none() {
        assert_eq!(texts("a // b\n/* c /* d */ e */ f"), ["a", "f"]);
        assert_eq!(
            texts(r#"f("a // \" fn", 'b', '\'', b'"', b"c")"#),
            ["f", "(", r#""a // \" fn""#, ",", "'b'", ",", r"'\''", ",", "b'\"'", ",", "b\"c\"", ")"]
        );
        assert_eq!(texts("r#\"a \" fn\"# x"), ["r#\"a \" fn\"#", "x"]);
        assert_eq!(texts("&'a str; 'µ'"), ["&", "'a", "str", ";", "'µ'"]);
        assert_eq!(
            texts("1..2 + 1.5e3 + x.0 as u8"),
            ["1", ".", ".", "2", "+", "1.5e3", "+", "x", ".", "0", "as", "u8"]
        );
        assert_eq!(texts("a::b -> |x| y >> z"), ["a", "::", "b", "->", "|", "x", "|", "y", ">", ">", "z"]);
    }

    #[test]
    fn a_token_knows_its_line() {
        assert_eq!(tokens("a\n/*\n*/ \"\n\" b").iter().map(|token| token.line).collect::<Vec<_>>(), [1, 3, 4]);
    }

    #[test]
    fn items_fields_and_modules_of_tests_are_removed_to_their_end() {
        let left = |text: &str| without_tests(&tokens(text)).iter().map(|token| token.text).collect::<String>();
        assert_eq!(left("#[cfg(test)] #[allow(x)] pub(crate) const fn f<A, B>(a: A) -> B { {} } g"), "g");
        assert_eq!(left("#[cfg(test)] const A: B = B { c: 1 }; g"), "g");
        assert_eq!(left("#[cfg(test)] use a::{b, c}; mod d;"), "modd;");
        assert_eq!(left("#[cfg(test)] mod a; #[cfg(unix)] mod b;"), "#[cfg(unix)]modb;");
        assert_eq!(left("A { #[cfg(test)] a: 1, b: 2, #[cfg(test)] c: 3 }"), "A{b:2,}");
    }
}
