//! The processor's time for the stages of a fault. The core counts work; a simulator multiplies the work by these
//! prices.

use coldframe_core::{Ps, Stage, Work};
use serde::{Deserialize, Serialize};

use crate::quantity::time_as_text;

/// Times of the stages of a fault handler on one processor. `LoadStopover` is the device's work and has no price here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StagePrices {
    /// PreProcess.
    #[serde(with = "time_as_text")]
    pub pre_process: Ps,
    /// GetFreeframe without its walk.
    #[serde(with = "time_as_text")]
    pub get_freeframe: Ps,
    /// Each frame examined in GetFreeframe.
    #[serde(with = "time_as_text")]
    pub walk_step: Ps,
    /// Each delayed downgrade, in GetFreeframe.
    #[serde(with = "time_as_text")]
    pub delayed_downgrade: Ps,
    /// TransHostMem: one page from the buffer to RAM.
    #[serde(with = "time_as_text")]
    pub trans_host_mem: Ps,
    /// UpdateMMU, including the policy's list work for the new page.
    #[serde(with = "time_as_text")]
    pub update_mmu: Ps,
    /// PostProcess.
    #[serde(with = "time_as_text")]
    pub post_process: Ps,
    /// The part of UpdateMMU in a false fault that manages the lists ("reference step").
    #[serde(with = "time_as_text")]
    pub false_fault_reference: Ps,
    /// The rest of a false fault, half of it before and half of it after the reference step.
    #[serde(with = "time_as_text")]
    pub false_fault_rest: Ps,
}

impl StagePrices {
    /// The same price for everything. For tests and benchmarks in which only counts matter.
    pub const fn uniform(price: Ps) -> StagePrices {
        StagePrices {
            pre_process: price,
            get_freeframe: price,
            walk_step: price,
            delayed_downgrade: price,
            trans_host_mem: price,
            update_mmu: price,
            post_process: price,
            false_fault_reference: price,
            false_fault_rest: price,
        }
    }

    /// The processor's time for a stage that did this work.
    pub fn of(&self, stage: Stage, work: &Work) -> Ps {
        if work.false_fault {
            return match stage {
                Stage::PreProcess => Ps(self.false_fault_rest.0.div_ceil(2)),
                Stage::UpdateMMU => self.false_fault_reference,
                Stage::PostProcess => Ps(self.false_fault_rest.0 / 2),
                _ => Ps::ZERO,
            };
        }
        match stage {
            Stage::PreProcess => self.pre_process,
            Stage::GetFreeframe => {
                self.get_freeframe
                    + self.walk_step * work.walk.0
                    + self.delayed_downgrade * u64::from(work.delayed_downgrades)
            }
            Stage::LoadStopover => Ps::ZERO,
            Stage::TransHostMem => self.trans_host_mem,
            Stage::UpdateMMU => self.update_mmu,
            Stage::PostProcess => self.post_process,
        }
    }
}
