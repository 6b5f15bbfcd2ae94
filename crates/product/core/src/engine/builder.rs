//! How an engine is made.

use super::Engine;
use crate::config::{Below, Config, ConfigError};
use crate::counts::Counts;
use crate::fault::block_size::FirstTouchBlocks;
use crate::fault::buffers::Buffers;
use crate::fault::flights::Flights;
use crate::fault::handler::Handler;
use crate::page_state::{PageStates, NUMBERS};
use crate::policy::Made;
use crate::prefetch::Arrival;
use crate::ram::Ram;
use crate::swap::backing::Backing;
use crate::swap::slots::Slots;
use crate::swap::{Swap, SwapAreas};

/// An engine that is being made: bounds first, then what is below its frames, then [`Builder::build`].
pub struct Builder {
    pub(super) config: Config,
    pub(super) policy: Made,
    pub(super) handler: &'static Handler,
    pub(super) below: Below,
    pub(super) arrival: Arrival,
}

impl Builder {
    /// Where pages go that leave the frames.
    pub fn below(self, below: Below) -> Builder {
        Builder { below, ..self }
    }

    /// How prefetched pages enter RAM.
    pub fn arrival(self, arrival: Arrival) -> Builder {
        Builder { arrival, ..self }
    }

    /// The engine, with nothing in RAM. All memory that it will ever use is allocated here.
    ///
    /// # Errors
    /// A bound is zero or does not fit into 29 bits, or what is below does not fit the machine.
    pub fn build(self) -> Result<Engine, ConfigError> {
        let Builder { config, policy, handler, below, arrival } = self;
        check(&config)?;
        let Config { frames, pages, tasks, caps, .. } = config;
        if caps.places && below != Below::default() {
            return Err(ConfigError::Placed);
        }
        let Below { slots, swap } = below;
        slots.map_or(Ok(()), |slots| within("slots", slots.slots))?;
        let swap = swap.map(|SwapAreas { slots_per_block, areas }| Swap::new(pages, slots_per_block, &areas));
        let swap = swap.transpose().map_err(ConfigError::Swap)?;
        let backing = Backing::new(pages, swap, slots.map(|slots| Slots::new(slots, pages, tasks)));
        let backing = backing.read_at_home(caps.direct_read);
        let buffers = caps.buffers as usize;
        Ok(Engine {
            pages: PageStates::new(pages),
            ram: Ram::new(&config, policy),
            blocks: FirstTouchBlocks::new(frames),
            // With a frame for each fault in flight, a search always finds one.
            flights: Flights::new(buffers.min(frames), tasks),
            buffers: Buffers::new(buffers, handler.needs_xip),
            backing,
            counts: Counts::default(),
            arrival,
            handler,
            config,
        })
    }
}

fn check(config: &Config) -> Result<(), ConfigError> {
    let Config { frames, pages, tasks, evict_batch, caps } = *config;
    let bounds = [("frames", frames), ("pages", pages), ("tasks", tasks), ("evict_batch", evict_batch)];
    for (field, value) in bounds.into_iter().chain([("buffers", caps.buffers as usize)]) {
        if value == 0 {
            return Err(ConfigError::Zero { field });
        }
        within(field, value)?;
    }
    Ok(())
}

fn within(field: &'static str, value: usize) -> Result<(), ConfigError> {
    if value < NUMBERS {
        Ok(())
    } else {
        Err(ConfigError::TooLarge { field, value })
    }
}
