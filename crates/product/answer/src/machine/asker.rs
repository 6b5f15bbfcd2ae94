//! Who has an answer, and types what it says.

use coldframe_kernel::{Place, Tree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::by_kernel::has_scopes;
use crate::run::program::is_root;

/// Who has an answer, and what their shell may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// A user who may not limit memory.
    #[default]
    User,
    /// A user who may make memory groups, and no swap.
    Groups,
    /// A user by `sudo`: their shell may do no more than they.
    Sudo,
    /// Root's shell.
    Root,
}

impl Asker {
    /// Of this process.
    pub(crate) fn now() -> Asker {
        let sudo = std::env::var_os("SUDO_USER").is_some_and(|user| !user.is_empty() && user != "root");
        let tree = Tree::machine();
        Asker::new(is_root(), sudo, || Place::find(&tree).is_ok() || has_scopes(&tree))
    }

    fn new(root: bool, sudo: bool, groups: impl Fn() -> bool) -> Asker {
        match (root, sudo) {
            (true, true) => Asker::Sudo,
            (true, false) => Asker::Root,
            (false, _) if groups() => Asker::Groups,
            (false, _) => Asker::User,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_by_sudo_has_a_users_shell() {
        assert_eq!([Asker::new(true, true, || true), Asker::new(true, false, || true)], [Asker::Sudo, Asker::Root]);
        assert_eq!(
            [Asker::new(false, true, || true), Asker::new(false, false, || false)],
            [Asker::Groups, Asker::User]
        );
    }
}
