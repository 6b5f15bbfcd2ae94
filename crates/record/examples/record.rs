//! The library from the command line, without the `coldframe` program: for trying things out.
//!
//! `cargo run --release -p coldframe-record --example record -- OUT exact|PAGE SKIP MAX PROGRAM [ARGS]`

use coldframe_record::{find_plugin, record, Level, Recording};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let mut text = || args.next().and_then(|a| a.into_string().ok()).ok_or("OUT exact|PAGE SKIP MAX PROGRAM [ARGS]");
    let (out, level, skip, max, program) = (text()?, text()?, text()?, text()?, text()?);
    let mut order = Recording::new(program, args.collect(), out);
    order.level = if level == "exact" { Level::Exact } else { Level::Pages(level.parse()?) };
    order.limits.skip_refs = skip.parse()?;
    order.limits.max_refs = max.parse().ok().filter(|max| *max > 0);
    order.plugin = std::env::current_exe()?.parent().and_then(find_plugin);
    let outcome = record(&order, &mut |_| {}).inspect_err(|error| eprintln!("{error}"))?;
    eprintln!("{outcome:#?}");
    Ok(())
}
