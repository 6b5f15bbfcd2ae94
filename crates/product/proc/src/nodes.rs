//! Pages of a process and the NUMA nodes that they are on: `move_pages(2)`, `set_mempolicy(2)`.

use std::io::{Error, Result};

use crate::tree::Tree;

/// Pages of one call: it empties the lists of all processors first, and cannot be stopped.
const BATCH: usize = 4096;
/// `MPOL_PREFERRED` and `MPOL_MF_MOVE` of include/uapi/linux/mempolicy.h.
const PREFERRED: usize = 1;
const MOVE: usize = 2;

/// Moves pages of a process to a node: mapped as before, so that no touch of them waits later. Of each, whether it is
/// there now; one may be gone, in use by the kernel, or shared.
///
/// # Errors
/// It is not allowed, there is no such node, or the process is gone.
pub fn move_pages(pid: u32, pages: &[u64], node: u32) -> Result<Vec<bool>> {
    let (mut moved, node) = (Vec::with_capacity(pages.len()), node as i32);
    for batch in pages.chunks(BATCH) {
        let (to, mut status) = (vec![node; batch.len()], vec![i32::MIN; batch.len()]);
        // SAFETY: the three arrays are as long as the call is told, and live through it.
        let done = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                pid,
                batch.len(),
                batch.as_ptr(),
                to.as_ptr(),
                status.as_mut_ptr(),
                MOVE,
            )
        };
        if done < 0 {
            return Err(Error::last_os_error());
        }
        moved.extend(status.iter().map(|status| *status == node));
    }
    Ok(moved)
}

/// The node of each page of a process; `None`: it is not in RAM.
///
/// # Errors
/// As for [`move_pages`].
pub fn nodes_of(pid: u32, pages: &[u64]) -> Result<Vec<Option<u32>>> {
    let mut nodes = Vec::with_capacity(pages.len());
    for batch in pages.chunks(BATCH) {
        let (none, mut status) = (std::ptr::null::<i32>(), vec![i32::MIN; batch.len()]);
        // SAFETY: both arrays are as long as the call is told, and live through it.
        let done = unsafe {
            libc::syscall(libc::SYS_move_pages, pid, batch.len(), batch.as_ptr(), none, status.as_mut_ptr(), 0)
        };
        if done < 0 {
            return Err(Error::last_os_error());
        }
        nodes.extend(status.iter().map(|status| u32::try_from(*status).ok()));
    }
    Ok(nodes)
}

/// Whether a node has processors; `None`: there is no such node.
pub fn has_processors(tree: &Tree, node: u32) -> Option<bool> {
    let list = std::fs::read_to_string(tree.path(format!("/sys/devices/system/node/node{node}/cpulist"))).ok()?;
    Some(!list.trim().is_empty())
}

/// New memory of this thread, and of what it starts, is of this node as long as that has room; and no huge pages, of
/// which a part cannot move. May be called between fork and exec.
///
/// # Errors
/// There is no such node, or the kernel knows no nodes.
pub fn prefer_node(node: u32) -> Result<()> {
    let mut nodes = [0u64; 16];
    *nodes.get_mut(node as usize / 64).ok_or(std::io::ErrorKind::InvalidInput)? = 1 << (node % 64);
    // SAFETY: the mask lives through the call.
    let done = unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
        libc::syscall(libc::SYS_set_mempolicy, PREFERRED, nodes.as_ptr(), 8 * size_of_val(&nodes))
    };
    if done < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_this_process_is_on_a_node_moves_to_it_and_one_that_is_not_there_is_on_none() {
        let own = std::process::id();
        let page = vec![1u8; 8192];
        let at = (page.as_ptr() as u64).next_multiple_of(crate::PAGE);
        let nodes = match nodes_of(own, &[at, 0]) {
            Err(error) => return eprintln!("skipped: no nodes here ({error})"),
            Ok(nodes) => nodes,
        };
        assert!(nodes[0].is_some() && nodes[1].is_none(), "{nodes:?}");
        assert_eq!(move_pages(own, &[at, 0], nodes[0].unwrap()).unwrap(), [true, false]);
        assert!(move_pages(own, &[at], 1000).is_err());
        assert!(nodes_of(1 << 23, &[at]).is_err());
        std::hint::black_box(page);
    }
}
