//! `coldframe setup`: gives a group the right to page, once.

use std::fs;
use std::io;
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::failure::Failure;

/// The device: whoever may open it may handle the faults of their own programs, those in system calls too.
pub const DEVICE: &str = "/dev/userfaultfd";
/// The group that may open it.
const GROUP: &str = "coldframe";
/// The rule by which udev keeps that so.
const RULE: &str = "/etc/udev/rules.d/60-coldframe.rules";
const TEXT: &str = "\
# Written by `coldframe setup`; `coldframe setup --undo` removes it.
KERNEL==\"userfaultfd\", GROUP=\"coldframe\", MODE=\"0660\"
";

/// Give users the right to page their programs, once: `sudo coldframe setup`.
///
/// Makes the group `coldframe`, writes a rule for udev that lets this group open /dev/userfaultfd, applies it now, and
/// adds the user who calls sudo to the group. Members of the group can delay system calls of their own programs: the
/// kernel's developers keep that from other users because it has made bugs of the kernel easier to exploit.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo coldframe setup
  sudo coldframe setup --user alice
  sudo coldframe setup --undo

Exit codes: 0 done; 4 not root, or this kernel has no /dev/userfaultfd; 5 something cannot be written.")]
pub struct Args {
    /// A user to add to the group [default: the one who calls sudo].
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    user: Option<String>,
    /// Remove rule and group, and give the device back to root.
    #[arg(long)]
    undo: bool,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    let again = if args.undo { "sudo coldframe setup --undo" } else { "sudo coldframe setup" };
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Other { message: format!("setup changes /etc, which only root may: {again}"), code: 4 });
    }
    let say = |text: &str| {
        if !quiet {
            println!("{text}")
        }
    };
    if args.undo {
        undo(&say)
    } else {
        let caller = || std::env::var("SUDO_USER").ok().filter(|user| user != "root" && !user.is_empty());
        install(args.user.or_else(caller), &say)
    }?;
    Ok(ExitCode::SUCCESS)
}

fn install(user: Option<String>, say: &dyn Fn(&str)) -> Result<(), Failure> {
    if !Path::new(DEVICE).exists() {
        let message = format!("{DEVICE} is not there: this kernel is older than Linux 6.1 or has no CONFIG_USERFAULTFD, or a container hides it (docker run --device {DEVICE})");
        return Err(Failure::Other { message, code: 4 });
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
    say(&format!("{DEVICE} belongs to the group {GROUP} now"));
    let Some(user) = user else {
        say(&format!("add users with: usermod -aG {GROUP} NAME"));
        return Ok(());
    };
    tool(&["usermod", "-aG", GROUP, &user])?;
    say(&format!("{user} is in the group {GROUP} from the next login on; until then: newgrp {GROUP}"));
    Ok(())
}

fn undo(say: &dyn Fn(&str)) -> Result<(), Failure> {
    if Path::new(DEVICE).exists() {
        give(0, 0o600)?;
        say(&format!("{DEVICE} belongs to root alone again"));
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

/// The device as the rule has it: udev applies a rule only when a device appears.
fn give(gid: u32, mode: u32) -> Result<(), Failure> {
    let done = chown(DEVICE, Some(0), Some(gid));
    written(DEVICE, done.and_then(|()| fs::set_permissions(DEVICE, fs::Permissions::from_mode(mode))))
}

fn group() -> Option<u32> {
    fs::read_to_string("/etc/group").ok()?.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(GROUP)).then(|| fields.nth(1)?.parse().ok())?
    })
}

fn tool(words: &[&str]) -> Result<(), Failure> {
    let done = Command::new(words[0]).args(&words[1..]).status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(&words.join(" "), &io::Error::other(status.to_string()))),
        Err(error) => Err(failed(&words.join(" "), &error)),
    }
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::Other { message: format!("`{what}` failed: {error}; on Debian: apt-get install passwd"), code: 5 }
}

fn written(path: &str, done: io::Result<()>) -> Result<(), Failure> {
    done.map_err(|error| Failure::Other {
        message: format!("{path}: cannot be changed: {error}; is it read-only here?"),
        code: 5,
    })
}
