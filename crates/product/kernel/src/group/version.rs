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
    fn select(self, v1: &'static str, v2: &'static str) -> &'static str {
        match self {
            Version::One => v1,
            Version::Two => v2,
        }
    }

    /// The file of the hard limit, in bytes.
    pub fn limit_file(self) -> &'static str {
        self.select("memory.limit_in_bytes", "memory.max")
    }

    /// The file of the limit above which the kernel pushes out, and kills nothing. v1 has no other limit than the hard
    /// one.
    pub fn squeeze_file(self) -> &'static str {
        self.select("memory.limit_in_bytes", "memory.high")
    }

    pub(crate) fn usage_file(self) -> &'static str {
        self.select("memory.usage_in_bytes", "memory.current")
    }

    /// With v2 since Linux 5.19.
    pub(crate) fn peak_file(self) -> &'static str {
        self.select("memory.max_usage_in_bytes", "memory.peak")
    }
}
