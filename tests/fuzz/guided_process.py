"""Coverage-guided fuzzing of one entry point: any exception that is no `MtosiError` ends it with a crash file.

Usage: guided_process.py TARGET SECONDS CRASHES, TARGET one of soap, decode, jms, wsdl. Needs atheris.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

atheris: Any = importlib.import_module("atheris")
with atheris.instrument_imports(include=["mtosi_jms", "mtosi_codegen"]):
    from mtosi_codegen import generate
    from mtosi_jms import soap, xmlbind
    from mtosi_jms.errors import MtosiError
    from mtosi_jms.jms import JmsMessage
    from mtosi_jms.jms.binding import from_jms, map_header
    from mtosi_jms.xmlbind import XmlWarning

ROOT = Path(__file__).resolve().parents[2]


def one_envelope(data: bytes) -> None:
    envelope = soap.parse(data)
    if envelope.header is not None:
        map_header(envelope.header, body=envelope.body)
    soap.parse(envelope.encode())


def one_document(data: bytes) -> None:
    for element in xmlbind.parse_xml(data).iter("{*}*"):
        told: list[XmlWarning] = []
        xmlbind.decode(xmlbind.encode(xmlbind.decode(element, warnings=told)))


def one_message(data: bytes) -> None:
    from_jms(JmsMessage(body=data)).to_bytes()


def one_wsdl(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.wsdl").write_bytes(data)
        Path(folder, "a.xsd").write_bytes(data)
        for path, text in generate([folder]).files.items():
            compile(text, path, "exec")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "soap": one_envelope,
    "decode": one_document,
    "jms": one_message,
    "wsdl": one_wsdl,
}


def seeds(target: str) -> list[bytes]:
    """What the fuzzer starts from: the project's own schemas for the loader, their names in envelopes for the rest."""
    if target == "wsdl":
        files = [*sorted((ROOT / "wsdl").glob("*.wsdl")), *sorted((ROOT / "xsd").rglob("*.xsd"))]
        return [file.read_bytes() for file in files if file.stat().st_size < 20_000]
    found = importlib.import_module("test_any_bytes").SEEDS
    return [bytes(seed) for seed in found]


def main() -> None:
    target, seconds, crashes = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    sys.path.insert(0, str(Path(__file__).parent))
    run, end = TARGETS[target], time.monotonic() + seconds
    corpus = Path(crashes, "corpus")
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        Path(corpus, f"seed-{number}").write_bytes(seed)

    def once(data: bytes) -> None:
        if time.monotonic() > end:
            return
        try:
            run(data)
        except MtosiError:
            return

    options = [f"-max_total_time={int(seconds)}", f"-artifact_prefix={crashes}/", "-max_len=20000", "-timeout=30"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
