"""Checkpoints: one file, written whole or not at all, loaded whole or refused.

The file is a magic line, the length of the header (8 bytes, big-endian), the header's
SHA-256, the header (JSON) and the payload (the arrays, as Equinox serializes them). The
header holds the format's version, the libraries' versions, the configuration, the
progress, a manifest of the arrays, and the payload's length and SHA-256.
"""

import hashlib
import io
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

MAGIC = b"trace-zoo checkpoint\n"
FORMAT = 1
_LENGTH_BYTES, _HASH_BYTES = 8, 32
_LIBRARIES = ("trace-zoo", "jax", "jaxlib", "equinox", "numpy", "optax", "gymnax")

State = TypeVar("State")


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded; the message says what is wrong with it."""


class RunFolderError(ValueError):
    """An output folder that cannot be used; nothing in it was changed."""


@dataclass(frozen=True)
class Header:
    """What a checkpoint says about itself.

    **Arguments:**

    - `format`: the version of the file format.
    - `versions`: the versions of the libraries that wrote it.
    - `config`: the configuration of the run.
    - `progress`: how far the run had come.
    - `leaves`: path, shape and dtype of every array, in order.
    - `payload_length`: bytes of the arrays.
    - `payload_sha256`: their SHA-256.
    """

    format: int
    versions: dict[str, str]
    config: dict[str, Any]
    progress: dict[str, Any]
    leaves: list[list[Any]]
    payload_length: int
    payload_sha256: str


def save(path: str | Path, state: Any, *, config: Mapping, progress: Mapping) -> None:
    """Writes a checkpoint, replacing the one at `path` only once it is complete.

    **Arguments:**

    - `path`: the file to write. Its folder must exist.
    - `state`: a pytree of arrays; typed PRNG keys are allowed.
    - `config`: what the run is (JSON).
    - `progress`: how far it has come (JSON).

    **Raises:**

    - `OSError`: if it cannot be written. The file that was there is then untouched.
    """
    buffer = io.BytesIO()
    eqx.tree_serialise_leaves(buffer, _without_typed_keys(state))
    payload = buffer.getvalue()
    header = Header(
        format=FORMAT,
        versions=versions(),
        config=dict(config),
        progress=dict(progress),
        leaves=_manifest(state),
        payload_length=len(payload),
        payload_sha256=hashlib.sha256(payload).hexdigest(),
    )
    text = json.dumps(asdict(header)).encode()
    start = MAGIC + len(text).to_bytes(_LENGTH_BYTES, "big") + hashlib.sha256(text).digest()
    write_whole(path, start + text + payload)


def load(path: str | Path, like: State, *, config: Mapping | None) -> tuple[State, dict]:
    """Loads a checkpoint that `save` wrote.

    **Arguments:**

    - `path`: the file.
    - `like`: a pytree of the structure, shapes and dtypes that are expected; arrays
        or `jax.ShapeDtypeStruct`s (as from `jax.eval_shape`).
    - `config`: the configuration that is expected, or `None` to accept any.

    **Returns:**

    The state and the progress.

    **Raises:**

    - `CheckpointError`: if the file is no checkpoint, is damaged, has another format,
        another configuration or other arrays. Nothing is loaded then.
    """
    header, payload = _read(Path(path))
    if config is not None:
        differing = differences(header.config, config)
        if differing:
            raise CheckpointError(
                f"{path} is a checkpoint of another configuration:\n"
                + "\n".join(f"  {line}" for line in differing)
            )
    _check_manifest(path, header.leaves, _manifest(like))
    bare = eqx.tree_deserialise_leaves(io.BytesIO(payload), _without_typed_keys(like))
    return _with_typed_keys(bare, like), header.progress


def read_header(path: str | Path) -> Header:
    """Reads what a checkpoint says about itself, after checking it is undamaged.

    **Arguments:**

    - `path`: the file.

    **Returns:**

    Its header.

    **Raises:**

    - `CheckpointError`: if the file is no checkpoint, damaged, or of another format.
    """
    return _read(Path(path))[0]


def write_whole(path: str | Path, content: bytes) -> None:
    """Writes a file so that a crash leaves either the old file or the new one.

    **Arguments:**

    - `path`: the file to write. Its folder must exist.
    - `content`: all of its bytes.

    **Raises:**

    - `OSError`: if it cannot be written.
    """
    path = Path(path)
    temporary = temporary_name(path)
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    # The rename itself is durable only once the folder is on the disk too.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def temporary_name(path: Path) -> Path:
    """The name beside `path` under which `write_whole` prepares it.

    **Arguments:**

    - `path`: the file to be written.

    **Returns:**

    The temporary file's path.
    """
    return path.with_name(path.name + ".tmp")


def versions() -> dict[str, str]:
    """The versions of Python and of the libraries that a run depends on.

    **Returns:**

    Version by name; libraries that are not installed are left out.
    """
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def differences(stored: Mapping, asked: Mapping) -> list[str]:
    """Compares two configurations as JSON.

    **Arguments:**

    - `stored`: the configuration found.
    - `asked`: the configuration expected.

    **Returns:**

    One line for each key that differs, with both values; nested keys are dotted.
    """
    old, new = _flatten(_as_json(stored)), _flatten(_as_json(asked))
    return [
        f"{key}: {old.get(key, 'absent')} there, {new.get(key, 'absent')} asked for"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    ]


def check_run(path: Path, config: Mapping, *, resume: bool) -> None:
    """Refuses a folder that is not for this run; changes nothing.

    **Arguments:**

    - `path`: the run's checkpoint, be it there or not; its folder is what is checked.
    - `config`: what the run is.
    - `resume`: whether a run is expected there.

    **Raises:**

    - `RunFolderError`: if the folder holds something else, or nothing to resume.
    - `CheckpointError`: if its checkpoint is damaged.
    """
    folder = path.parent
    if folder.exists() and not folder.is_dir():
        raise RunFolderError(f"{folder} is a file, not a folder; choose another --out.")
    if not path.exists():
        if resume:
            raise RunFolderError(
                f"there is nothing to resume in {folder}: it holds no {path.name}."
            )
        # A crash during the very first checkpoint leaves only its temporary file.
        own = {temporary_name(path).name}
        others = sorted({entry.name for entry in folder.glob("*")} - own)
        if others:
            raise RunFolderError(
                f"{folder} holds other files ({', '.join(others[:5])}"
                f"{', …' if others[5:] else ''}); choose another --out."
            )
        return
    differing = differences(read_header(path).config, config)
    if differing:
        raise RunFolderError(
            f"{folder} holds a run of another configuration; choose another --out. It differs "
            "in:\n" + "\n".join(f"  {line}" for line in differing)
        )
    if not resume:
        raise RunFolderError(
            f"{folder} holds a run already; pass --resume to go on, or another --out."
        )


def _as_json(config: Mapping) -> Any:
    return json.loads(json.dumps(dict(config)))


def _flatten(config: Any, prefix: str = "") -> dict[str, str]:
    # Values stay as JSON text: that tells 1 from "1" and equates NaN with NaN.
    if not isinstance(config, dict) or not config:
        return {prefix: json.dumps(config)}
    flat: dict[str, str] = {}
    for key, value in config.items():
        flat |= _flatten(value, f"{prefix}.{key}" if prefix else key)
    return flat


def _read(path: Path) -> tuple[Header, bytes]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"There is no checkpoint at {path}.") from None
    if not content.startswith(MAGIC):
        torn = MAGIC.startswith(content)
        what = "is empty or truncated" if torn else "is not a trace-zoo checkpoint"
        raise CheckpointError(f"{path} {what}.")
    file = io.BytesIO(content[len(MAGIC) :])
    length = int.from_bytes(file.read(_LENGTH_BYTES), "big")
    digest, text, payload = file.read(_HASH_BYTES), file.read(length), file.read()
    if len(digest) < _HASH_BYTES or len(text) < length:
        raise CheckpointError(f"{path} is truncated: it ends within its header.")
    if hashlib.sha256(text).digest() != digest:
        raise CheckpointError(f"{path} is damaged: its header does not match its SHA-256.")
    header = _parse_header(path, json.loads(text))
    if len(payload) != header.payload_length:
        raise CheckpointError(
            f"{path} is truncated or has grown: {len(payload)} bytes of arrays, "
            f"its header says {header.payload_length}."
        )
    if hashlib.sha256(payload).hexdigest() != header.payload_sha256:
        raise CheckpointError(f"{path} is damaged: its arrays do not match their SHA-256.")
    return header, payload


def _parse_header(path: Path, fields: dict) -> Header:
    if fields.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has checkpoint format {fields.get('format')}; this version reads "
            f"{FORMAT}. It was written by {fields.get('versions')}."
        )
    return Header(**fields)


def _manifest(tree: Any) -> list[list[Any]]:
    """Path, shape and dtype of each array (`key<fry>` for a typed key), as JSON."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [
        [jax.tree_util.keystr(path), list(jnp.shape(leaf)), str(_dtype(leaf))]
        for path, leaf in leaves
        if hasattr(leaf, "dtype") or isinstance(leaf, bool | int | float | complex)
    ]


