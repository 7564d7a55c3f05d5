"""Make the names of cells in tables links to where the cell is described."""

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.S)  # of a table
# `gru`, or `gru sensitivity=rflo`
_NAME = re.compile(r"<code>(?P<name>\w+)(?: (?P<options>[^<]*))?</code>")


def anchors() -> dict[str, str]:
    """The identifier of each cell's description, by the name in `zoo.names()`.

    A file that registers a function in place of a class is described by its first class.
    """
    described = [
        match
        for page in sorted((_ROOT / "docs" / "cells").glob("*.md"))
        for match in re.findall(r"^::: (zoo\.cells\.\w+)\.(\w+)", page.read_text(), re.M)
    ]
    found = {}
    for file in sorted((_ROOT / "zoo" / "cells").glob("*.py")):
        classes = [name for module, name in described if module == f"zoo.cells.{file.stem}"]
        for name, make in re.findall(r'^register\("(\w+)", (\w+)\)', file.read_text(), re.M):
            if classes:
                described_by = make if make in classes else classes[0]
                found[name] = f"zoo.cells.{file.stem}.{described_by}"
    return found


_ANCHORS = anchors()


def on_page_content(content: str, page, **_) -> str:
    """Called by mkdocs with the HTML of a page."""

    def link(match: re.Match) -> str:
        name, options = match["name"], match["options"]
        if name not in _ANCHORS:
            return match[0]
        # mkdocs-autorefs, which mkdocstrings brings, turns it into a link once all pages are read.
        reference = f'<autoref identifier="{_ANCHORS[name]}"><code>{name}</code></autoref>'
        return f"{reference} <code>{options}</code>" if options else reference

    def link_all(match: re.Match) -> str:
        return match[0] if "<a " in match[0] else _NAME.sub(link, match[0])

    return _CELL.sub(link_all, content)
