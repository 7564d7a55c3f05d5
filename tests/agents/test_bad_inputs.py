"""Every bad input is one line that names argument, value and rule, and changes nothing."""

import json
import shutil

import jax
import pytest

from agents.cli import main
from tests.agents.bad_inputs import CALLS, COMMANDS, USAGE
from tests.agents.damage import rewritten


@pytest.fixture(scope="module", autouse=True)
def usual_types():
    """JAX's usual 32-bit types."""
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.fixture(scope="module")
def places(trained, tmp_path_factory):
    """What the names in commands stand for; tests only read it."""
    root = tmp_path_factory.mktemp("bad")
    for name in ("run", "csv", "torn", "newer", "foreign"):
        shutil.copytree(trained, root / name)
    rows = (root / "csv" / "scalars.csv").read_text().splitlines()
    cells = rows[2].split(",")
    cells[rows[0].split(",").index("loss")] = "?"
    (root / "csv" / "scalars.csv").write_text(
        "\n".join([*rows[:2], ",".join(cells), *rows[3:], ""])
    )
    torn = root / "torn" / "checkpoint.eqx"
    torn.write_bytes(torn.read_bytes()[:-9])
    for name, changed in (("newer", {"warp": 9}), ("foreign", {"env": "gymnasium/evil:X-v0"})):
        path = root / name / "checkpoint.eqx"
        header = json.loads(rewritten(path)[0])
        header["config"]["agent"] |= changed
        rewritten(path, header)
    (root / "full").mkdir()
    (root / "full" / "thesis.tex").write_text("years of work")
    (root / "file").write_text("")
    return {path.name: str(path) for path in root.iterdir()}


@pytest.mark.quick_rows(6)
@pytest.mark.parametrize(("words", "message"), [row for i in range(9) for row in COMMANDS[i::9]])
def test_a_command_says_in_one_line_what_is_wrong(words, message, places, tmp_path, capsys):
    new = tmp_path / "new"
    assert main([word.format(new=new, **places) for word in words.split()]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    lines = captured.err.splitlines()[words.startswith("train") :]  # which first says its name
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert not new.exists() and not list(tmp_path.iterdir())
    assert "configuration" in message or len(lines) == 1, captured.err


@pytest.mark.quick_rows(3)
@pytest.mark.parametrize(("words", "message"), USAGE)
def test_words_that_make_no_command_show_the_usage(words, message, places, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        main([word.format(new=tmp_path / "new", **places) for word in words.split()])
    assert left.value.code == 2
    captured = capsys.readouterr().err
    assert message in captured and "Traceback" not in captured


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_refused_with_argument_value_and_rule(call, unhooked):
    make, message = CALLS[call]
    with pytest.raises((ValueError, TypeError)) as refused:
        make()
    assert type(refused.value) in (ValueError, TypeError)
    assert message in str(refused.value) and str(refused.value).isprintable()
