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

import base64
import html
import io
import re
from typing import Any

import jax
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from agents import envs

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


def frame(name: str, description: str, *, steps: int = 12, seed: int = 0, **options: Any) -> str:
    """An environment's picture after some random actions.

    **Arguments:**

    - `name`, `options`: those of `agents.envs.make`.
    - `description`: what it shows, printed under the picture too.
    - `steps`: how many actions; the picture is of the last state before an episode's end.
    - `seed`: root of the randomness.

    **Returns:**

    An HTML `figure` element.
    """
    env, params = envs.make(name, **options)
    space = env.action_space(params)

    def play(key):
        reset_key, key = jax.random.split(key)

        def step(carry, key):
            present, over = carry
            action_key, step_key = jax.random.split(key)
            action = space.sample(action_key)
            observation, state, _, *ends, _ = env.step(step_key, present[1], action, params)
            over = over | ends[0] | ends[1]
            new = (observation, state)
            return (jax.tree.map(lambda a, b: jax.lax.select(over, a, b), present, new), over), None

        start = (env.reset(reset_key, params), jax.numpy.bool_(False))
        return jax.lax.scan(step, start, jax.random.split(key, steps))[0][0]

    quickly = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    compiled = jax.jit(play, compiler_options=quickly)
    observation, state = jax.device_get(compiled(jax.random.key(seed)))
    pixels = envs.render(env, params, state, observation=observation)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    text = html.escape(description)
    image = f'<img alt="{text}" src="data:image/png;base64,{data}">'
    return f'<figure class="picture">{image}<figcaption>{text}</figcaption></figure>'
