//! The options of a pager, as a C struct.

use std::ffi::c_char;

use coldframe_live::Options;

use crate::status::{text, Failure};

/// The options of a pager. Fill it by `coldframe_options_default`, then change what should differ. A null pointer
/// means the default.
#[repr(C)]
pub struct ColdframeOptions {
    /// RAM for all regions together, in bytes; at least 256 KiB.
    pub ram: u64,
    /// The most bytes that all regions together may have. Unused memory costs nothing.
    pub max_memory: u64,
    /// Folder for the swap file. The file has no name and is gone when the pager ends. Null: the folder of temporary
    /// files.
    pub backing: *const c_char,
    /// Page replacement policy, as `coldframe-lab policies` lists them, for example `pa-clock:budget=13`. Null: fitted
    /// to the device.
    pub policy: *const c_char,
    /// File for a journal of the engine, for `coldframe-lab replay`. Null: no journal.
    pub journal: *const c_char,
    /// Keep pages encrypted and authenticated in the swap file, with a key that lives only in memory.
    pub encrypt: bool,
}

/// The defaults, for `ram` bytes of RAM.
#[no_mangle]
pub extern "C" fn coldframe_options_default(ram: u64) -> ColdframeOptions {
    let null = std::ptr::null();
    // As `Options::new`, but nothing is allocated: the caller has nothing to free.
    ColdframeOptions { ram, max_memory: 64 << 30, backing: null, policy: null, journal: null, encrypt: false }
}

impl ColdframeOptions {
    /// As the pager takes them.
    ///
    /// # Safety
    /// The pointers are null or C strings.
    pub unsafe fn read(&self) -> Result<Options, Failure> {
        let defaults = Options::new(self.ram);
        // SAFETY: the caller answers for all three.
        let (backing, policy, journal) =
            unsafe { (text("backing", self.backing)?, text("policy", self.policy)?, text("journal", self.journal)?) };
        Ok(Options {
            max_memory: self.max_memory,
            backing: backing.map_or(defaults.backing.clone(), Into::into),
            policy: policy.map(Into::into),
            journal: journal.map(Into::into),
            encrypt: self.encrypt,
            ..defaults
        })
    }
}
