//! `coldframe doctor --setup`: gives a group the right to page, once.

use std::fs;
use std::io;
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::AnswerError;
use crate::run::awake;

/// The device: whoever may open it may handle the faults of their own programs, those in system calls too.
pub const DEVICE: &str = "/dev/userfaultfd";
/// The group that may open it.
const GROUP: &str = "coldframe";
/// The rule by which udev keeps that so, also for the device that keeps processors awake.
const RULE: &str = "/etc/udev/rules.d/60-coldframe.rules";
const TEXT: &str = "\
# Written by `coldframe doctor --setup`; `coldframe doctor --setup --undo` removes it.
KERNEL==\"userfaultfd\", GROUP=\"coldframe\", MODE=\"0660\"
KERNEL==\"cpu_dma_latency\", GROUP=\"coldframe\", MODE=\"0660\"
";

/// Gives a user the right, or, with `undo`, takes it back from all. `say`: hears of each step.
pub fn setup(user: Option<String>, undone: bool, say: &dyn Fn(&str)) -> Result<(), AnswerError> {
    let again = if undone { "sudo coldframe doctor --setup --undo" } else { "sudo coldframe doctor --setup" };
    if !rustix::process::geteuid().is_root() {
        return Err(AnswerError::new(4, format!("setup changes /etc, which only root may: {again}")));
    }
    if undone {
        return undo(say);
    }
    let caller = || std::env::var("SUDO_USER").ok().filter(|user| user != "root" && !user.is_empty());
    install(user.or_else(caller), say)
}

fn install(user: Option<String>, say: &dyn Fn(&str)) -> Result<(), AnswerError> {
    if let Some(user) = user.as_ref().filter(|user| !exists(user)) {
        return Err(AnswerError::usage(format!("--user {user}: there is no such user; nothing was changed")));
    }
    if !Path::new(DEVICE).exists() {
        let message = format!(
            "{DEVICE} is not there: this kernel is older than Linux 6.1 or has no \
                               CONFIG_USERFAULTFD, or a container hides it (docker run --device {DEVICE})"
        );
        return Err(AnswerError::new(4, message));
    }
    if group().is_none() {
        tool(&["groupadd", "--system", GROUP])?;
        say(&format!("made the group {GROUP}"));
    }
    let gid = group().ok_or_else(|| failed("groupadd", &io::Error::other("the group is not in /etc/group")))?;
    written(
        RULE,
        (|| {
            fs::create_dir_all(Path::new(RULE).parent().expect("it has a folder"))?;
            fs::write(RULE, TEXT)
        })(),
    )?;
    say(&format!("wrote {RULE}"));
    give(gid, 0o660)?;
    say(&format!("{DEVICE} and {} belong to the group {GROUP} now", awake::DEVICE));
    let Some(user) = user else {
        say(&format!("add users with: sudo usermod -aG {GROUP} NAME"));
        return Ok(());
    };
    tool(&["usermod", "-aG", GROUP, &user])?;
    say(&format!("{user} is in the group {GROUP} from the next login on; until then: newgrp {GROUP}"));
    Ok(())
}

fn undo(say: &dyn Fn(&str)) -> Result<(), AnswerError> {
    if Path::new(DEVICE).exists() {
        give(0, 0o600)?;
        say(&format!("{DEVICE} and {} belong to root alone again", awake::DEVICE));
    }
    if Path::new(RULE).exists() {
        written(RULE, fs::remove_file(RULE))?;
        say(&format!("removed {RULE}"));
    }
    if group().is_some() {
        tool(&["groupdel", GROUP])?;
        say(&format!("removed the group {GROUP}"));
    }
    Ok(())
}

/// The devices as the rule has them: udev applies a rule only when a device appears. A kernel may have no power
/// management.
fn give(gid: u32, mode: u32) -> Result<(), AnswerError> {
    for device in [DEVICE, awake::DEVICE].into_iter().filter(|device| Path::new(device).exists()) {
        let done = chown(device, Some(0), Some(gid));
        written(device, done.and_then(|()| fs::set_permissions(device, fs::Permissions::from_mode(mode))))?;
    }
    Ok(())
}

/// Whether there is such a user, in /etc/passwd or in a directory of users.
fn exists(user: &str) -> bool {
    let known = Command::new("id").args(["-u", "--", user]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    known.is_ok_and(|status| status.success())
}

fn group() -> Option<u32> {
    fs::read_to_string("/etc/group").ok()?.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(GROUP)).then(|| fields.nth(1)?.parse().ok())?
    })
}

fn tool(words: &[&str]) -> Result<(), AnswerError> {
    let done = Command::new(words[0]).args(&words[1..]).status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(&words.join(" "), &io::Error::other(status.to_string()))),
        Err(error) => Err(failed(&words.join(" "), &error)),
    }
}

fn failed(what: &str, error: &io::Error) -> AnswerError {
    AnswerError::new(5, format!("`{what}` failed: {error}; on Debian: apt-get install passwd"))
}

fn written(path: &str, done: io::Result<()>) -> Result<(), AnswerError> {
    done.map_err(|error| AnswerError::new(5, format!("{path}: cannot be changed: {error}; is it read-only here?")))
}
