"""Checkpoints: written whole or not at all, loaded whole or refused."""

import io
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents.running import files
from agents.running.checkpoint import (
    _SIZES,
    MAGIC,
    CheckpointError,
    load,
    progress_of,
    read_header,
    save,
)
from tests.agents.damage import rewritten

CONFIG = {"env": "RepeatFirst", "memory": {"name": "rtu", "hidden": 8}, "rate": 1e-3}


class State(eqx.Module):
    weights: jax.Array
    half: jax.Array
    phases: jax.Array
    flags: jax.Array
    keys: jax.Array
    count: jax.Array
    name: str = eqx.field(static=True, default="state")


def make(seed=0, weights=(2, 3)):
    key = jax.random.key(seed)
    return State(
        weights=jax.random.normal(key, weights),
        half=jnp.array([1.0, jnp.nan, -0.0], jnp.bfloat16),
        phases=jnp.array([1 + 2j], jnp.complex64),
        flags=jnp.array([True, False]),
        keys=jax.random.split(key, 3),
        count=jnp.array(7, jnp.int32),
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "checkpoint.eqx"
    save(path, make(), config=CONFIG, progress={"iteration": 3})
    return path


def same(one: State, two: State):
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert a.dtype == b.dtype
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("shapes_only", [False, True])
def test_it_comes_back_bitwise(path, shapes_only):
    like = jax.eval_shape(make) if shapes_only else make(seed=1)
    state, progress = load(path, like, config=CONFIG)
    same(state, make())
    assert progress == {"iteration": 3}


@pytest.mark.parametrize("implementation", ["rbg", "threefry2x32"])
def test_keys_keep_their_implementation(tmp_path, implementation):
    state = {"key": jax.random.key(5, impl=implementation)}
    save(tmp_path / "c", state, config={}, progress={})
    back, _ = load(tmp_path / "c", jax.eval_shape(lambda: state), config={})
    assert back["key"].dtype == state["key"].dtype
    draw = [jax.random.bits(tree["key"]) for tree in (state, back)]
    assert draw[0] == draw[1]
    other = {"key": jax.random.key(5, impl="unsafe_rbg")}
    with pytest.raises(CheckpointError, match=r"array \['key'\] is key<"):
        load(tmp_path / "c", other, config={})


def test_the_header_tells_what_it_is(path):
    header = read_header(path)
    assert header.config == CONFIG
    assert header.progress == {"iteration": 3}
    assert header.versions["jax"] == jax.__version__
    assert [".weights", [2, 3], str(make().weights.dtype)] in header.leaves


def test_tuples_and_numbers_in_a_configuration_compare_as_json(tmp_path):
    save(tmp_path / "c", make(), config={"sizes": (1, 2), "x": float("nan")}, progress={})
    load(tmp_path / "c", make(), config={"sizes": [1, 2], "x": float("nan")})


def test_another_configuration_is_refused_with_every_difference(path):
    other = {"env": "RepeatFirst", "memory": {"name": "gru", "hidden": 8}, "steps": "3"}
    with pytest.raises(CheckpointError, match="of another configuration") as error:
        load(path, make(), config=other)
    assert str(error.value).splitlines()[1:] == [
        '  memory.name: "rtu" there, "gru" asked for',
        "  rate: 0.001 there, absent asked for",
        '  steps: absent there, "3" asked for',
    ]


def test_any_configuration_can_be_accepted(path):
    same(load(path, make(1), config=None)[0], make())


def test_another_shape_names_the_array(path):
    dtype = make().weights.dtype
    with pytest.raises(CheckpointError, match="holds another state") as error:
        load(path, make(weights=(2, 4)), config=CONFIG)
    expected = f"  array .weights is {dtype}[2, 3] there, {dtype}[2, 4] expected"
    assert str(error.value).splitlines()[1:] == [expected]


def test_another_dtype_names_the_array(path):
    like = eqx.tree_at(lambda s: s.count, make(), jnp.array(7, jnp.int16))
    with pytest.raises(CheckpointError, match=r"array \.count is int32\[\] there, int16\[\]"):
        load(path, like, config=CONFIG)


def test_another_structure_names_the_arrays(path):
    with pytest.raises(CheckpointError) as error:
        load(path, {"weights": jnp.zeros((2, 3))}, config=CONFIG)
    dtype = make().weights.dtype
    assert f"array ['weights'] is missing there, {dtype}[2, 3] expected" in str(error.value)
    assert f"array .weights is {dtype}[2, 3] there, none expected" in str(error.value)


def test_a_file_of_another_kind(tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("not arrays")
    with pytest.raises(CheckpointError, match=r"notes\.txt is not a trace-zoo checkpoint"):
        read_header(other)
    with pytest.raises(CheckpointError, match=r"no checkpoint at .*absent"):
        read_header(tmp_path / "absent")


def test_a_file_cut_anywhere_is_refused(path):
    whole = path.read_bytes()
    for length in [*range(80), *range(80, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="truncated"):
            load(path, make(), config=CONFIG)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="has grown"):
        load(path, make(), config=CONFIG)


def test_a_changed_byte_anywhere_is_refused(path):
    whole = bytearray(path.read_bytes())
    for position in range(0, len(whole), 53):
        changed = bytearray(whole)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(CheckpointError):
            load(path, make(), config=CONFIG)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.pop("progress"), r"does not know: it has \['config', 'versions', 'leaves'\]"),
        (lambda h: h.update(mood="good"), r"does not know: it has \[.*'mood'\]"),
        (lambda h: h.update(config=[]), r"does not know: `config` \(=\[\]\) must be a dictionary"),
        (lambda h: h.update(leaves=[["w", 3, "f"]]), "does not know: `leaves` .* must be a list"),
        (lambda h: h.update(leaves=[["w\x1b[2J", [3], "f"]]), r"array '\.?w\\x1b\[2J' is f"),
    ],
)
def test_a_header_that_is_not_ours_is_refused(path, change, message):
    header = json.loads(rewritten(path)[0])
    change(header)
    rewritten(path, header)
    with pytest.raises(CheckpointError, match=message) as refused:
        load(path, make(), config=None)
    assert str(refused.value).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "header", [b"", b"[]", b"3", b"\xff", b"{", b"[" * 100_000, b'{"config": ' * 5_000]
)
def test_a_header_that_is_no_header_is_refused(path, header):
    rewritten(path, header)
    with pytest.raises(CheckpointError, match=r"has a header that"):
        read_header(path)


