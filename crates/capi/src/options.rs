//! What a pager is made from, as C says it.

use std::ffi::c_char;

use coldframe_live::Options;

use crate::status::{text, Failure};

/// What a pager is made from. Fill it by `coldframe_options_default`, then change what should be otherwise. A null pointer means the
/// default.
#[repr(C)]
pub struct ColdframeOptions {
    /// RAM for all regions together, in bytes; at least 256 KiB.
    pub ram: u64,
    /// The most bytes all regions together may have. Costs nothing until it is used.
    pub max_memory: u64,
    /// Folder for the swap file, which has no name and is gone with the pager; null: where temporary files go.
    pub backing: *const c_char,
    /// Page replacement policy, as `coldframe policies` lists them, `pa-clock:budget=13` for instance; null: fitted to the device.
    pub policy: *const c_char,
    /// Where a journal of the engine goes, for `coldframe replay`; null: nowhere.
    pub journal: *const c_char,
    /// Keep pages encrypted and authenticated in the swap file, with a key that lives only in memory.
    pub encrypt: bool,
}

/// The defaults, for so many bytes of RAM.
#[no_mangle]
pub extern "C" fn coldframe_options_default(ram: u64) -> ColdframeOptions {
    let null = std::ptr::null();
    // As `Options::new`, but without what allocates: the caller owns nothing of the result.
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
