"""The switch `validate` of the roles: whether SOAP bodies that come in are held against the schemas (001-S12).

What judges them is in `mtosi_jms.validation`, which is imported when a role asks for it.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, runtime_checkable

from mtosi_jms.errors import ConfigError
from mtosi_jms.xmlbind import XmlWarning

__all__ = ["BodyCheck", "Validate", "body_check"]


@runtime_checkable
class BodyCheck(Protocol):
    """Judges bodies; `mtosi_jms.validation.BodyValidation` is one."""

    def check(self, document: bytes | str) -> list[XmlWarning]:
        """What is wrong with the body of an envelope.

        Args:
            document: the envelope; text is taken as Unicode, its encoding declaration ignored.

        Raises:
            DecodeError: the message must not be taken.
        """
        ...


Validate: TypeAlias = Literal["ignore", "warn", "fail"] | BodyCheck
"""`ignore`: bodies are not judged; `warn`: what is wrong is added to the envelope's warnings; `fail`: such a message is
one that cannot be read. The two go by the project's own schemas; a `BodyValidation` goes by those that it is given."""


def body_check(validate: Validate) -> BodyCheck | None:
    """What the argument `validate` of a role means; None: nothing is judged.

    Raises:
        ConfigError: none of the values.
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
