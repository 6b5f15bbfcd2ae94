//! The debug channel, ARM semihosting. Through it the emulator (or a debugger) prints, writes files of the host and
//! ends the run.

use core::arch::asm;
use core::fmt;

/// Numbers of the ARM semihosting specification, section "Semihosting operations".
const SYS_OPEN: u32 = 0x01;
const SYS_CLOSE: u32 = 0x02;
const SYS_WRITE: u32 = 0x05;
const SYS_GET_CMDLINE: u32 = 0x15;
const SYS_EXIT_EXTENDED: u32 = 0x20;
/// Reason code of a program that ended by itself.
const APPLICATION_EXIT: u32 = 0x20026;
/// Mode of `SYS_OPEN`: `"wb"`.
const WRITE_BINARY: u32 = 5;

fn call<const N: usize>(operation: u32, block: [u32; N]) -> u32 {
    let result: u32;
    // SAFETY: the block lives until the call has returned, and the addresses in it are the callers' live slices.
    unsafe {
        asm!("svc 0x123456", inlateout("r0") operation => result, in("r1") block.as_ptr(), lateout("lr") _);
    }
    result
}

/// A file of the host.
pub struct File(u32);

impl File {
    /// The console.
    pub fn console() -> File {
        File::create(":tt").expect("there is a console")
    }

    /// Creates a file or truncates it; `None` if the host refuses.
    pub fn create(path: &str) -> Option<File> {
        let mut name = [0u8; 512];
        name.get_mut(..path.len())?.copy_from_slice(path.as_bytes());
        let handle = call(SYS_OPEN, [name.as_ptr() as u32, WRITE_BINARY, path.len() as u32]);
        (handle != u32::MAX).then_some(File(handle))
    }

    /// Writes all of it.
    ///
    /// # Panics
    /// If the host could not: a journal with a hole proves nothing.
    pub fn write(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let left = call(SYS_WRITE, [self.0, bytes.as_ptr() as u32, bytes.len() as u32]);
            assert_eq!(left, 0, "the host did not take {left} bytes");
        }
    }

    /// Closes it.
    pub fn close(self) {
        call(SYS_CLOSE, [self.0]);
    }
}

impl fmt::Write for File {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text.as_bytes());
        Ok(())
    }
}

/// The words after the image's name on the command line.
pub fn command_line(space: &mut [u8; 1024]) -> &str {
    let mut block = [space.as_mut_ptr() as u32, space.len() as u32];
    // SAFETY: the block and the buffer it names live until the call has returned, which writes to both.
    unsafe {
        asm!("svc 0x123456", inlateout("r0") SYS_GET_CMDLINE => _, in("r1") block.as_mut_ptr(), lateout("lr") _);
    }
    let end = space.iter().position(|b| *b == 0).unwrap_or(0);
    core::str::from_utf8(&space[..end]).unwrap_or_default()
}

/// Ends the run with this exit status.
pub fn exit(status: u32) -> ! {
    loop {
        call(SYS_EXIT_EXTENDED, [APPLICATION_EXIT, status]);
    }
}

/// Prints a line on the console.
#[macro_export]
macro_rules! println {
    ($($t:tt)*) => {{
        use core::fmt::Write;
        let mut console = $crate::debug::File::console();
        writeln!(console, $($t)*).expect("the console takes everything");
        console.close();
    }};
}
