"""Keep a flag such as `--out` in one piece: browsers break lines behind every hyphen."""

import re

_INLINE = re.compile(r"(?<!</span>)<code>[^<]*</code>")  # a block's code has elements inside
_FLAG = re.compile(r"(?<![\w-])--[\w-]+")


def on_page_content(content: str, **_) -> str:
    """Called by mkdocs with the HTML of a page."""
    return _INLINE.sub(
        lambda code: _FLAG.sub(lambda flag: f'<span class="flag">{flag[0]}</span>', code[0]),
        content,
    )
