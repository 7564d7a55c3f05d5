"""A hint where a file of the user's is called `scan`: it would be imported in place of ours."""

import scan

if not hasattr(scan, "linear"):
    found = getattr(scan, "__file__", None) or next(iter(scan.__path__))
    raise ImportError(
        f"`scan` is {found}, not the package of trace-zoo: give that file or folder another name, "
        "or start Python in another folder."
    )
