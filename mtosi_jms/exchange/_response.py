"""Makes the responses of an operation from the objects of a batch (P33)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtosi_jms.errors import ConfigError
from mtosi_jms.patterns import Batch
from mtosi_jms.service import OperationInfo, ServiceInfo
from mtosi_jms.xmlbind import XmlObject


class ResponseMaker:
    def __init__(self, service: ServiceInfo, operation: OperationInfo) -> None:
        self._operation = operation
        self._cls = service.load(operation.response)

    def is_response(self, item: object) -> bool:
        return isinstance(item, self._cls)

    def response(self, batch: Batch[Any]) -> Any:
        """Return the response with the objects of a batch. Raises ConfigError: it has no list for them."""
        if len(batch.objects) == 1 and self.is_response(batch.objects[0]):
            return batch.objects[0]
        path = self._operation.batch_path
        if not path and not batch.objects:
            return self._cls()
        if not path:
            raise ConfigError(f"{self._operation.name}: the handler must yield {self._cls.__name__}")
        return _nested(self._cls, path, batch.objects)


def _nested(cls: type[XmlObject], path: Sequence[str], objects: list[Any]) -> XmlObject:
    name, *rest = path
    value = _nested(cls.__xml__.field(name).table().cls, rest, objects) if rest else objects
    return cls(**{name: value})  # type: ignore[arg-type]
