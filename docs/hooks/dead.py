"""Stop the build where a link of the site leads to no file of the site.

mkdocs checks the links of the pages' sources. What a page prints while it is built comes later: a
link to `other.md` in it stays as it is, where the site has `other.html`.
"""

import html
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LINK = re.compile(r"""<a\b[^>]*?\shref=["']?([^"'\s>]+)""")


def dead_links(site: Path) -> list[str]:
    """The page and the target of each relative link to a `.md`, or to a file that is not there."""
    return [
        f"{page.relative_to(site)} links to {target}"
        for page in sorted(site.rglob("*.html"))
        for target in dict.fromkeys(_LINK.findall(page.read_text()))
        if _is_dead(page, html.unescape(target))
    ]


def _is_dead(page: Path, target: str) -> bool:
    link = urlsplit(target)
    if link.scheme or link.netloc or not link.path or link.path.startswith("/"):
        return False  # another site, a place in the same page, or 404.html's links from the root
    return link.path.endswith(".md") or not (page.parent / unquote(link.path)).exists()


def on_post_build(config, **_) -> None:
    """Called by mkdocs once the site is written."""
    from mkdocs.exceptions import PluginError  # the tests may read this module without mkdocs

    if dead := dead_links(Path(config.site_dir)):
        raise PluginError("\n".join(["Links that lead nowhere:", *dead]))