def _check_manifest(path: str | Path, stored: list, expected: list) -> None:
    there = {leaf[0]: leaf[1:] for leaf in stored}
    wanted = {leaf[0]: leaf[1:] for leaf in expected}
    problems = [f"array {name} is missing there" for name in wanted if name not in there]
    problems += [f"array {name} is not expected" for name in there if name not in wanted]
    for name in wanted:
        if name in there and wanted[name] != there[name]:
            (shape, dtype), (new_shape, new_dtype) = there[name], wanted[name]
            problems.append(
                f"array {name} is {dtype}{shape} there, {new_dtype}{new_shape} expected"
            )
    if not problems and [leaf[0] for leaf in stored] != [leaf[0] for leaf in expected]:
        problems.append("the arrays are in another order")
    if problems:
        shown = problems[:10] + ([f"and {len(problems) - 10} more"] if problems[10:] else [])
        raise CheckpointError(
            f"{path} holds another state:\n" + "\n".join(f"  {line}" for line in shown)
        )


def _dtype(leaf: Any) -> Any:
    return leaf.dtype if hasattr(leaf, "dtype") else type(leaf).__name__


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _without_typed_keys(tree: Any) -> Any:
    # Equinox cannot write typed keys, so their integers are written instead.
    def bare(leaf):
        if not _is_key(leaf):
            return leaf
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.eval_shape(jax.random.key_data, leaf)
        return jax.random.key_data(leaf)

    return jax.tree.map(bare, tree)


def _with_typed_keys(tree: State, like: State) -> State:
    def typed(leaf, model):
        if not _is_key(model):
            return leaf
        # The implementation's name is public for a key, not for its ShapeDtypeStruct.
        names: list[Any] = []
        jax.eval_shape(lambda key: names.append(jax.random.key_impl(key)), model)
        return jax.random.wrap_key_data(leaf, impl=names[0])

    return jax.tree.map(typed, tree, like)
