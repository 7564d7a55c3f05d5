"""Checkpoints: one file, written whole or not at all, loaded whole or refused.

The file is a magic line, two lengths and two checksums, a header in JSON and the arrays as
Equinox serializes them:

    magic | header's length, CRC | arrays' length, CRC | header | arrays

so that the header can be read alone, and damage anywhere is noticed. The header holds the
libraries' versions, the configuration, the progress, and a manifest of the arrays. In place of the
arrays may be a description of a folder that has them, see `shards`.
"""

import contextlib
import io
import json
import platform
import struct
import zlib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from agents.running import shards
from agents.running.errors import CheckpointError, OtherStateError
from agents.running.files import write_whole
from agents.running.output import printable
from zoo.annotations import annotations_of, fitted
from zoo.parts.checks import shown

MAGIC = b"trace-zoo checkpoint 2\n"
_SIZES = struct.Struct(">QIQI")
_TRIES = 10  # to read what is written anew meanwhile
_LIBRARIES = ("trace-zoo", "jax", "jaxlib", "equinox", "numpy", "optax", "gymnax")

State = TypeVar("State")


class Header(NamedTuple):
    """What a checkpoint says about itself: what the run is, how far it had come, the libraries that
    wrote it, and path, shape and dtype of every array.
    """

    config: dict[str, Any]
    progress: dict[str, Any]
    versions: dict[str, str]
    leaves: list[tuple[str, list[int], str]]


def save(path: str | Path, state: Any, *, config: Mapping, progress: Mapping) -> None:
    """Write a checkpoint, replacing the one at `path` only once it is complete.

    **Arguments:**

    - `path`: the file to write. Its folder must exist.
    - `state`: a pytree of arrays; typed PRNG keys are allowed.
    - `config`, `progress`: what the run is and how far it has come, for JSON.

    **Raises:**

    `OSError` if it cannot be written. The file that was there is then untouched.
    """
    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, without_typed_keys(state))
    save_described(path, state, buffer.getvalue(), config=config, progress=progress)


def save_described(
    path: str | Path, state: Any, arrays: bytes, *, config: Mapping, progress: Mapping
) -> None:
    """Write a checkpoint as `save` does, with other bytes for its arrays.

    **Arguments:**

    - `state`: a pytree of the arrays, or of their shapes and dtypes.
    """
    header = Header(dict(config), dict(progress), versions(), _manifest(state))
    text = json.dumps(header._asdict()).encode()
    sizes = _SIZES.pack(len(text), zlib.crc32(text), len(arrays), zlib.crc32(arrays))
    write_whole(path, MAGIC + sizes + text + arrays)


def load(
    path: str | Path, like: State, *, config: Mapping | None, where: Any = None
) -> tuple[State, dict]:
    """Load a checkpoint, of either kind: the state and the progress.

    **Arguments:**

    - `like`: a pytree of the structure, shapes and dtypes that are expected.
    - `config`: the configuration that is expected, or `None` to accept any.
    - `where`: of `like`'s structure, on which devices of the job each array is to lie, so that
        of arrays in a folder each process reads its part. Those of a file are whole everywhere.

    **Raises:**

    `CheckpointError` if the file is no checkpoint, is damaged, or holds another configuration or
    other arrays. Nothing is loaded then.
    """
    for _ in range(_TRIES):
        header, arrays = _whole(path)
        try:
            return _loaded(path, header, arrays, like, config, where)
        except CheckpointError:
            # Of a run that is being trained the folder is removed once there is the next one.
            if not shards.described(arrays) or _whole(path)[1] == arrays:
                raise
    raise CheckpointError(f"{path} is written anew faster than it can be read: try again.")


