"""A supplier that keeps what it is asked, and answers as the simulator does."""

from __future__ import annotations

from typing import Any

from mtosi_jms.service import RequestContext
from mtosi_jms.simulator import ManagedElementEms, Network


class KeepingEms(ManagedElementEms):
    """Keeps the contexts of its requests. `contexts`: of all requests, in order."""

    def __init__(self, elements: int = 5) -> None:
        super().__init__(Network(elements=elements))
        self.contexts: list[RequestContext] = []

    def get_managed_element(self, request: Any, context: RequestContext) -> Any:
        self.contexts.append(context)
        return super().get_managed_element(request, context)

    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Any:
        self.contexts.append(context)
        return super().get_all_managed_elements(request, context)
