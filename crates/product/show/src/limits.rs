//! Lines that give a unit or a container a limit, to paste.

/// A size that a unit or container can be given: whole MiB, rounded up.
pub(crate) fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Lines for units and containers: what is enough, and the most that it takes.
pub(crate) fn limits(enough: u64, most: u64) -> String {
    let (least, most) = (mib(enough), mib(most));
    format!(
        "  systemd     MemoryHigh={least}M\n  compose     mem_limit: {least}m\n              memswap_limit: -1\n  Kubernetes  \
         resources:\n                requests: {{memory: {least}Mi}}\n                limits: {{memory: {most}Mi}}\n"
    )
}
