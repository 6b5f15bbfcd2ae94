//! Names that say nothing, where they are declared.
//!
//! A declaration is a function, a binding of `let`, `for`, `match` or a closure, a parameter, a field of a structure, a
//! constant. A use is not counted: a name is chosen once, however often it is used.

use crate::tokens::{group, Kind, Token};

/// Names that tell a reader nothing about the thing.
pub const EMPTY: [&str; 8] = ["of", "at", "all", "one", "most", "least", "there", "own"];

/// The declared names of a file that are in [`EMPTY`], in small letters.
pub fn empty_names<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut names = declared(tokens);
    names.retain(|name| EMPTY.contains(&name.text.to_lowercase().as_str()));
    names
}

/// The names that a file declares, in order.
pub fn declared<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut names = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let after = &tokens[i + 1..];
        match token.text {
            "fn" => {
                names.extend(after.first().filter(|next| next.kind == Kind::Word));
                names.extend(parameters(after));
            }
            "const" | "static" => {
                let name = after.iter().position(|next| !next.is("mut")).unwrap_or(0);
                names.extend(after.get(name).filter(|_| after.get(name + 1).is_some_and(|colon| colon.is(":"))));
            }
            "let" => names.extend(bindings(until(after, &["=", ";"]))),
            "for" if !after.first().is_some_and(|next| next.is("<")) => {
                let pattern = until(after, &["in", "{", ";"]);
                if after.get(pattern.len()).is_some_and(|end| end.is("in")) {
                    names.extend(bindings(pattern));
                }
            }
            "match" => names.extend(arms(after)),
            "struct" | "union" => names.extend(fields(after)),
            "enum" => names.extend(variants(after)),
            "|" if opens_closure(tokens, i) => {
                let inside = until(after, &["|"]);
                names.extend(split(inside).into_iter().flat_map(bindings));
            }
            _ => {}
        }
    }
    names.sort_by_key(|name| name.text.as_ptr());
    names.dedup_by_key(|name| name.text.as_ptr());
    names
}

/// The tokens before the first of these signs that is not in brackets.
fn until<'a, 'b>(tokens: &'b [Token<'a>], ends: &[&str]) -> &'b [Token<'a>] {
    let mut i = 0;
    while tokens.get(i).is_some_and(|token| !ends.iter().any(|end| token.is(end)) && !is_close(token)) {
        i += group(&tokens[i..]);
    }
    &tokens[..i]
}

fn is_close(token: &Token) -> bool {
    token.is(")") || token.is("]") || token.is("}")
}

/// Parts between commas that are in no brackets, angle brackets included.
fn split<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let (mut parts, mut start, mut i, mut angles) = (Vec::new(), 0, 0, 0i32);
    while i < tokens.len() {
        angles += i32::from(tokens[i].is("<")) - i32::from(tokens[i].is(">"));
        if tokens[i].is(",") && angles <= 0 {
            parts.push(&tokens[start..i]);
            start = i + 1;
        }
        i += group(&tokens[i..]);
    }
    parts.push(&tokens[start..]);
    parts
}

/// The inside of the brackets that the tokens begin with.
fn inside<'a, 'b>(tokens: &'b [Token<'a>]) -> &'b [Token<'a>] {
    let len = group(tokens);
    if len < 2 {
        &[]
    } else {
        &tokens[1..len - 1]
    }
}

/// The names that a pattern binds, up to its type.
fn bindings<'a>(pattern: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut names = Vec::new();
    bind(until(pattern, &[":"]), &mut names);
    names
}

/// A word in small letters binds a name, unless it is part of a path, or the field of a structure before its pattern.
fn bind<'a>(pattern: &[Token<'a>], names: &mut Vec<Token<'a>>) {
    for (i, token) in pattern.iter().enumerate() {
        let (before, after) = (i.checked_sub(1).map(|i| pattern[i]), pattern.get(i + 1));
        let in_path =
            before.is_some_and(|t| t.is("::")) || after.is_some_and(|t| ["::", "(", "{", "!", ":"].contains(&t.text));
        let small = token.text.starts_with(|c: char| c.is_lowercase() || c == '_');
        if token.kind == Kind::Word && small && !in_path && !is_keyword(token.text) {
            names.push(*token);
        }
    }
}

fn is_keyword(word: &str) -> bool {
    ["mut", "ref", "box", "_", "self", "true", "false", "if", "fn", "unsafe", "extern", "crate", "super", "in"]
        .contains(&word)
}

/// The parameters of a function, whose name is the first token.
fn parameters<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let list = &tokens[tokens.len().min(1)..];
    let list = &list[angles(list)..];
    let list = if list.first().is_some_and(|first| first.is("(")) { inside(list) } else { &[] };
    split(list).into_iter().filter(|part| part.iter().any(|t| t.is(":"))).flat_map(bindings).collect()
}

/// The number of tokens of a list of generics that the tokens begin with.
pub fn angles(tokens: &[Token]) -> usize {
    let mut depth = 0i32;
    for (i, token) in tokens.iter().enumerate() {
        depth += i32::from(token.is("<")) - i32::from(token.is(">"));
        if depth == 0 {
            return if i == 0 { 0 } else { i + 1 };
        }
    }
    tokens.len()
}

/// From the first such bracket before the item ends, or nothing.
fn until_brackets<'a, 'b>(tokens: &'b [Token<'a>], open: &str) -> &'b [Token<'a>] {
    let before = until(tokens, &[open, ";", "{"]);
    let list = &tokens[before.len()..];
    if list.first().is_some_and(|first| first.is(open)) {
        list
    } else {
        &[]
    }
}

fn fields<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    named(inside(until_brackets(tokens, "{")))
}

/// The names before a colon in a list of fields, which may have attributes and `pub`.
fn named<'a>(list: &[Token<'a>]) -> Vec<Token<'a>> {
    let name = |part: &[Token<'a>]| {
        let before = until(part, &[":"]);
        (before.len() < part.len()).then(|| before.last().copied()).flatten().filter(|name| name.kind == Kind::Word)
    };
    split(list).into_iter().filter_map(name).collect()
}

/// The fields of an enum's variants.
fn variants<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let list = inside(until_brackets(tokens, "{"));
    let fields = |part: &[Token<'a>]| {
        let open = part.iter().rposition(|token| token.is("{")).filter(|_| part.last().is_some_and(|t| t.is("}")));
        open.map(|open| named(inside(&part[open..]))).unwrap_or_default()
    };
    split(list).into_iter().flat_map(fields).collect()
}

/// The names bound by the arms of a match, which begins with its subject.
fn arms<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let (mut rest, mut names) = (inside(until_brackets(tokens, "{")), Vec::new());
    while !rest.is_empty() {
        let arm = until(rest, &["=>"]);
        bind(until(arm, &["if"]), &mut names);
        rest = &rest[(arm.len() + 1).min(rest.len())..];
        let body = if rest.first().is_some_and(|t| t.is("{")) { group(rest) } else { until(rest, &[","]).len() };
        rest = &rest[body..];
        rest = if rest.first().is_some_and(|t| t.is(",")) { &rest[1..] } else { rest };
    }
    names
}

/// Whether a `|` begins the parameters of a closure: it stands where an expression begins.
fn opens_closure(tokens: &[Token], i: usize) -> bool {
    let Some(before) = i.checked_sub(1).map(|i| tokens[i]) else { return false };
    ["(", ",", "=", "{", ";", "=>", "move", "return", ":", "&&", "||", "[", "&"].contains(&before.text)
        && before.kind != Kind::Literal
}
