"""One experiment a module, each with an `EXPERIMENT`; the module's name is the experiment's."""

__all__ = ()
