//! Arguments of `coldframe-lab sim` for swap areas and for several tasks.

use coldframe_experiment::settings::Vary;
use coldframe_experiment::Settings;

/// Options for swap areas only.
#[derive(clap::Args)]
#[command(next_help_heading = "Swap areas")]
pub struct AreaArgs {
    /// Number of erase blocks of the swap area.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    blocks: Vec<String>,
    /// log (LOBI), linux (on bare flash), or on a device with a translation layer linux-ftl or linux-discard (told of
    /// free slots).
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    layout: Vec<String>,
    /// Pages that are read together with a page: none, block:N (LOBI), aligned:N (Linux) or pages:N (Linux since 4.14).
    #[arg(long, value_name = "NAME:N", value_delimiter = ',')]
    swap_window: Vec<String>,
    /// greedy, cost-benefit, cost-age-times:VICTIMS or cost-benefit-age:VICTIMS.
    #[arg(long, value_name = "NAME[:N]", value_delimiter = ',')]
    collector: Vec<String>,
    /// Memory of the swap area: dram, emmc, nvm, nvm-dr (read in place; the default) or none.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    swap_device: Vec<String>,
    /// Size of the swap area, or a percentage of the footprint (default 128MiB).
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_hyphen_values = true)]
    swap_size: Vec<String>,
}

impl AreaArgs {
    /// The settings that a sweep varies in its outer loops.
    pub fn varied(&self) -> Vec<Vary> {
        vec![
            (|s, v| s.swap.blocks = Some(v.into()), self.blocks.clone()),
            (|s, v| s.swap.layout = Some(v.into()), self.layout.clone()),
            (|s, v| s.swap.read_ahead = Some(v.into()), self.swap_window.clone()),
            (|s, v| s.swap.collector = Some(v.into()), self.collector.clone()),
            (|s, v| s.swap.backing = Some(v.into()), self.swap_device.clone()),
            (|s, v| s.swap.size = Some(v.into()), self.swap_size.clone()),
        ]
    }
}

/// Options for several tasks only.
#[derive(clap::Args)]
#[command(next_help_heading = "Several tasks on one processor (--scheduler, --prefetch, or --system sap)")]
pub struct TasksArgs {
    /// round-robin, cfs (Linux 2.6.24) or eevdf (Linux today); default cfs.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    scheduler: Vec<String>,
    /// When to load the next task's pages: off, 75, 50, xi=0.6 (part of the slice) or timer=0.6; default 75.
    #[arg(long, value_name = "WHEN", value_delimiter = ',')]
    prefetch: Vec<String>,
    /// The scheduler keeps its prediction, even if another task wakes up.
    #[arg(long)]
    follow: bool,
}

impl TasksArgs {
    /// The settings that a sweep varies in its inner loops.
    pub fn varied(&self) -> Vec<Vary> {
        vec![
            (|s, v| s.tasks.scheduler = Some(v.into()), self.scheduler.clone()),
            (|s, v| s.tasks.prefetch = Some(v.into()), self.prefetch.clone()),
        ]
    }

    /// The settings that all configurations share.
    pub fn apply(&self, settings: &mut Settings) {
        settings.tasks.follow = settings.tasks.follow.or(self.follow.then_some(true));
    }
}
