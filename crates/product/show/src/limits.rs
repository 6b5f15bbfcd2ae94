//! Lines that give a unit or a container a limit, to paste.

/// What a hard limit has more than the peak was: a tenth.
const MARGIN: u64 = 10;

/// A size that a unit or container can be given: whole MiB, rounded up.
pub(crate) fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Hard limits that hold the peak and a tenth more.
pub(crate) fn hard(peak: u64) -> String {
    let hard = mib(peak + peak / MARGIN);
    format!(
        "  docker --memory {hard}m · compose mem_limit: {hard}m\n  Kubernetes limits: {{memory: {hard}Mi}} · systemd \
         MemoryMax={hard}M\n"
    )
}

/// Lines for units and containers: hard limits hold the peak and a tenth more, so that nothing is killed that does the
/// same again; below them is what was enough.
pub(crate) fn limits(enough: u64, peak: u64) -> String {
    let (enough, hard) = (mib(enough), mib(peak + peak / MARGIN));
    format!(
        "  docker      --memory {hard}m --memory-reservation {enough}m\n  compose     mem_limit: {hard}m, \
         mem_reservation: {enough}m\n  Kubernetes  limits: {{memory: {hard}Mi}}, requests: {{memory: {enough}Mi}}\n  \
         systemd     MemoryMax={hard}M MemoryHigh={enough}M (above it, to swap)\n"
    )
}
