"""The switch `validate` of the roles: whether received SOAP bodies are checked against the schemas (001-S12).

The check itself is in `mtosi_jms.validation`, which is imported only when a role needs it.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, runtime_checkable

from mtosi_jms.errors import ConfigError
from mtosi_jms.xmlbind import XmlWarning

__all__ = ["BodyCheck", "Validate", "body_check"]


@runtime_checkable
class BodyCheck(Protocol):
    """Checks bodies; `mtosi_jms.validation.BodyValidation` is one such check."""

    def check(self, document: bytes | str) -> list[XmlWarning]:
        """Return what is wrong with the body of an envelope. Raises DecodeError: the message must be refused."""
        ...


Validate: TypeAlias = Literal["ignore", "warn", "fail"] | BodyCheck
"""`ignore`: bodies are not checked. `warn`: what is wrong is added to the envelope's warnings. `fail`: a message that
is not valid is treated as one that cannot be read. `warn` and `fail` use the project's own schemas; a `BodyValidation`
uses the schemas that it is given."""


def body_check(validate: Validate) -> BodyCheck | None:
    """Return the check for the argument `validate` of a role; None: no check.

    Raises:
        ConfigError: `validate` is not one of its values.
        SchemaError: the project's own schemas cannot be used.
    """
    if validate == "ignore":
        return None
    if isinstance(validate, BodyCheck):
        return validate
    if validate not in ("warn", "fail"):
        raise ConfigError(f"validate {validate!r}: give ignore, warn, fail, or a BodyValidation")
    from mtosi_jms.validation import BodyValidation  # lxml's schemas are for who asks for them

    return BodyValidation(validate)
