//! What a user names: a process, a folder of the cgroup tree, a container, a unit of systemd.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::group::place::{mounted, path_of};
use crate::group::version::Version;
use crate::group::{below, Group};
use crate::KernelError;
use coldframe_proc::{ProcError, Process, Tree};

/// The ends of units' names.
const UNITS: [&str; 4] = [".service", ".scope", ".slice", ".socket"];

/// What is stopped: a process with its descendants, or a group.
#[derive(Debug)]
pub(crate) enum Target {
    Process(u32),
    Group(Group),
}

impl Target {
    /// What a name stands for.
    pub(crate) fn find(tree: &Tree, name: &str) -> Result<Target, KernelError> {
        Ok(match name.parse() {
            Ok(process) => Target::Process(process),
            Err(_) => match group_of(tree, name) {
                Ok(group) => Target::Group(group),
                Err(error) => Target::Process(process_of(tree, name, error)?),
            },
        })
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        match self {
            Target::Group(group) => group.processes(),
            Target::Process(root) => Process::of(*root).with_descendants(),
        }
    }

    /// The file that stops all processes of a group at once: with v2 only.
    pub(crate) fn freezer(&self) -> Option<PathBuf> {
        let Target::Group(group) = self else { return None };
        group.freezer()
    }
}

/// The group that a name stands for.
///
/// # Errors
/// There is no group of this name, or it is the root of all groups.
pub fn group_of(tree: &Tree, name: &str) -> Result<Group, KernelError> {
    let hierarchy =
        [Version::One, Version::Two].into_iter().find_map(|version| Some((version, mounted(tree, version)?)));
    let Some((version, place)) = hierarchy else {
        return Err(KernelError::no_cgroups());
    };
    let mount = place.mount;
    let folder = match name.parse::<u32>() {
        Ok(process) => of_process(tree, version, process)?,
        Err(_) if name.starts_with('/') => folder(tree, &mount, name).ok_or_else(|| {
            lacks(format!("there is no group {name} in {}", mount.display()), "systemd-cgls lists them")
        })?,
        Err(_) if UNITS.iter().any(|end| name.ends_with(end)) => unit(name).ok_or_else(|| {
            lacks(format!("systemd has no running unit {name}"), "systemctl list-units (with --user: yours) lists them")
        })?,
        Err(_) => match (pod(tree, &mount, name)?, container(name)) {
            (Some(folder), _) => folder,
            (None, Some(process)) => of_process(tree, version, process)?,
            (None, None) => unit(name).ok_or_else(|| {
                lacks(
                    format!("there is no running container, unit or process {name}"),
                    "docker ps, podman ps, systemctl list-units and ps -e list them; a group begins with /",
                )
            })?,
        },
    };
    let folder = folder_in(&mount, &folder);
    if folder == mount {
        return Err(lacks(
            format!("{name} is in the root of all groups, which has no limit"),
            "start it in a group of its own: systemd-run --scope (with --user: as yourself) -- PROGRAM",
        ));
    }
    Ok(Group::new(version, folder, None))
}

/// The process that a name stands for which is no group's, as `error` says.
///
/// # Errors
/// Several programs have this name, or `error`, if none has.
pub fn process_of(tree: &Tree, name: &str, error: KernelError) -> Result<u32, KernelError> {
    tree.named(name).map_err(|why| match why {
        ProcError::Several(..) => KernelError::Refused(why.to_string()),
        _ => error,
    })
}

fn lacks(what: String, remedy: &str) -> KernelError {
    KernelError::lacks(what, remedy)
}

fn of_process(tree: &Tree, version: Version, process: u32) -> Result<String, KernelError> {
    path_of(&tree.process(process), version)
        .ok_or_else(|| lacks(format!("there is no process {process}"), "ps -e lists them"))
}

/// Joins a path of the group tree, whose root is `/`, or one that begins at the machine's root.
fn folder_in(mount: &std::path::Path, path: &str) -> PathBuf {
    match path.starts_with(&mount.display().to_string()) {
        true => path.into(),
        false => mount.join(path.trim_matches('/')),
    }
}

/// The folder of a path from the machine's root or from the root of the groups.
fn folder(tree: &Tree, mount: &std::path::Path, name: &str) -> Option<String> {
    let places = [tree.path(name), mount.join(name.trim_matches('/'))];
    let folder = places.into_iter().find(|folder| folder.starts_with(mount) && folder.is_dir());
    folder.map(|folder| folder.display().to_string())
}

fn unit(name: &str) -> Option<String> {
    let ask = |who: &[&str]| {
        output_of(Command::new("systemctl").args(who).args(["show", "-p", "ControlGroup", "--value", "--", name]))
    };
    ask(&[]).or_else(|| ask(&["--user"]))
}

/// The first process of a running container.
fn container(name: &str) -> Option<u32> {
    let ask =
        |tool: &str| output_of(Command::new(tool).args(["inspect", "-f", "{{.State.Pid}}", "--", name]))?.parse().ok();
    ["docker", "podman"].into_iter().find_map(ask).filter(|process| *process != 0)
}

/// The folder of a Kubernetes pod, named as POD or NAMESPACE/POD. The kubelet keeps a folder for the logs of each pod
/// of its node, NAMESPACE_POD_UID; the group has the UID in its name, with `_` for `-` under systemd.
fn pod(tree: &Tree, mount: &Path, name: &str) -> Result<Option<String>, KernelError> {
    let logs = tree.path("/var/log/pods").read_dir().into_iter().flatten().flatten();
    let names: Vec<_> = logs.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let parts = names.iter().map(|entry| entry.split('_').collect::<Vec<_>>());
    let (space, pod) = name.split_once('/').unwrap_or(("", name));
    let fits = |it: &Vec<&str>| it.len() == 3 && it[1] == pod && (space.is_empty() || it[0] == space);
    let pods: Vec<_> = parts.filter(fits).collect();
    let groups = |uid: &str| {
        let ends = [format!("pod{uid}"), format!("pod{}.slice", uid.replace('-', "_"))];
        let roots = ["kubepods", "kubepods.slice", "kubelet.slice", "kubelet"].map(|root| mount.join(root));
        let mut found = None;
        for root in roots {
            below(&root, &mut |folder| {
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                found = found.take().or(ends.iter().any(|end| name.ends_with(end)).then(|| folder.to_path_buf()));
            });
        }
        found
    };
    let running: Vec<_> = pods.iter().filter_map(|it| Some((it[0], groups(it[2])?))).collect();
    match running.as_slice() {
        [(_, folder)] => Ok(Some(folder.display().to_string())),
        [] if pods.is_empty() => Ok(None),
        [] => Err(lacks(format!("the pod {name} is gone from this node"), "kubectl get pods -o wide says where it is")),
        several => {
            let spaces: Vec<_> = several.iter().map(|(space, _)| format!("{space}/{pod}")).collect();
            let remedy = format!("name one as {}", spaces.join(" or "));
            Err(lacks(format!("{} pods are called {name}", several.len()), &remedy))
        }
    }
}

/// The output of a tool; `None` if it fails or prints nothing.
fn output_of(command: &mut Command) -> Option<String> {
    let done = command.output().ok().filter(|done| done.status.success())?;
    let text = String::from_utf8_lossy(&done.stdout).trim().to_string();
    (!text.is_empty()).then_some(text)
}
