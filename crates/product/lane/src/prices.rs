//! What pages cost on a machine in virtual time: the route of a page to and from each place, and the stages of a fault.

use coldframe_core::Ps;
use coldframe_sheet::StagePrices;

use crate::faulty::Failures;
use coldframe_core::prefetch::Window;

/// Times of the device for one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceTimes {
    /// Time of LoadStopover.
    pub load: Ps,
    /// Time to program a page after the page has crossed the bus; `None` if no source gives it. Writes then take no
    /// time on the device, and the result says so.
    pub program: Option<Ps>,
}

/// Times of the device in a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectTimes {
    /// Reading one page and programming it, within the device.
    pub copy: Ps,
    /// Erasing one block.
    pub erase: Ps,
}

/// Times of a page in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Way {
    /// Processor time.
    pub processor: Ps,
    /// Device time, beside the processor; `None`: no device takes part.
    pub device: Option<Ps>,
}

/// Times of pages to and from a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Route {
    /// To RAM, up to the buffer.
    pub load: Way,
    /// From RAM.
    pub write: Way,
}

impl Route {
    /// The route of a device that loads by itself. For a write, the processor first moves the page over the bus, which
    /// takes `crossing`.
    pub fn device(times: DeviceTimes, crossing: Ps) -> Route {
        Route {
            load: Way { processor: Ps::ZERO, device: Some(times.load) },
            write: Way { processor: crossing, device: Some(times.program.unwrap_or(Ps::ZERO)) },
        }
    }
}

/// Processor time of the stages of a fault.
#[derive(Clone, Copy, Debug)]
pub enum Stages {
    /// A price for each stage.
    Each(StagePrices),
    /// One price for the whole fault, at its start.
    AtOnce(Ps),
}

/// The source of a page that was never written out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zeros {
    /// The device has every page from the start, as on the boards of SWL and DDB.
    Loaded,
    /// The page is zeros the first time, at no cost. Later the device has the page.
    Once,
    /// The page is zeros, at no cost.
    Free,
}

/// The configuration of a machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Prices of the stages.
    pub stages: Stages,
    /// Route of pages in their home slots.
    pub home: Route,
    /// Route of pages in the swap area.
    pub area: Route,
    /// The slots with this route. Those above are on the device of the home slots.
    pub area_slots: usize,
    /// Source of pages that were never written out.
    pub zeros: Zeros,
    /// Times of the swap area's collections.
    pub collect: CollectTimes,
    /// Extra time of a reference to a page in its slot, over a reference to RAM.
    pub slot_read: Ps,
    /// After this many references, a page that is read in its slot is reported as read often; `None`: never.
    pub reads_max: Option<u32>,
    /// Transfers that fail.
    pub failures: Option<Failures>,
    /// Time of the device for a page that it moves to RAM by itself, after it was read in a buffer. Other moves are in
    /// the time of the load.
    pub moves: Ps,
    /// Whether only pages from a device are moved from a buffer. Other pages are copied on their way, and zeros are
    /// made in their frame.
    pub moves_loaded_only: bool,
    /// Cache lines of a page. Consecutive references to a page read each line in a buffer or a slot once. `u32::MAX`:
    /// there is no cache.
    pub lines: u32,
    /// Slots of a swap area on flash that are read together with the page that a task waits for.
    pub window: Window,
}

impl MachineConfig {
    /// A machine with one device for home slots and swap area.
    pub fn device(prices: StagePrices, times: DeviceTimes, zeros: Zeros) -> MachineConfig {
        let route = Route::device(times, prices.trans_host_mem);
        MachineConfig {
            stages: Stages::Each(prices),
            home: route,
            area: route,
            area_slots: usize::MAX,
            zeros,
            collect: CollectTimes::default(),
            slot_read: Ps::ZERO,
            reads_max: None,
            failures: None,
            moves: Ps::ZERO,
            moves_loaded_only: false,
            lines: u32::MAX,
            window: Window::Alone,
        }
    }
}

impl MachineConfig {
    /// Whether no work of a fault takes time: only counts are asked for.
    pub fn takes_no_time(&self) -> bool {
        let nothing = Way { processor: Ps::ZERO, device: Some(Ps::ZERO) };
        let nothing = Route { load: nothing, write: nothing };
        let prices = StagePrices::uniform(Ps::ZERO);
        matches!(&self.stages, Stages::Each(each) if *each == prices) && self.home == nothing && self.area == nothing
    }
}
