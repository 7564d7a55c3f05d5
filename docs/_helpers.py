"""Pictures for executed pages.

An executed block shows its source and prints text; a second block without `source` prints the
picture, so that readers do not see this helper:

    ```python exec="1" source="above" session="cell"
    fig, ax = plt.subplots()
    ax.plot(ys)
    ```

    ```python exec="1" html="1" session="cell"
    from docs._helpers import picture
    print(picture(fig, "The output over time."))
    ```

Importing the module sets matplotlib's style: import it in the page's first block, in a hidden one
(`exec="1" session="…"`), before the figures are made. A block that raises stops a strict build.
"""

import html
import io
import re

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

_INK = "#010203"  # replaced by the color of the page's text

plt.rcParams.update(
    {
        "figure.figsize": (7, 3),
        "figure.constrained_layout.use": True,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "legend.frameon": False,
        "svg.hashsalt": "trace-zoo",  # the same figure is the same file
        **dict.fromkeys(
            [
                "text.color",
                "axes.labelcolor",
                "axes.edgecolor",
                "axes.titlecolor",
                "xtick.color",
                "ytick.color",
                "grid.color",
            ],
            _INK,
        ),
    }
)


def picture(figure: Figure, description: str, *, caption: bool = True) -> str:
    """A matplotlib figure as inline SVG, in the page's colors; the figure is closed.

    **Arguments:**

    - `figure`: the figure.
    - `description`: what it shows, for readers who cannot see it.
    - `caption`: print the description under the picture too.

    **Returns:**

    An HTML `figure` element.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    text = html.escape(description)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{text}" ', 1)
    below = f"<figcaption>{text}</figcaption>" if caption else ""
    return f'<figure class="picture">{svg}{below}</figure>'
