//! The names of those who page a program.

/// Who is to page a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pager {
    /// Our pager if it can, else the kernel.
    Auto,
    /// Our pager.
    Ours,
    /// The kernel.
    Kernel,
}

impl Pager {
    /// With their names on the command line.
    pub const ALL: [(&'static str, Pager); 3] =
        [("auto", Pager::Auto), ("pager", Pager::Ours), ("kernel", Pager::Kernel)];

    /// By its name.
    pub fn parse(name: &str) -> Option<Pager> {
        Pager::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, pager)| pager)
    }
}
