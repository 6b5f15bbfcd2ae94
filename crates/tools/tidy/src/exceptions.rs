//! A table of what breaks a rule today, with its count. It may only shrink.

use std::collections::BTreeMap;

/// What differs from the table: what breaks the rule more often than its row says, or without a row; and a row that is
/// larger than what it excuses.
pub fn differences(found: &BTreeMap<String, usize>, table: &[(&str, usize)]) -> Vec<String> {
    let excused: BTreeMap<&str, usize> = table.iter().copied().collect();
    let more = found.iter().filter_map(|(name, count)| match excused.get(name.as_str()) {
        None => Some(format!("{name}: {count}")),
        Some(most) if count > most => Some(format!("{name}: {count}, at most {most}")),
        Some(_) => None,
    });
    let fewer = excused.iter().filter_map(|(name, limit)| match found.get(*name) {
        None => Some(format!("{name}: it is clean now; take it from the table")),
        Some(count) if count < limit => Some(format!("{name}: write {count} for {limit} in the table")),
        Some(_) => None,
    });
    more.chain(fewer).collect()
}

/// How often each name occurs.
pub fn counts(names: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_or_more_differs_and_so_does_a_row_that_excuses_more_than_there_is() {
        let found = counts(["a", "a", "b", "c", "c"].map(String::from));
        assert_eq!(differences(&found, &[("a", 2), ("b", 1), ("c", 2)]), [""; 0]);
        assert_eq!(differences(&found, &[("a", 1), ("b", 1)]), ["a: 2, at most 1", "c: 2"]);
        assert_eq!(
            differences(&found, &[("a", 3), ("b", 1), ("c", 2), ("d", 1)]),
            ["a: write 2 for 3 in the table", "d: it is clean now; take it from the table"]
        );
    }
}
