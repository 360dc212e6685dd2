"""The commands that run jobs over landings and tables."""

__all__ = ()