def _loaded(
    path: str | Path,
    header: Header,
    arrays: bytes,
    like: State,
    config: Mapping | None,
    where: Any,
) -> tuple[State, dict]:
    differing = [] if config is None else differences(header.config, config)
    if differing:
        raise CheckpointError(
            f"{path} is a checkpoint of another configuration:\n"
            + "\n".join(f"  {line}" for line in differing)
        )
    _check_manifest(path, header.leaves, _manifest(like))
    bare = without_typed_keys(like)
    if shards.described(arrays):
        return _with_typed_keys(shards.read(Path(path), arrays, bare, where), like), header.progress
    stream = io.BytesIO(arrays)
    try:
        bare = eqx.tree_deserialise_leaves(stream, bare)
    except (RuntimeError, ValueError, TypeError, EOFError, MemoryError):
        raise CheckpointError(
            f"{path} is damaged: its arrays are not those that it lists."
        ) from None
    if stream.read(1):
        raise CheckpointError(f"{path} is damaged: it holds more arrays than it lists.")
    return _with_typed_keys(bare, like), header.progress


def read_header(path: str | Path) -> Header:
    """Read what a checkpoint says about itself, without its arrays.

    **Raises:**

    `CheckpointError` if the file is no checkpoint, or its header is damaged.
    """
    start = _read(path, len(MAGIC) + _SIZES.size)
    length = _SIZES.unpack_from(start, len(MAGIC))[0] if len(start) > len(MAGIC) + 8 else 0
    return _header(path, _read(path, len(start) + length))[0]


def read_arrays(path: str | Path) -> bytes:
    """Read the bytes of a checkpoint's arrays, or of the description of their folder.

    **Raises:**

    `CheckpointError` if the file is no checkpoint, or is damaged.
    """
    return _whole(path)[1]


def _whole(path: str | Path) -> tuple[Header, bytes]:
    """The header and the bytes of the arrays, where both are what was written."""
    content = _read(path)
    header, start = _header(path, content)
    arrays = content[start:]
    *_, length, checksum = _SIZES.unpack_from(content, len(MAGIC))
    if len(arrays) != length:
        what = "is truncated" if len(arrays) < length else "has grown"
        raise CheckpointError(
            f"{path} {what}: {len(arrays)} bytes of arrays, its header says {length}."
        )
    if zlib.crc32(arrays) != checksum:
        raise CheckpointError(f"{path} is damaged: its arrays do not match their checksum.")
    return header, arrays


