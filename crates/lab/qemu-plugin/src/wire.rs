//! The shared memory between the plugin (inside QEMU) and the recorder (outside): layout and words.
//!
//! Both crates include this file; it holds no code that touches memory. The recorder creates a memfd of
//! [`TOTAL_BYTES`]; the plugin maps it, and the recorder reads and writes it as a file. Pages never touched cost
//! nothing.
//!
//! ```text
//! 0          control page        STOP_AT, NEXT_SEQUENCE_AT, ...
//! 4096       chunk states        one byte each: FREE -> OWNED -> FULL -> FREE
//! 8192       chunks              CHUNKS x CHUNK_BYTES: a header of 40 bytes, then words of 8 bytes
//! CODE_AT    code arena          block descriptions, appended, never moved: a block's id is its offset / 8
//! ```
//!
//! Access rules. A chunk belongs to one guest thread while OWNED. The thread writes words, then `USED_AT`, then (when
//! the chunk is full, or at an end) the sequence number, then the state FULL with release order. The recorder reads
//! FULL chunks in sequence order and sets FREE. A thread that ends without publishing (SIGKILL, execve) leaves an
//! OWNED chunk. All its words are valid, since `USED_AT` is stored after each word; the recorder reads these chunks
//! last, once every process has ended. The arena grows by fetch-and-add, from any process. A description is complete
//! before its block first runs, so a reader that finds a block's id in a FULL chunk can read the description.

/// Changes with the layout; the plugin refuses any other value.
pub const MAGIC: u64 = 0x636f_6c64_6672_0003;

pub const MAGIC_AT: u64 = 0;
/// One byte, set by the recorder: not zero means that recording has ended.
pub const STOP_AT: u64 = 8;
/// One byte, set by the plugin once installed.
pub const STARTED_AT: u64 = 9;
/// One byte, set by the plugin if something had to be left out (arena or chunks exhausted).
pub const LOST_AT: u64 = 10;
pub const NEXT_SEQUENCE_AT: u64 = 64;
pub const NEXT_TASK_AT: u64 = 128;
/// Address spaces: a number for each process, and a new one when it runs another program.
pub const NEXT_SPACE_AT: u64 = 256;
pub const CODE_END_AT: u64 = 192;

pub const STATES_AT: u64 = 4096;
pub const CHUNKS_AT: u64 = 8192;
pub const CHUNK_BYTES: u64 = 64 * 1024;
pub const CHUNKS: u64 = 4096;
pub const CODE_AT: u64 = CHUNKS_AT + CHUNKS * CHUNK_BYTES;
pub const CODE_BYTES: u64 = 1 << 30;
pub const TOTAL_BYTES: u64 = CODE_AT + CODE_BYTES;

pub const FREE: u8 = 0;
pub const OWNED: u8 = 1;
pub const FULL: u8 = 2;
/// Writers wait while this many chunks are FULL: 16 MiB in flight.
pub const FULL_MAX: usize = 256;

/// Chunk header, as byte offsets from the chunk's start.
pub const SEQUENCE_AT: u64 = 0;
pub const TASK_AT: u64 = 8;
pub const PID_AT: u64 = 12;
pub const TID_AT: u64 = 16;
pub const CONTENT_AT: u64 = 20;
/// Words in use (bytes of an event).
pub const USED_AT: u64 = 24;
pub const SPACE_AT: u64 = 32;
pub const HEADER_BYTES: u64 = 40;
pub const CHUNK_WORDS: u64 = (CHUNK_BYTES - HEADER_BYTES) / 8;

/// The kind of content in a chunk's body.
pub const CONTENT_REFERENCES: u32 = 1;
pub const CONTENT_EVENT: u32 = 2;

/// Events are text: the word, a newline, then the text listed here.
pub const EVENT_START: &str = "start"; // path of the program that this address space runs, also after fork
pub const EVENT_EXEC: &str = "exec"; // path; the process now runs it, recorded (its own `start` follows)
pub const EVENT_NATIVE: &str = "native"; // path, newline, why; the process now runs it, not recorded
pub const EVENT_FAILED: &str = "failed"; // the exec announced last did not happen
pub const EVENT_MAPS: &str = "maps"; // guest base in hexadecimal, newline, part of /proc/self/maps

// References. A word without the top bit: a block starts, and the word is its id.
// With the top bit: a data access of the block that runs.
//
//   63   62..60      59     58..49             48   47..0
//   1    log2 size   store  instruction index  -    address

pub const ACCESS: u64 = 1 << 63;
pub const ACCESS_SIZE_SHIFT: u32 = 60;
pub const ACCESS_STORE: u64 = 1 << 59;
pub const ACCESS_INSTRUCTION_SHIFT: u32 = 49;
pub const ACCESS_INSTRUCTION_MASK: u64 = (1 << 10) - 1;
pub const ADDRESS_MASK: u64 = (1 << 48) - 1;

// A block's description in the arena: address, number of instructions, then one byte of size for each, padded to 8.
pub const BLOCK_HEADER_WORDS: u64 = 2;
