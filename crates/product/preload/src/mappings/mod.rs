//! System calls on mappings: mmap, munmap, mprotect, mremap, madvise, mlock and related ones.

pub mod advice;
pub mod lock;
pub mod mapping;
pub mod remap;
