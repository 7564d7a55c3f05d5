"""Write a Jupyter notebook beside every tutorial, from the tutorial's own source.

The code cells are the blocks that the page executes, in their order: a page that builds is a
notebook that runs. What only the site needs is left out, the blocks that set up and print pictures
with `docs._helpers`; a picture's description becomes text. What the page printed and drew is put
beneath the cells.
"""

import ast
import html
import json
import re
from dataclasses import dataclass, field
from typing import Any

_BLOCK = re.compile(r"^```python(?P<options>[^\n]*)\n(?P<code>.*?)^```\n?", re.M | re.S)
# What a block has left in the page: printed text, or a picture.
_RESULT = re.compile(
    r'<div class="language-text highlight">.*?<code>(?P<text>.*?)</code>'
    r'|<figure class="picture">(?P<svg><svg.*?</svg>)',
    re.S,
)
_NEEDS = "`pip install .`, in a clone of trace-zoo, brings what this notebook needs."


@dataclass
class Cell:
    """A cell, and what the page's execution has left beneath it."""

    kind: str
    source: str
    prints: bool = False
    outputs: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self, number: int) -> dict[str, Any]:
        """The cell as nbformat 4.5 has it."""
        cell = {
            "cell_type": self.kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": self.source.splitlines(keepends=True),
        }
        if self.kind == "code":
            cell |= {"execution_count": None, "outputs": self.outputs}
        return cell


def cells(markdown: str) -> list[Cell]:
    """Cut a page into cells.

    **Arguments:**

    - `markdown`: the page's source.

    **Returns:**

    Text, and the code that the page executes. A picture's description is text.
    """
    found, position = [], 0
    for block in _BLOCK.finditer(markdown):
        if 'exec="1"' not in block["options"]:
            continue  # shown and not executed: it stays a part of the text
        _add_text(found, markdown[position : block.start()])
        position = block.end()
        code = block["code"].rstrip("\n")
        if 'html="1"' in block["options"]:
            _add_text(found, f"*{_description(code)}*")
        elif code != "import docs._helpers":
            found.append(Cell("code", code, prints='result="text"' in block["options"]))
    _add_text(found, markdown[position:])
    return found


def _add_text(found: list[Cell], text: str) -> None:
    text = re.sub(r"\\\((.*?)\\\)", lambda m: f"${m[1].strip()}$", text, flags=re.S)
    text = re.sub(r"\\\[(.*?)\\\]", lambda m: f"$$\n{m[1].strip()}\n$$", text, flags=re.S)
    text = re.sub(r"(\]\([^)#:]+)\.md([)#])", r"\1.html\2", text)  # the pages of the site around it
    if text.strip():
        found.append(Cell("markdown", text.strip("\n")))


def _description(code: str) -> str:
    """The second argument of `picture(figure, description)`."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    pictures = [call for call in calls if getattr(call.func, "id", None) == "picture"]
    if len(pictures) != 1:
        raise ValueError(f"a block with `html` must print one picture:\n{code}")
    return ast.literal_eval(pictures[0].args[1])


def add_outputs(found: list[Cell], page: str) -> None:
    """Put what the page shows beneath the cells: text below what prints it, pictures below the
    code that drew them.

    **Arguments:**

    - `found`: what `cells` gives; changed in place.
    - `page`: the page as HTML.

    **Raises:**

    `ValueError` if the page has not one text for each cell that prints.
    """
    printing = iter([cell for cell in found if cell.kind == "code" and cell.prints])
    code = [cell for cell in found if cell.kind == "code"]
    last = code[0] if code else None
    for result in _RESULT.finditer(page):
        if result["text"] is None:
            output = {"output_type": "display_data", "metadata": {}}
            output["data"] = {"image/svg+xml": result["svg"], "text/plain": "<Figure>"}
            last = _drawn_by(found, last)
            last.outputs.append(output)
            continue
        last = next(printing, None)
        if last is None:
            raise ValueError("the page shows more results than blocks with `result` print.")
        text = html.unescape(re.sub(r"<[^>]+>", "", result["text"]))
        last.outputs.append(
            {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}
        )
    if next(printing, None) is not None:
        raise ValueError("a block with `result` has left nothing in the page.")


def _drawn_by(found: list[Cell], after: Cell | None) -> Cell:
    """The first code cell from `after` on that makes a figure and has no picture yet."""
    start = found.index(after) if after else 0
    for cell in found[start:]:
        drawn = any(output["output_type"] == "display_data" for output in cell.outputs)
        if cell.kind == "code" and "plt.subplots" in cell.source and not drawn:
            return cell
    raise ValueError("the page shows a picture that no block draws by `plt.subplots`.")


def notebook(found: list[Cell]) -> str:
    """A notebook of format 4.5 as JSON."""
    content = {
        "cells": [cell.to_json(number) for number, cell in enumerate(found)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


_made: dict[str, tuple[list[Cell], Any]] = {}  # and mkdocs' file


def on_files(files, config):
    """Called by mkdocs with all files: a notebook for each tutorial joins them."""
    from mkdocs.structure.files import File  # the tests read this module without mkdocs

    for page in list(files.documentation_pages()):
        if not page.src_uri.startswith("tutorials/"):
            continue
        found = cells(page.content_string)
        found.insert(1, Cell("markdown", _NEEDS))
        file = File.generated(config, page.src_uri[:-3] + ".ipynb", content=notebook(found))
        files.append(file)
        _made[page.src_uri] = found, file
    return files


def on_page_markdown(markdown: str, page, **_) -> str:
    """Called by mkdocs with a page's source: the link to the notebook goes below the title."""
    if page.file.src_uri not in _made:
        return markdown
    name = page.file.src_uri.rpartition("/")[2][:-3]
    title, newline, rest = markdown.partition("\n")
    return (
        f"{title}{newline}\n[This page as a notebook]({name}.ipynb){{ .notebook download }}\n{rest}"
    )


def on_page_content(content: str, page, **_) -> None:
    """Called by mkdocs with the HTML of a page, which has been executed by then."""
    if page.file.src_uri in _made:
        found, file = _made[page.file.src_uri]
        add_outputs(found, content)
        file.content_string = notebook(found)
