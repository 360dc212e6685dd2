"""docs/operations.md: the program of a supplier's container answers, says that it is ready, and ends when drained."""

from __future__ import annotations

import re
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval


def test_a_supplier_of_ones_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(# supplier\.py\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("MTOSI_JMS_URL", "memory:production-recipe")
    space: dict[str, Any] = {}
    program = compile(code.replace('"0.0.0.0", 9464', '"127.0.0.1", 0'), "operations.md", "exec")
    with (
        mtosi.connect("memory:production-recipe") as connection,
        mtosi.Requestor(connection, sender_uri="queue:OS") as requestor,
    ):
        thread = threading.Thread(target=exec, args=(program, space))
        thread.start()
        try:
            answer = ManagedElementRetrieval(requestor, "queue:EMS.OS").get_managed_element(me_ref="MD=EMS1/ME=NE-1")
            assert answer.me is not None
            with urllib.request.urlopen(f"{space['monitor'].url}/readyz", timeout=10) as page_ready:
                assert page_ready.status == 200
        finally:
            space["supplier"].drain(10)
            thread.join(30)
        assert not thread.is_alive()


def test_the_image_runs_the_program_alone(root: Path) -> None:
    """The image that it begins with takes its arguments for a command of ours: it needs another entry point."""
    page = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    (made,) = re.findall(r"^```dockerfile\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert 'ENTRYPOINT ["python", "supplier.py"]' in made
    begun = re.search(r"docker build --tag (\S+) \.", page)
    assert begun is not None
    assert f"FROM {begun[1]}\n" in made
    assert 'ENTRYPOINT ["mtosi-jms"]' in (root / "Dockerfile").read_text(encoding="utf-8")
