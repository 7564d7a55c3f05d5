"""What all methods need of arrays that broadcast."""


def sum_to(x, shape: tuple[int, ...]):
    """Undo broadcasting: sum `x` over the axes along which `shape` is 1."""
    axes = tuple(
        i for i, (have, want) in enumerate(zip(x.shape, shape, strict=True)) if have != want
    )
    return x.sum(axes, keepdims=True) if axes else x
