"""Which build this is: two that differ in what they find may have the same version."""

import hashlib
from pathlib import Path

from . import _native

BUILD = f"{_native.VERSION}-{hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()[:16]}"
"""The version and a hash of the compiled part."""
