"""Options that are chosen among a few."""


def check_method(value: str, choices: tuple[str, ...]) -> str:
    """The option `method` of a scan, or `ValueError` with those there are."""
    if value not in choices:
        raise ValueError(f"`method` (={value!r}) must be one of {', '.join(choices)}.")
    return value
