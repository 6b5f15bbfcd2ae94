//! The two versions of cgroups, and the names of their files.

/// The version of a cgroup. Its files have other names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

impl Version {
    fn of(self, one: &'static str, two: &'static str) -> &'static str {
        match self {
            Version::One => one,
            Version::Two => two,
        }
    }

    /// The file of the hard limit, in bytes.
    pub fn limit_file(self) -> &'static str {
        self.of("memory.limit_in_bytes", "memory.max")
    }

    /// The file of the limit above which the kernel pushes out, and kills nothing. v1 has no other limit than the hard
    /// one.
    pub fn squeeze_file(self) -> &'static str {
        self.of("memory.limit_in_bytes", "memory.high")
    }

    pub(crate) fn usage_file(self) -> &'static str {
        self.of("memory.usage_in_bytes", "memory.current")
    }

    /// With v2 since Linux 5.19.
    pub(crate) fn peak_file(self) -> &'static str {
        self.of("memory.max_usage_in_bytes", "memory.peak")
    }
}
