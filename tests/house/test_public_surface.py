"""The public surface: what `mtosi_jms` promises by name, pinned."""

from __future__ import annotations

import re
from types import ModuleType

import mtosi_jms
from mtosi_jms import errors

ROLES = (
    *(
        "Requestor",
        "Supplier",
        "Dispatcher",
        "Publisher",
        "Subscriber",
        "CallOptions",
        "RequestContext",
        "Call",
        "Caller",
    ),
    *("Service", "SupplierBase", "BindingProfile", "Limits"),
)


def test_every_promised_name_is_there_and_documented() -> None:
    undocumented = [name for name in mtosi_jms.__all__ if not (getattr(mtosi_jms, name).__doc__ or "").strip()]
    assert undocumented == []


def test_every_error_derives_from_the_root() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    raised = [value for value in classes if issubclass(value, Exception)]
    assert len(raised) > 15
    assert [value for value in raised if not issubclass(value, errors.MtosiError)] == []


def test_all_public_names_and_their_signatures_are_pinned(structure: ModuleType) -> None:
    """After a change that is meant: make map."""
    assert structure.NAMES.read_text(encoding="utf-8").splitlines() == structure.public_names().splitlines()


def test_no_signature_of_a_role_or_of_options_says_any(structure: ModuleType) -> None:
    signatures = [
        f"{name}.{member}{signature}"
        for name, own, members in structure.surface()
        if name.count(".") == 2 and name.rpartition(".")[2] in ROLES
        for member, signature in {"": own, **members}.items()
    ]
    assert len(signatures) > 50
    assert [line for line in signatures if re.search(r"\bAny\b", line)] == []
