//! The types that a file defines, and its `impl` blocks.

use crate::names::angles;
use crate::tokens::{group, item, Kind, Token};

/// An `impl` block: the last names of its type and of its trait, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impl {
    pub name: String,
    pub of_trait: Option<String>,
    pub line: usize,
}

/// The names of structures, enums, traits and aliases, those within functions too. Associated types are none.
pub fn types<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let (mut types, mut blocks, mut opens_impl) = (Vec::new(), Vec::new(), false);
    for (i, token) in tokens.iter().enumerate() {
        let name = tokens.get(i + 1).filter(|next| next.kind == Kind::Word);
        match token.text {
            "impl" => opens_impl |= begins_item(tokens, i),
            ";" => opens_impl = false,
            "{" => blocks.push(std::mem::take(&mut opens_impl)),
            "}" => drop(blocks.pop()),
            "type" if blocks.last() == Some(&true) => {}
            "struct" | "enum" | "union" | "trait" | "type" => {
                opens_impl |= token.is("trait");
                types.extend(name);
            }
            _ => {}
        }
    }
    types
}

/// Whether an item begins with this token, or with `unsafe` before it.
fn begins_item(tokens: &[Token], i: usize) -> bool {
    let Some(before) = i.checked_sub(1) else { return true };
    ["}", ";", "]", "{", "unsafe"].contains(&tokens[before].text)
}

/// The `impl` blocks of a file.
pub fn impls(tokens: &[Token]) -> Vec<Impl> {
    let starts = (0..tokens.len()).filter(|i| tokens[*i].is("impl") && begins_item(tokens, *i));
    let header = |i: usize| {
        let rest = &tokens[i + 1..];
        let rest = &rest[angles(rest)..];
        let end = rest.iter().position(|token| token.is("{") || token.is("where") || token.is(";"))?;
        let header = &rest[..end];
        let at_for = (0..end).find(|i| header[*i].is("for") && !header.get(i + 1).is_some_and(|next| next.is("<")));
        let name = last_name(&header[at_for.map_or(0, |i| i + 1)..])?;
        Some(Impl { name, of_trait: at_for.and_then(|i| last_name(&header[..i])), line: tokens[i].line })
    };
    starts.filter_map(header).collect()
}

/// The last word of a path, without its generics.
fn last_name(path: &[Token]) -> Option<String> {
    let (mut name, mut i) = (None, 0);
    while i < path.len() {
        match angles(&path[i..]) {
            0 => {
                name = Some(path[i]).filter(|token| token.kind == Kind::Word).or(name);
                i += group(&path[i..]);
            }
            len => i += len,
        }
    }
    name.map(|token| token.text.to_owned())
}

/// The functions of a file, methods too, but not what a macro writes.
pub fn functions<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let (mut functions, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        if tokens[i].is("macro_rules") {
            i += item(&tokens[i..]);
            continue;
        }
        let name = tokens.get(i + 1).filter(|next| tokens[i].is("fn") && next.kind == Kind::Word);
        functions.extend(name);
        i += 1;
    }
    functions
}
