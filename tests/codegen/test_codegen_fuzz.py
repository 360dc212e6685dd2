"""Any bytes as a source: a result or an `MtosiError`, and what is generated compiles."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtosi_codegen import generate
from mtosi_jms.errors import MtosiError

HERE = Path(__file__).parent
FILES = {path.name: path.read_bytes() for path in sorted((HERE / "sources").iterdir())}
WORDS = [
    *sorted({word for data in FILES.values() for word in data.split()}),
    b'name=""',
    b'type="x:y:z"',
    b"<xsd:any/>",
]


@st.composite
def broken_sources(draw: st.DrawFn) -> dict[str, bytes]:
    """The golden sources with a few words of one file replaced, dropped or doubled."""
    name = draw(st.sampled_from(sorted(FILES)))
    words = FILES[name].split(b" ")
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(words) - 1))
        words[position] = draw(st.sampled_from([b"", words[position] * 2, *WORDS[:: max(1, len(WORDS) // 60)]]))
    return {**FILES, name: b" ".join(words)}


def _survives(files: dict[str, bytes]) -> bool:
    """Whether the generator came to a result that compiles, or to an error of its own; anything else is raised."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        try:
            result = generate([folder])
        except MtosiError:
            return True
        for path, text in result.files.items():
            compile(text, path, "exec")
    return True


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(broken_sources())
def test_broken_sources(files: dict[str, bytes]) -> None:
    assert _survives(files)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    assert _survives({"a.wsdl": data, "b.xsd": b"<schema xmlns='http://www.w3.org/2001/XMLSchema'>" + data})


def test_deep_nesting_is_an_error_or_a_finding() -> None:
    deep = b"<x:sequence>" * 5000
    text = b"<x:schema xmlns:x='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t'><x:complexType name='T'>"
    for depth in (100, 240, 5000):
        body = deep[: len(b"<x:sequence>") * depth] + b"</x:sequence>" * depth
        assert _survives({"a.xsd": text + body + b"</x:complexType></x:schema>"})
