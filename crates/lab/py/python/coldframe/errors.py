"""What can go wrong. Each class has the exit code of the command line, and its messages: what, where, and the remedy."""

from typing import ClassVar


class Error(Exception):
    """Any failure of coldframe."""

    code: ClassVar[int] = 1


class SettingError(Error, ValueError):
    """A setting that cannot be: an unknown name, a quantity without its unit, two that contradict each other."""

    code = 2


class TraceError(Error, ValueError):
    """A trace that is truncated, malformed, or does not hold what is asked of it."""

    code = 3


class MachineError(Error, RuntimeError):
    """This machine, or a worker, lacks what is needed."""

    code = 4


class FileError(Error, OSError):
    """A file cannot be read or written."""

    code = 5


class ClusterError(Error, RuntimeError):
    """The cluster is gone. What it has found is in the store: the same sweep with the same store goes on from there."""

    code = 5


class Interrupted(UserWarning):
    """Ctrl-C ended a sweep; its results so far are returned, and ``complete`` is false."""


def of(code: int, message: str) -> Error:
    """The error for an exit code of the command line."""
    kinds = (SettingError, TraceError, MachineError, FileError)
    return next((kind for kind in kinds if kind.code == code), Error)(message)
