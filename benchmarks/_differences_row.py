"""What a row of the table of differences says."""

from benchmarks._measure import Row


def row(
    package: str, where: str, what: str, source: str, there: float | str, expected: float | str
) -> Row:
    """A row of the table.

    **Arguments:**

    - `package`: whose code it is: a distribution's name, or a repository and its commit.
    - `where`: the module and class.
    - `what`: what the numbers are.
    - `source`: what says otherwise.
    - `there`: the number of that code.
    - `expected`: the number by the source.
    """
    return {
        "package": package,
        "where": where,
        "what is measured": what,
        "there": there,
        "by the source": expected,
        "source": source,
    }
