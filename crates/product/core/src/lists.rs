//! Doubly linked lists over a fixed set of indices, with all links in one table. Policies keep their frames in them.
//!
//! Each index is on at most one list at a time. Nothing is allocated after [`Links::new`]. A link stores an index
//! plus 1, and 0 means none. So a new table of links is zeros, and it costs no RAM until an index is used. Tables by
//! page are as long as the address space.

use alloc::boxed::Box;
use alloc::vec;

const NIL: u32 = 0;

/// The links of all lists over indices 0 to n - 1.
#[derive(Clone, Debug)]
pub struct Links {
    next: Box<[u32]>,
    prev: Box<[u32]>,
}

/// One list: head first in, tail last in.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        List::new()
    }
}

impl Links {
    /// Links for `n` indices, none on a list.
    pub fn new(n: usize) -> Links {
        Links { next: vec![NIL; n].into_boxed_slice(), prev: vec![NIL; n].into_boxed_slice() }
    }

    /// Links for at least `n` indices; the new ones are on no list. An engine's tables never grow.
    pub fn grow(&mut self, n: usize) {
        for table in [&mut self.next, &mut self.prev] {
            let mut longer = core::mem::take(table).into_vec();
            longer.resize(n.max(longer.len()), NIL);
            *table = longer.into_boxed_slice();
        }
    }

    /// The index after `i` on its list (towards the tail).
    pub fn next(&self, i: usize) -> Option<usize> {
        some(self.next[i])
    }

    /// The index before `i` on its list (towards the head).
    pub fn prev(&self, i: usize) -> Option<usize> {
        some(self.prev[i])
    }
}

fn some(stored: u32) -> Option<usize> {
    stored.checked_sub(1).map(|i| i as usize)
}

fn stored(i: usize) -> u32 {
    i as u32 + 1
}

impl List {
    /// An empty list.
    pub const fn new() -> List {
        List { head: NIL, tail: NIL, len: 0 }
    }

    /// How many indices are on the list.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first in.
    pub fn head(&self) -> Option<usize> {
        some(self.head)
    }

    /// The last in.
    pub fn tail(&self) -> Option<usize> {
        some(self.tail)
    }

    /// Appends `i`, which is on no list.
    pub fn push_tail(&mut self, links: &mut Links, i: usize) {
        links.prev[i] = self.tail;
        links.next[i] = NIL;
        match some(self.tail) {
            Some(tail) => links.next[tail] = stored(i),
            None => self.head = stored(i),
        }
        self.tail = stored(i);
        self.len += 1;
    }

    /// Puts `i`, which is on no list, before `at`, which is on this one.
    pub fn insert_before(&mut self, links: &mut Links, at: usize, i: usize) {
        let prev = links.prev[at];
        links.prev[i] = prev;
        links.next[i] = stored(at);
        links.prev[at] = stored(i);
        match some(prev) {
            Some(prev) => links.next[prev] = stored(i),
            None => self.head = stored(i),
        }
        self.len += 1;
    }

    /// Takes the first in.
    pub fn pop_head(&mut self, links: &mut Links) -> Option<usize> {
        let head = self.head()?;
        self.unlink(links, head);
        Some(head)
    }

    /// Takes `i`, which is on this list.
    pub fn unlink(&mut self, links: &mut Links, i: usize) {
        let (prev, next) = (links.prev[i], links.next[i]);
        match some(prev) {
            Some(p) => links.next[p] = next,
            None => self.head = next,
        }
        match some(next) {
            Some(n) => links.prev[n] = prev,
            None => self.tail = prev,
        }
        links.next[i] = NIL;
        links.prev[i] = NIL;
        self.len -= 1;
    }

    /// The indices from head to tail.
    pub fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = usize> + 'a {
        core::iter::successors(self.head(), |&i| links.next(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_list_keeps_the_order_of_entry_through_unlinking_anywhere() {
        let (mut links, mut list) = (Links::new(5), List::new());
        (0..5).for_each(|i| list.push_tail(&mut links, i));
        list.unlink(&mut links, 2);
        list.unlink(&mut links, 0);
        list.unlink(&mut links, 4);
        assert_eq!(list.iter(&links).collect::<Vec<_>>(), [1, 3]);
        list.push_tail(&mut links, 0);
        assert_eq!(list.pop_head(&mut links), Some(1));
        assert_eq!((list.head(), list.tail(), list.len()), (Some(3), Some(0), 2));
        list.insert_before(&mut links, 3, 1);
        list.insert_before(&mut links, 0, 4);
        assert_eq!(list.iter(&links).collect::<Vec<_>>(), [1, 3, 4, 0]);
        assert_eq!((list.head(), list.tail(), list.len()), (Some(1), Some(0), 4));
    }
}
