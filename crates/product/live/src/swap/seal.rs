//! Pages encrypted and authenticated on the backing: ChaCha20-Poly1305 with a key that lives only in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use chacha20poly1305::{AeadInPlace, ChaCha20Poly1305, KeyInit, Tag};

use crate::swap::secret::{scrub_stack, Secret};
use crate::{LiveError, PAGE};

/// Encrypts and decrypts the pages of one swap file. No nonce is used twice: nonces count up, and each file has its
/// own key.
#[derive(Debug)]
pub struct Sealer {
    pub key: Secret<[u8; 32]>,
    nonce: AtomicU64,
}

impl Sealer {
    /// With a fresh key, which must be locked in RAM.
    pub fn new() -> Result<Sealer, LiveError> {
        Ok(Sealer { key: Secret::random(true)?, nonce: AtomicU64::new(0) })
    }

    /// Encrypts the page at `from` into `to`. Returns count and tag.
    ///
    /// # Safety
    /// Both must be good for a page, and not overlap.
    pub unsafe fn seal(&self, from: usize, to: usize, page: usize) -> (u64, u128) {
        let count = self.nonce.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller answers for both.
        let bytes = unsafe {
            std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, PAGE);
            std::slice::from_raw_parts_mut(to as *mut u8, PAGE)
        };
        let tag = self.encrypt(bytes, page, count);
        scrub_stack();
        (count, u128::from_le_bytes(tag.into()))
    }

    /// Decrypts the page at `address`. Returns false if the bytes were not encrypted for this page.
    ///
    /// # Safety
    /// `address` must be good for a page that no other thread uses.
    pub unsafe fn open(&self, address: usize, page: usize, count: u64, tag: u128) -> bool {
        // SAFETY: the caller answers for it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, PAGE) };
        let good = self.decrypt(bytes, page, count, &tag.to_le_bytes().into());
        scrub_stack();
        good
    }

    /// The cipher holds a copy of the key, and overwrites it at its end.
    #[inline(never)]
    fn encrypt(&self, bytes: &mut [u8], page: usize, count: u64) -> Tag {
        let cipher = ChaCha20Poly1305::new((&*self.key).into());
        let sealed = cipher.encrypt_in_place_detached((&nonce(count)).into(), &(page as u64).to_le_bytes(), bytes);
        sealed.expect("a page is not too long")
    }

    #[inline(never)]
    fn decrypt(&self, bytes: &mut [u8], page: usize, count: u64, tag: &Tag) -> bool {
        let cipher = ChaCha20Poly1305::new((&*self.key).into());
        cipher.decrypt_in_place_detached((&nonce(count)).into(), &(page as u64).to_le_bytes(), bytes, tag).is_ok()
    }
}

fn nonce(count: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&count.to_le_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_only_for_its_page_and_only_unchanged() {
        let sealer = Sealer::new().unwrap();
        let (plain, mut sealed) = ([7u8; PAGE], [0u8; PAGE]);
        // SAFETY: both are pages.
        let (count, tag) = unsafe { sealer.seal(plain.as_ptr() as usize, sealed.as_mut_ptr() as usize, 3) };
        assert_ne!(sealed, plain);
        let open = |mut bytes: [u8; PAGE], page| {
            // SAFETY: a page.
            let good = unsafe { sealer.open(bytes.as_mut_ptr() as usize, page, count, tag) };
            good && bytes == plain
        };
        assert!(open(sealed, 3) && !open(sealed, 4));
        sealed[100] ^= 1;
        assert!(!open(sealed, 3));
    }
}
