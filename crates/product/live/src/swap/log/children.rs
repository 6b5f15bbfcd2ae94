//! Which forked children see which slots. This file only counts; the caller finds out whether a child lives.
//!
//! Each fork ends an epoch. Take a slot that was filled in epoch `birth` and left by its page in epoch `death`. A
//! child that was forked at the end of epoch `e` sees this slot if `birth <= e < death`. The children are in the
//! order of their epochs, so one search answers for all of them.

use crate::sys::table::{Table, Zeroed};
use crate::LiveError;

/// The most children at a time: as many as Linux has process numbers (`PID_MAX_LIMIT`, 2^22).
const MOST: usize = 1 << 22;

/// It cannot be known when the child is gone: the slots that it sees are kept for ever. A poll of this number reports
/// nothing.
pub const FOR_EVER: i32 = -1;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Child {
    epoch: u32,
    /// The descriptor that shows whether it lives.
    alive: i32,
}

// SAFETY: two numbers.
unsafe impl Zeroed for Child {}

/// The children of one process that may still look into its swap file.
#[derive(Debug)]
pub struct Children {
    list: Table<Child>,
    len: usize,
    /// There were too many children or epochs: no slot that a child may see is freed any more.
    keep_all: bool,
}

impl Children {
    pub fn new() -> Result<Children, LiveError> {
        Ok(Children { list: Table::new(MOST)?, len: 0, keep_all: false })
    }

    /// Adds a child that was forked at the end of `epoch`. `epoch` is not before that of any other child. The child
    /// lives as long as `alive` says.
    pub fn add(&mut self, epoch: u32, alive: i32) {
        if self.len == MOST || epoch >= u32::MAX - 1 {
            self.keep_all = true;
            return;
        }
        self.list.as_mut_slice()[self.len] = Child { epoch, alive };
        self.len += 1;
    }

    /// Whether a child sees a slot that was filled in epoch `birth` and left by its page in epoch `death`.
    pub fn see(&self, birth: u32, death: u32) -> bool {
        let children = &self.list.as_slice()[..self.len];
        let first = children.partition_point(|child| child.epoch < birth);
        self.keep_all || children.get(first).is_some_and(|child| child.epoch < death)
    }

    /// Removes the children that `gone` reports as gone; calls it once for each. Returns whether there were any.
    pub fn bury(&mut self, mut gone: impl FnMut(i32) -> bool) -> bool {
        let before = self.len;
        let list = self.list.as_mut_slice();
        self.len = 0;
        for i in 0..before {
            if !gone(list[i].alive) {
                list[self.len] = list[i];
                self.len += 1;
            }
        }
        self.len < before
    }

    pub fn any(&self) -> bool {
        self.len > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_sees_what_was_there_at_its_fork_and_is_still_or_was_left_later() {
        let mut children = Children::new().unwrap();
        children.add(3, 10);
        children.add(7, 11);
        assert!(children.see(0, 4) && children.see(3, 8) && children.see(5, 8) && children.see(7, 9));
        assert!(!children.see(0, 3) && !children.see(4, 7) && !children.see(8, 9) && !children.see(3, 3));
        assert!(children.bury(|alive| alive == 10));
        assert!(!children.see(0, 4) && children.see(0, 8));
        assert!(!children.bury(|_| false));
    }

    #[test]
    fn ten_thousand_children_are_told_apart() {
        let mut children = Children::new().unwrap();
        (0..10_000).for_each(|epoch| children.add(epoch * 2, epoch as i32));
        children.bury(|alive| alive % 2 == 0);
        assert!((0..5000).all(|i| !children.see(4 * i, 4 * i + 1) && children.see(4 * i + 2, 4 * i + 3)));
        assert!(children.any());
    }
}
