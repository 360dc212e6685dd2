"""Bodies of messages that come in against the schemas, and what becomes of one that does not fit (001-S12)."""

from __future__ import annotations

import threading
from functools import cache
from typing import Final, Literal

from mtosi_jms.errors import ConfigError, DecodeError
from mtosi_jms.masking import shown_half_made
from mtosi_jms.validation._schemaset import SchemaSet
from mtosi_jms.validation._validator import Validator
from mtosi_jms.xmlbind import XmlWarning

MAX_WARNINGS: Final = 20


class BodyValidation:
    """Judges the SOAP body of each message that a role receives. Threads and roles may share one.

    Headers and patterns are not judged here: that is for the profile's `validation`.

    Args:
        action: `warn`: what is wrong becomes warnings of the envelope, at most 20 and one more that says so; `fail`: an
            error, so that the message is one that cannot be read.
        schemas: what bodies have to fit; by default the project's own.

    Raises:
        ConfigError: another action, or the project's own schemas are not installed.
    """

    def __init__(self, action: Literal["warn", "fail"] = "fail", schemas: SchemaSet | None = None) -> None:
        if action not in ("warn", "fail"):
            raise ConfigError(f"{action!r}: a body's validation has the actions warn and fail")
        self._action = action
        self._validator = Validator(schemas or _own_schemas(), max_issues=MAX_WARNINGS)
        self._lock = threading.Lock()  # a compiled schema has one list of findings

    @shown_half_made
    def __repr__(self) -> str:
        return f"<BodyValidation {self._action} by {self._validator.schemas.folder.name}>"

    def check(self, document: bytes | str) -> list[XmlWarning]:
        """What is wrong with an envelope's body.

        Args:
            document: the envelope; text is taken as Unicode, its encoding declaration ignored.

        Raises:
            DecodeError: the action is `fail`, and the body does not fit the schemas.
            MalformedXmlError, ForbiddenXmlError: not XML that may be read.
        """
        with self._lock:
            issues = self._validator.validate_body(document).issues
        if issues and self._action == "fail":
            first, others = issues[0], len(issues) - 1
            more = f"; and {others} more" if others else ""
            raise DecodeError(f"{first.message}{more}", line=first.line, path=first.path)
        return [XmlWarning("S12", issue.message, issue.path, issue.line) for issue in issues]


@cache
def _own_schemas() -> SchemaSet:
    return SchemaSet.load()
