"""Checkpoints as a stranger could write them: checksums and lengths right, contents not."""

import json
import zlib
from pathlib import Path

from agents.running.checkpoint import _SIZES, MAGIC


def rewritten(path: Path, header=None, arrays=None) -> tuple[bytes, bytes]:
    """Header and arrays of a checkpoint, after those given were written in their place."""
    content = path.read_bytes()
    start = len(MAGIC) + _SIZES.size
    length, *_ = _SIZES.unpack_from(content, len(MAGIC))
    text, rest = content[start : start + length], content[start + length :]
    if header is not None:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
    rest = rest if arrays is None else arrays
    sizes = _SIZES.pack(len(text), zlib.crc32(text), len(rest), zlib.crc32(rest))
    path.write_bytes(MAGIC + sizes + text + rest)
    return text, rest
