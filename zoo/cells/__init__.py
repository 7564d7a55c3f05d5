"""The cells, one a file."""

__all__ = ()
