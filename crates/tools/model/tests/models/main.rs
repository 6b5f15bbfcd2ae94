//! The models.
//!
//! ```text
//!   life.rs     one engine, few frames: fault, stale fault, evict, reload, an unseen drop, a fork
//!   aside.rs    the aside mapping: a downgrade that meets its own thread's page
//!   log.rs      the log's tables: slots, buffers, the writer, forked children
//!   order.rs    the pool of tasks and the locks
//!   locks.rs    the lock itself
//! ```

mod aside;
mod life;
mod locks;
mod log;
mod order;