def _read(path: str | Path, count: int = -1) -> bytes:
    """The first bytes of a checkpoint, or all of them, if it is one."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(min(count, Path(path).stat().st_size) if count >= 0 else -1)
    except FileNotFoundError:
        raise CheckpointError(f"There is no checkpoint at {path}.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    if MAGIC.startswith(content):
        raise CheckpointError(f"{path} is empty or truncated.")
    if not content.startswith(MAGIC):
        ours = content.startswith(MAGIC.split()[0])
        what = "of another version of trace-zoo" if ours else "not a trace-zoo checkpoint"
        raise CheckpointError(f"{path} is {what}.")
    if len(content) < len(MAGIC) + _SIZES.size:
        raise CheckpointError(f"{path} is truncated: it ends within its header.")
    return content


def _header(path: str | Path, content: bytes) -> tuple[Header, int]:
    """The header, and where the arrays start."""
    length, checksum, _, _ = _SIZES.unpack_from(content, len(MAGIC))
    start = len(MAGIC) + _SIZES.size
    text = content[start : start + length]
    if len(text) < length:
        raise CheckpointError(f"{path} is truncated: it ends within its header.")
    if zlib.crc32(text) != checksum:
        raise CheckpointError(f"{path} is damaged: its header does not match its checksum.")
    return _parsed(path, text), start + length


def _parsed(path: str | Path, text: bytes) -> Header:
    """The header, where it has what ours have, of the kinds that ours have."""
    try:
        found = json.loads(text)
        names = list(found) if isinstance(found, dict) else ()
        if sorted(names) != sorted(Header._fields):
            raise ValueError(f"it has {shown(names)}, and {list(Header._fields)} is expected")
        for name, kind in annotations_of(Header).items():
            fitted(name, found[name], kind)
        _flatten(found["config"])  # as deep as comparing goes
    except RecursionError:
        raise CheckpointError(f"{path} has a header that is nested too deeply.") from None
    except (ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path} has a header that this version of trace-zoo does not know: {error}"
        ) from None
    return Header(**found)


def progress_of(path: str | Path, progress: Mapping) -> int:
    """Return the iterations that a checkpoint says were done.

    **Raises:**

    `CheckpointError` if it does not say.
    """
    done = progress.get("iteration")
    if type(done) is not int or done < 0:
        raise CheckpointError(f"{path} does not say how far the run had come (={shown(done)}).")
    return done


def iterations_in(path: Path) -> int:
    """Return the iterations that the checkpoint at `path` says were done; 0 where there is none.

    **Raises:**

    `CheckpointError` if it is damaged, or does not say.
    """
    return progress_of(path, read_header(path).progress) if path.exists() else 0


def written_by(header: Header) -> str:
    """Say which version wrote a checkpoint, where it is another one; else nothing."""
    there, here = header.versions.get("trace-zoo"), versions().get("trace-zoo")
    return "" if there == here else f" (written by trace-zoo {shown(there)}, this is {here})"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a run depends on, by name."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def differences(stored: Mapping, asked: Mapping) -> list[str]:
    """Compare two configurations as JSON: a line for each key that differs, nested ones dotted."""
    old, new = (_flatten(json.loads(json.dumps(dict(x)))) for x in (stored, asked))
    filled = {key[:end] for key in [*old, *new] for end in range(len(key)) if key[end] == "."}
    return [
        f"{printable(key)}: {old.get(key, 'absent')} there, {new.get(key, 'absent')} asked for"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key) and key not in filled  # empty in one, lines in the other
    ]


def _flatten(config: Any, prefix: str = "") -> dict[str, str]:
    # Values stay as JSON text: that tells 1 from "1" and equates NaN with NaN.
    if not isinstance(config, dict) or not config:
        return {prefix: json.dumps(config)}
    flat: dict[str, str] = {}
    for key, value in config.items():
        flat |= _flatten(value, f"{prefix}.{key}" if prefix else key)
    return flat


def _manifest(tree: Any) -> list[tuple[str, list[int], str]]:
    """Path, shape and dtype of each array (`key<fry>` for a typed key), as JSON."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path), list(x.shape), str(x.dtype)) for path, x in leaves]


def _check_manifest(path: str | Path, stored: list, expected: list) -> None:
    there, wanted = (
        {name: printable(f"{dtype}{shape}") for name, shape, dtype in x} for x in (stored, expected)
    )
    problems = [
        f"array {printable(name)} is {there.get(name, 'missing')} there, "
        f"{wanted.get(name, 'none')} expected"
        for name in dict.fromkeys([*wanted, *there])
        if there.get(name) != wanted.get(name)
    ]
    if not problems and list(there) != list(wanted):
        problems.append("the arrays are in another order")
    if problems:
        shown = problems[:10] + ([f"and {len(problems) - 10} more"] if problems[10:] else [])
        raise OtherStateError(
            f"{path} holds another state:\n" + "\n".join(f"  {line}" for line in shown)
        )


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def without_typed_keys(tree: Any) -> Any:
    """Replace typed keys, which neither Equinox nor orbax can write, by their integers."""

    def bare(x):
        shape_only = isinstance(x, jax.ShapeDtypeStruct)
        return jax.eval_shape(jax.random.key_data, x) if shape_only else jax.random.key_data(x)

    return jax.tree.map(lambda x: bare(x) if _is_key(x) else x, tree)


def _with_typed_keys(tree: State, like: State) -> State:
    def typed(leaf, model):
        # The implementation's name is public for a key, not for its ShapeDtypeStruct.
        names: list[Any] = []
        jax.eval_shape(lambda key: names.append(jax.random.key_impl(key)), model)
        return jax.random.wrap_key_data(leaf, impl=names[0])

    return jax.tree.map(lambda x, model: typed(x, model) if _is_key(model) else x, tree, like)