def arrays_of(*arrays, pickled=False):
    stream = io.BytesIO()
    for array in arrays:
        np.save(stream, array, allow_pickle=pickled)
    return stream.getvalue()


HUGE = b"\x93NUMPY\x01\x00v\x00" + (
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000000), }".ljust(117) + b"\n"
)


@pytest.mark.parametrize(
    "arrays",
    [
        b"",
        arrays_of(np.zeros(2)),
        arrays_of(*[np.zeros((2, 3))] * 6),
        arrays_of(np.array([print], object), pickled=True),
        HUGE,
        b"\x93NUMPY\x09\x00v\x00",
    ],
)
def test_foreign_arrays_are_refused(path, arrays):
    rewritten(path, arrays=arrays)
    with pytest.raises(CheckpointError, match="is damaged: its arrays are not those that it lists"):
        load(path, make(), config=CONFIG)


def test_more_arrays_than_are_listed_are_refused(path):
    rewritten(path, arrays=rewritten(path)[1] + b"x")
    with pytest.raises(CheckpointError, match="is damaged: it holds more arrays than it lists"):
        load(path, make(), config=CONFIG)


@pytest.mark.parametrize("lengths", [(2**64 - 1, 0), (0, 2**64 - 1), (2**40, 2**40)])
def test_absurd_lengths_are_refused(path, lengths):
    content = path.read_bytes()
    one, two, three, four = _SIZES.unpack_from(content, len(MAGIC))
    sizes = _SIZES.pack(lengths[0] or one, two, lengths[1] or three, four)
    path.write_bytes(MAGIC + sizes + content[len(MAGIC) + len(sizes) :])
    with pytest.raises(CheckpointError, match="is truncated"):
        load(path, make(), config=CONFIG)


@pytest.mark.parametrize("progress", [{}, {"iteration": "3"}, {"iteration": -1}])
def test_a_checkpoint_tells_how_far_the_run_had_come(progress):
    with pytest.raises(CheckpointError, match=r"^c does not say how far the run had come"):
        progress_of("c", progress)


def test_a_folder_in_its_place_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="cannot be read: Is a directory"):
        read_header(tmp_path)


def test_another_version_is_named(path):
    path.write_bytes(b"trace-zoo checkpoint 1\n" + path.read_bytes()[len(MAGIC) :])
    with pytest.raises(CheckpointError, match="is of another version of trace-zoo"):
        load(path, make(), config=CONFIG)


def test_the_header_is_read_without_the_arrays(path):
    whole = path.read_bytes()
    path.write_bytes(whole[:-200] + bytes(200))
    assert read_header(path).config == CONFIG
    with pytest.raises(CheckpointError, match="is damaged: its arrays do not match"):
        load(path, make(), config=CONFIG)


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_checkpoint(path, monkeypatch, broken):
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    if broken == "fsync":
        monkeypatch.setattr(files.os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(path, make(seed=1), config=CONFIG, progress={"iteration": 4})
    monkeypatch.undo()
    assert path.read_bytes() == before
    save(path, make(seed=1), config=CONFIG, progress={"iteration": 4})
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_it_is_on_the_disk_before_it_replaces_the_old_one(path, monkeypatch):
    events = []
    fsync, replace = files.os.fsync, Path.replace
    monkeypatch.setattr(files.os, "fsync", lambda fd: (events.append("fsync"), fsync(fd)))
    monkeypatch.setattr(Path, "replace", lambda *a: (events.append("replace"), replace(*a)))
    save(path, make(seed=1), config=CONFIG, progress={})
    assert events == ["fsync", "replace", "fsync"]


def test_what_cannot_be_json_leaves_the_old_checkpoint(path):
    before = path.read_bytes()
    with pytest.raises(TypeError, match="not JSON serializable"):
        save(path, make(), config=CONFIG, progress={"iteration": jnp.zeros(3)})
    assert json.loads(json.dumps(CONFIG)) == read_header(path).config
    assert path.read_bytes() == before
