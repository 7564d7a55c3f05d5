"""The API pages show every public name, and every formula of the documentation can be read."""

import importlib
import importlib.util
import re

import pytest

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


def _hook():
    spec = importlib.util.spec_from_file_location("mathml", DOCS / "hooks" / "mathml.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.mathml


def test_formulas_become_mathml():
    mathml = _hook()
    assert mathml(r"a_t \odot h", block=False).startswith("<math")
    assert mathml(r"\mathbb C", block=False) == mathml(r"\mathbb{C}", block=False)
    assert "\N{MATHEMATICAL BOLD DIGIT ONE}" in mathml(r"\mathbf 1", block=False)
    assert "\N{MATHEMATICAL BOLD ITALIC SMALL THETA}" in mathml(r"\boldsymbol{\theta}", block=False)
    assert 'mathvariant="normal"' in mathml(r"\mathrm{tr}", block=False)
    assert 'display="block"' in mathml(r"\sum_{t=1}^T x_t", block=True)


@pytest.mark.parametrize("tex", [r"\nonsense{x}", r"\frac{1", r"\begin{aligned"])
def test_a_formula_that_cannot_be_read_is_an_error(tex: str):
    with pytest.raises(ValueError, match="in the formula"):
        _hook()(tex, block=False)
