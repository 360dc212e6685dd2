"""The command `demo`: supplier, requestor and Spark job on a generated network."""

__all__ = ()
