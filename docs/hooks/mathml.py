r"""Turn TeX between `$…$`, `\(…\)`, `$$…$$` and `\[…\]` into MathML while the site is built.

`pymdownx.arithmatex` marks the formulas; browsers render MathML without a script. A formula that
cannot be read stops a strict build.
"""

import html
import logging
import re
import unicodedata
from xml.etree import ElementTree

from latex2mathml.converter import convert

_LOG = logging.getLogger("mkdocs.hooks.mathml")
_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\s*(?:\\\((.*?)\\\)|\\\[(.*?)\\\])\s*</\1>', re.S
)
# Errors that latex2mathml passes over: an unknown command comes out as its own name.
_UNKNOWN = re.compile(r"<m[io]>\s*(\\[A-Za-z]+)\s*</m[io]>")

# `\mathrm{d}`: a single letter in <mi> would be set in italics.
_UPRIGHT = re.compile(r"<mi>(&#x000[4-7][0-9A-F];)</mi>")
# `\\mathbf 1`: without braces latex2mathml marks the letter in a way that browsers ignore.
_BARE = re.compile(r"\\(math(?:bb|bf|cal|frak|rm|sf))\s+(\w)")
_ENVIRONMENTS = {"aligned": "align*"}  # what latex2mathml calls it

# Browsers know no `mathvariant` but "normal": bold letters are characters of their own.
_VARIANT = re.compile(r'<(m[ino]) mathvariant="([a-z-]+)">([^<]+)</\1>')


def _letters(match: re.Match) -> str:
    tag, variant, text = match[1], match[2].replace("bold-italic", "bold italic"), match[3]
    try:
        letters = [
            unicodedata.lookup(
                f"MATHEMATICAL {variant} "
                + re.sub(r"(LATIN |GREEK )?(SMALL|CAPITAL) LETTER", r"\2", unicodedata.name(c))
            )
            for c in html.unescape(text)
        ]
    except (KeyError, ValueError):
        return match[0]
    return f"<{tag}>{''.join(letters)}</{tag}>"


def mathml(tex: str, *, block: bool) -> str:
    """The MathML element of a formula.

    **Raises:**

    `ValueError` if the formula cannot be read.
    """
    plain = re.sub(r"\\[{}\\]", "", tex)
    if plain.count("{") != plain.count("}"):
        raise ValueError(f"unbalanced braces in the formula {tex!r}")
    source = _BARE.sub(r"\\\1{\2}", tex.strip())
    for name, known in _ENVIRONMENTS.items():
        source = re.sub(rf"\\(begin|end){{{name}}}", rf"\\\1{{{known}}}", source)
    try:
        element = convert(source, display="block" if block else "inline")
        ElementTree.fromstring(element)
    except Exception as error:
        raise ValueError(f"{type(error).__name__} {error} in the formula {tex!r}") from error
    if unknown := _UNKNOWN.search(element):
        raise ValueError(f"unknown command {unknown[1]} in the formula {tex!r}")
    element = _VARIANT.sub(_letters, element)
    if re.search(r'mathvariant="(?!normal")', element):
        raise ValueError(f"a font that browsers do not know in the formula {tex!r}")
    return _UPRIGHT.sub(r'<mi mathvariant="normal">\1</mi>', element)


def on_page_content(content: str, page, **_) -> str:
    """Called by mkdocs with the HTML of a page."""

    def replace(match: re.Match) -> str:
        block = match[2] is None
        tex = html.unescape(match[3] if block else match[2])
        try:
            element = mathml(tex, block=block)
        except ValueError as error:
            _LOG.warning("%s: %s", page.file.src_path, error)
            return match[0]
        return f'<div class="formula">{element}</div>' if block else element

    return _FORMULA.sub(replace, content)
