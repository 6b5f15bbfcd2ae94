//! A doubly linked list whose entries keep their number until they are removed.

const NONE: u32 = u32::MAX;

struct Link<T> {
    value: Option<T>,
    before: u32,
    after: u32,
}

/// The list. All operations take constant time.
pub(super) struct Chain<T> {
    links: Vec<Link<T>>,
    free: Vec<u32>,
    first: u32,
    last: u32,
}

impl<T> Chain<T> {
    pub(super) fn new() -> Chain<T> {
        Chain { links: Vec::new(), free: Vec::new(), first: NONE, last: NONE }
    }

    /// Entries held.
    pub(super) fn len(&self) -> usize {
        self.links.len() - self.free.len()
    }

    /// The number of the first entry, and the entry.
    pub(super) fn first(&self) -> Option<(u32, &T)> {
        let link = self.links.get(self.first as usize)?;
        link.value.as_ref().map(|value| (self.first, value))
    }

    /// The number of the last entry, and the entry.
    pub(super) fn last(&mut self) -> Option<(u32, &mut T)> {
        let last = self.last;
        let link = self.links.get_mut(last as usize)?;
        link.value.as_mut().map(|value| (last, value))
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.links.get(number as usize)?.value.as_ref()
    }

    /// Appends an entry and returns its number.
    pub(super) fn push(&mut self, value: T) -> u32 {
        let link = Link { value: Some(value), before: self.last, after: NONE };
        let number = match self.free.pop() {
            Some(number) => {
                self.links[number as usize] = link;
                number
            }
            None => {
                self.links.push(link);
                (self.links.len() - 1) as u32
            }
        };
        match self.links.get_mut(self.last as usize) {
            Some(last) => last.after = number,
            None => self.first = number,
        }
        self.last = number;
        number
    }

    /// Takes an entry out; its number may be given to another.
    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let link = self.links.get_mut(number as usize)?;
        let (value, before, after) = (link.value.take()?, link.before, link.after);
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = after,
            None => self.first = after,
        }
        match self.links.get_mut(after as usize) {
            Some(link) => link.before = before,
            None => self.last = before,
        }
        self.free.push(number);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_and_number_when_others_leave() {
        let mut chain = Chain::new();
        let numbers = ['a', 'b', 'c', 'd'].map(|letter| chain.push(letter));
        assert_eq!((chain.remove(numbers[1]), chain.remove(numbers[1])), (Some('b'), None));
        assert_eq!(chain.remove(numbers[0]), Some('a'));
        assert_eq!((chain.first(), chain.len()), (Some((numbers[2], &'c')), 2));
        let fifth = chain.push('e');
        assert_eq!((chain.remove(numbers[3]), chain.get(numbers[2])), (Some('d'), Some(&'c')));
        assert_eq!(chain.remove(numbers[2]), Some('c'));
        assert_eq!(chain.last(), Some((fifth, &mut 'e')));
        assert_eq!((chain.first().map(|(number, _)| number), chain.len()), (Some(fifth), 1));
    }
}
