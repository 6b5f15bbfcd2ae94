//! The kernel and the processor, as one page sees them. Each call is one step, as under the page table's lock.

use std::sync::Arc;

use shuttle::sync::Mutex;

/// Words in a page; each thread of a model writes its own word.
pub const WORDS: usize = 4;
/// The bytes of a page.
pub type Bytes = [u32; WORDS];

/// A frame of RAM. The page table and a pipe may both refer to it.
type Frame = Arc<Mutex<Bytes>>;

/// Why an access faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// No frame.
    Missing,
    /// A frame, and no right to write to it.
    Protected,
}

/// A page is already mapped: EEXIST.
#[derive(Debug)]
pub struct Exists;

#[derive(Clone)]
struct Entry {
    frame: Frame,
    protected: bool,
    /// A child shares the frame, so the next write goes to a copy.
    shared: bool,
}

/// A page table. Its second half is the aside mapping.
pub struct Kernel {
    entries: Vec<Mutex<Option<Entry>>>,
}

impl Kernel {
    /// A table of this many pages, none of them mapped.
    pub fn new(pages: usize) -> Kernel {
        Kernel { entries: (0..pages).map(|_| Mutex::new(None)).collect() }
    }

    /// A load instruction of the program.
    pub fn read(&self, page: usize, word: usize) -> Result<u32, Fault> {
        let entry = self.entries[page].lock().unwrap();
        let entry = entry.as_ref().ok_or(Fault::Missing)?;
        let value = entry.frame.lock().unwrap()[word];
        Ok(value)
    }

    /// A store instruction of the program.
    pub fn write(&self, page: usize, word: usize, value: u32) -> Result<(), Fault> {
        let mut entry = self.entries[page].lock().unwrap();
        let entry = entry.as_mut().ok_or(Fault::Missing)?;
        if entry.protected {
            return Err(Fault::Protected);
        }
        if std::mem::take(&mut entry.shared) {
            let bytes = *entry.frame.lock().unwrap();
            entry.frame = Arc::new(Mutex::new(bytes));
        }
        entry.frame.lock().unwrap()[word] = value;
        Ok(())
    }

    /// UFFDIO_COPY: a new frame with these bytes, unless the page is mapped.
    pub fn copy(&self, page: usize, bytes: Bytes, protected: bool) -> Result<(), Exists> {
        let mut entry = self.entries[page].lock().unwrap();
        if entry.is_some() {
            return Err(Exists);
        }
        *entry = Some(Entry { frame: Arc::new(Mutex::new(bytes)), protected, shared: false });
        Ok(())
    }

    /// UFFDIO_WRITEPROTECT. Does nothing if the page is not mapped.
    pub fn protect(&self, page: usize, on: bool) {
        if let Some(entry) = self.entries[page].lock().unwrap().as_mut() {
            entry.protected = on;
        }
    }

    /// UFFDIO_MOVE: moves the frame itself. False: the source is not mapped, or the target is.
    pub fn move_page(&self, to: usize, from: usize) -> bool {
        // The locks are taken in a fixed order, so two opposite moves cannot deadlock.
        let (first, second) = (to.min(from), to.max(from));
        let (mut a, mut b) = (self.entries[first].lock().unwrap(), self.entries[second].lock().unwrap());
        let (target, source) = if to < from { (&mut a, &mut b) } else { (&mut b, &mut a) };
        if target.is_some() || source.is_none() {
            return false;
        }
        **target = source.take().map(|entry| Entry { protected: false, ..entry });
        true
    }

    /// vmsplice: the pipe refers to the frame from now on. `None`: the page is not mapped, so the call would fault.
    pub fn to_pipe(&self, page: usize) -> Option<InPipe> {
        let entry = self.entries[page].lock().unwrap();
        entry.as_ref().map(|entry| InPipe(entry.frame.clone()))
    }

    /// fork: a copy of the page table. Both tables share all frames from now on.
    pub fn fork(&self) -> Kernel {
        let share = |entry: &Mutex<Option<Entry>>| {
            let mut entry = entry.lock().unwrap();
            entry.iter_mut().for_each(|entry| entry.shared = true);
            Mutex::new(entry.clone())
        };
        Kernel { entries: self.entries.iter().map(share).collect() }
    }

    /// MADV_DONTNEED. The bytes are lost unless something else refers to the frame.
    pub fn zap(&self, page: usize) {
        *self.entries[page].lock().unwrap() = None;
    }
}

/// A frame that a pipe refers to.
pub struct InPipe(Frame);

impl InPipe {
    /// The frame's bytes now, including all writes before the zap.
    pub fn read(self) -> Bytes {
        *self.0.lock().unwrap()
    }
}
