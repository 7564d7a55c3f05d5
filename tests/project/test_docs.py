"""The API pages show every public name, formulas can be read, notebooks and links lose nothing."""

import ast
import functools
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import zoo
from tests.project import source

DOCS = source.ROOT / "docs"


@pytest.mark.parametrize("package", source.PACKAGES)
def test_api_page_shows_every_public_name(package: str):
    pages = [DOCS / "api" / f"{package}.md", *(DOCS / "cells").glob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    shown = {line.split(".")[-1] for line in re.findall(rf"^::: ({package}\.\S+)", text, re.M)}
    public = importlib.import_module(package).__all__
    submodules = {f.stem for f in (source.ROOT / package).iterdir() if f.is_dir()}
    missing = sorted(set(public) - shown - submodules)
    assert not missing, f"docs/api/{package}.md lacks a `::: module.name` for {missing}"


@functools.cache
def _hook(name: str):
    spec = importlib.util.spec_from_file_location(name, DOCS / "hooks" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_formulas_become_mathml():
    mathml = _hook("mathml").mathml
    assert mathml(r"a_t \odot h", block=False).startswith("<math")
    assert mathml(r"\mathbb C", block=False) == mathml(r"\mathbb{C}", block=False)
    assert "\N{MATHEMATICAL BOLD DIGIT ONE}" in mathml(r"\mathbf 1", block=False)
    assert "\N{MATHEMATICAL BOLD ITALIC SMALL THETA}" in mathml(r"\boldsymbol{\theta}", block=False)
    assert 'mathvariant="normal"' in mathml(r"\mathrm{tr}", block=False)
    assert 'display="block"' in mathml(r"\sum_{t=1}^T x_t", block=True)


@pytest.mark.parametrize("tex", [r"\nonsense{x}", r"\frac{1", r"\begin{aligned"])
def test_a_formula_that_cannot_be_read_is_an_error(tex: str):
    with pytest.raises(ValueError, match="in the formula"):
        _hook("mathml").mathml(tex, block=False)


_TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", _TUTORIALS, ids=lambda page: page.stem)
def test_a_notebook_has_all_that_its_tutorial_has(page: Path):
    """The page's own execution, in every build of the documentation, is then the notebook's."""
    text = page.read_text()
    blocks = re.findall(r'^```python (exec="1"[^\n]*)\n(.*?)^```', text, re.M | re.S)
    notebook = json.loads(_hook("notebooks").notebook(_hook("notebooks").cells(text)))
    cells = {"code": [], "markdown": []}
    for cell in notebook["cells"]:
        cells[cell["cell_type"]].append("".join(cell["source"]))
    executed = [
        code.rstrip("\n")
        for options, code in blocks
        if 'html="1"' not in options and code.strip() != "import docs._helpers"
    ]
    assert cells["code"] == executed and executed
    ast.parse("\n".join(cells["code"]))
    assert "docs._helpers" not in "\n".join(cells["code"])
    words = re.sub(r'^```python exec="1".*?^```', "", text, flags=re.M | re.S)
    for line in words.splitlines():
        if not re.search(r"\\[()\[\]]|\.md[)#]", line):  # formulas and links are rewritten
            assert line in "\n".join(cells["markdown"])
    assert sum('html="1"' in options for options, _ in blocks) == sum(
        cell.startswith("*") and cell.endswith("*") for cell in cells["markdown"]
    )


@pytest.mark.slow
def test_a_notebook_runs_without_the_site(tmp_path: Path):
    """The first cell of one does, and so all others: their cells are what the pages execute."""
    page = (DOCS / "tutorials" / "tape-against-segments.md").read_text()
    code = next(cell.source for cell in _hook("notebooks").cells(page) if cell.kind == "code")
    path = os.pathsep.join(filter(None, [str(source.ROOT), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}\nassert 'docs' not in __import__('sys').modules",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0 and "complete episodes: 3" in run.stdout, run.stderr[-4000:]


def test_a_notebook_shows_what_the_page_shows():
    page = """# A page

```python exec="1" session="s"
import docs._helpers
```

```python exec="1" source="above" result="text" session="s"
print("a < b")
```

```python exec="1" session="s"
fig, ax = plt.subplots()
```

```python exec="1" html="1" session="s"
print(picture(fig, "Up."))
```
"""
    shown = """<div class="language-text highlight"><pre><code>a &lt; b\n</code></pre></div>
<figure class="picture"><svg role="img"><path/></svg><figcaption>Up.</figcaption></figure>"""
    hook = _hook("notebooks")
    cells = hook.cells(page)
    hook.add_outputs(cells, shown)
    title, printed, drawn, caption = (cell.to_json(n) for n, cell in enumerate(cells))
    assert title["source"] == ["# A page"] and caption["source"] == ["*Up.*"]
    assert printed["outputs"][0]["text"] == ["a < b\n"]
    assert drawn["outputs"][0]["data"]["image/svg+xml"].startswith("<svg")
    with pytest.raises(ValueError, match="more results"):
        hook.add_outputs(hook.cells(page), shown + shown)
    with pytest.raises(ValueError, match="has left nothing"):
        hook.add_outputs(hook.cells(page), "")


def test_names_of_cells_lead_to_their_descriptions():
    anchors = _hook("links").anchors()
    known = [name for name in zoo.names() if not name.startswith("zz_")]  # those are of tests
    assert sorted(anchors) == sorted(known)
    described = "\n".join(page.read_text() for page in (DOCS / "cells").glob("*.md"))
    assert not [name for name, anchor in anchors.items() if f"::: {anchor}\n" not in described]
    linked = _hook("links").on_page_content("<td><code>gru sensitivity=rflo</code></td>", None)
    assert 'identifier="zoo.cells.gru.GRU"><code>gru</code>' in linked and "rflo" in linked


def test_flags_stay_in_one_piece():
    mark = _hook("flags").on_page_content
    assert mark("<code>train --out a-b</code>") == (
        '<code>train <span class="flag">--out</span> a-b</code>'
    )
    block = "<pre><span></span><code>train --out</code></pre>"
    assert mark(block) == block and mark("<p>a --out</p>") == "<p>a --out</p>"


def test_links_that_lead_nowhere_are_found(tmp_path: Path):
    """Of what a page prints while it is built too, which mkdocs does not read."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.html").write_text('<a class="x" href="../c.html#d">c</a><a href="c.md">')
    (tmp_path / "c.html").write_text(
        '<a href="a/b.html"> <a href="/x"> <a href="https://x.org/y.md">'
    )
    assert _hook("dead").dead_links(tmp_path) == ["a/b.html links to c.md"]
    (tmp_path / "c.html").unlink()
    assert len(_hook("dead").dead_links(tmp_path)) == 2


def test_no_page_asks_a_server():
    configuration = (source.ROOT / "mkdocs.yml").read_text()
    assert "font: false" in configuration and "iframe-worker" in configuration
    assert not re.findall(r"https?://", configuration)
    styles = "\n".join(path.read_text() for path in (DOCS / "assets").rglob("*.css"))
    assert not re.findall(r"https?://|@import", styles)
    for page in DOCS.rglob("*.md"):
        embedded = re.findall(
            r"!\[[^]]*\]\((https?:[^)]*)|<(?:img|script|iframe)[^>]*src=.http", page.read_text()
        )
        assert not embedded, f"{source.name(page)}: {embedded}"
