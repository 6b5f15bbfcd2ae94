//! Lines that give a unit or a container a limit, to paste.

/// A size that a unit or container can be given: whole MiB, rounded up.
pub(crate) fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Lines for units and containers: what is enough, and the most that it takes.
pub(crate) fn limits(enough: u64, maximum: u64) -> String {
    let (enough, maximum) = (mib(enough), mib(maximum));
    format!(
        "  systemd     MemoryHigh={enough}M\n  compose     mem_limit: {enough}m\n              memswap_limit: -1\n  \
         Kubernetes  resources:\n                requests: {{memory: {enough}Mi}}\n                limits: \
         {{memory: {maximum}Mi}}\n"
    )
}
