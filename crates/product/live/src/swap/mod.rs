//! Where pages are when they are not in RAM: a device, the log on it, encryption and hashes. The work on pages calls
//! this room; a fork and the pager's threads bring it to an end. It knows no fault and no engine.

pub mod area;
pub mod device;
pub mod files;
pub mod log;
pub mod parent;
pub mod seal;
pub mod secret;
pub mod slow;
pub mod sum;
