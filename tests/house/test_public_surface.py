"""The public surface: what `mtosi_jms` promises by name."""

from __future__ import annotations

import re
from types import ModuleType

import mtosi_jms

ROLES = """
BindingProfile Call CallOptions Caller Dispatcher Publisher RequestContext Requestor Service Subscriber Supplier
SupplierBase Timeouts
"""


def test_every_promised_name_is_there_and_documented() -> None:
    undocumented = [name for name in mtosi_jms.__all__ if not (getattr(mtosi_jms, name).__doc__ or "").strip()]
    assert undocumented == []


def test_no_signature_of_a_role_or_of_options_says_any(structure: ModuleType) -> None:
    signatures = [
        f"{name}.{member}{signature}"
        for name, own, members in structure.surface()
        if name.count(".") == 2 and name.rpartition(".")[2] in ROLES.split()
        for member, signature in {"": own, **members}.items()
    ]
    assert len(signatures) > 50
    assert [line for line in signatures if re.search(r"\bAny\b", line)] == []
