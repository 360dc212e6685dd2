"""Proves stubs with independent readers: xmlschema and libxml2 read the schemas; instances come from that model.

Raises:
    MissingExtraError: on import, if xmlschema is not installed.
"""

from __future__ import annotations

from mtosi_jms.errors import MissingExtraError

try:
    import xmlschema  # noqa: F401 - the modules of this package import it
except ModuleNotFoundError as error:
    raise MissingExtraError("xmlschema", "codegen") from error
