"""Coverage-guided fuzzing of one entry point: any exception that is no `MtosiError` ends it with a crash file.

Usage: guided_process.py TARGET SECONDS FOLDER, TARGET one of soap, decode, jms, wsdl; SECONDS of CPU time. FOLDER gets
`figures.json` and below `crashes` what was found. Needs atheris.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

atheris: Any = importlib.import_module("atheris")
# Not lxml, which is not Python, and not the tables of the stubs, which hold no code to cover.
with atheris.instrument_imports(include=["mtosi_jms", "mtosi_codegen"], exclude=["mtosi_jms.stubs"]):
    from mtosi_codegen import generate
    from mtosi_jms import soap, xmlbind
    from mtosi_jms.binding import BindingProfile
    from mtosi_jms.binding.mapping import from_jms, map_header
    from mtosi_jms.binding.profile import FILTER_ATTRIBUTES, OPTIONAL_FIELDS
    from mtosi_jms.errors import EncodeError, MtosiError
    from mtosi_jms.exchange.messages import read_reply
    from mtosi_jms.jms import JmsMessage
    from mtosi_jms.soap import Envelope
    from mtosi_jms.stubs.nrf.me import ManagedElementType
    from mtosi_jms.xmlbind import XmlWarning

guided_seeds: Any = importlib.import_module("tests.fuzz.guided_seeds")
cores: Any = importlib.import_module("tests.cores")
PROFILE = BindingProfile(optional_fields=OPTIONAL_FIELDS, time_form="millis", severity_form="code")

# An input may take this long, and the process this much memory, on the slowest machine that is used: more is a finding.
SECONDS_PER_INPUT = 20
MEGABYTES = 1024


def one_envelope(data: bytes) -> None:
    envelope = soap.parse(data)
    if envelope.header is not None:
        mapping = map_header(envelope.header, PROFILE, body=envelope.body, filters=FILTER_ATTRIBUTES)
        JmsMessage(properties=mapping.properties, priority=mapping.priority)
    assert envelope.to_bytes() == data
    soap.parse(rewritten(Envelope.encode, envelope))


def rewritten(write: Callable[[Any], bytes], read: object) -> bytes:
    """What was read, written; whatever it was, it must be possible."""
    try:
        return write(read)
    except EncodeError as error:
        raise AssertionError("what was read cannot be written") from error


def one_document(data: bytes) -> None:
    if xmlbind.core().name == "native":
        assert cores.difference(data) == ""
    for element in list(xmlbind.parse_xml(data).iter("{*}*"))[:20]:
        told: list[XmlWarning] = []
        read = xmlbind.decode(element, warnings=told)
        if isinstance(read, xmlbind.Nil):
            continue  # it is written as part of an object only
        written = rewritten(xmlbind.encode, read)
        again = rewritten(xmlbind.encode, xmlbind.decode(written))
        assert told or again == written
    for item in xmlbind.iter_decode(data, ManagedElementType):
        assert isinstance(item, ManagedElementType)


def one_message(data: bytes) -> None:
    message = JmsMessage(body=data)
    read_reply(message)
    from_jms(message).to_bytes()


def one_tree(data: bytes) -> None:
    parts = data.split(guided_seeds.PART)
    names = guided_seeds.FILE_NAMES if len(parts) > 1 else ("a.wsdl", "a.xsd")
    parts = parts if len(parts) > 1 else [data, data]
    with tempfile.TemporaryDirectory() as folder:
        for name, part in zip(names, parts, strict=False):
            Path(folder, name).write_bytes(part)
        for path, text in generate([folder], bindings="all").files.items():
            compile(text, path, "exec")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "soap": one_envelope,
    "decode": one_document,
    "jms": one_message,
    "wsdl": one_tree,
}


def seeds(target: str, folder: Path) -> list[bytes]:
    """What the fuzzer starts from."""
    if target == "wsdl":
        return list(guided_seeds.sources())
    return list(guided_seeds.documents(folder) if target == "decode" else guided_seeds.envelopes())


def bytes_changed(data: bytes, longest: int) -> bytes:
    """An input as libFuzzer itself varies it; to be called from a mutator alone."""
    # `atheris.Mutate` of 3.0 says that fuzzing has not begun, when a mutator asks; the module that it stands for knows.
    core: Any = importlib.import_module("atheris.core_with_libfuzzer")
    return bytes(core.Mutate(data, longest))


class Budget:
    """Runs inputs until the CPU time is used up.

    Args:
        run: takes one input.
        seconds: CPU time of this process.
        report: where the figures go.
    """

    def __init__(self, run: Callable[[bytes], None], seconds: float, report: Path) -> None:
        self._run = run
        self._end = time.process_time() + seconds
        self._report = report
        self._figures = {"executions": 0, "results": 0, "errors": 0}

    def __call__(self, data: bytes) -> None:
        if time.process_time() > self._end:
            self._leave()
        self._figures["executions"] += 1
        try:
            self._run(data)
        except MtosiError:
            self._figures["errors"] += 1
            return
        self._figures["results"] += 1

    def _leave(self) -> NoReturn:
        figures = {**self._figures, "cpu_seconds": round(time.process_time(), 1)}
        self._report.write_text(json.dumps(figures), encoding="utf-8")
        os._exit(0)  # libFuzzer ends when it wants to, and counts wall time


def main() -> None:
    logging.disable(logging.CRITICAL)
    target, seconds, folder = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    corpus, crashes, dictionary = folder / "corpus", folder / "crashes", folder / "words.dict"
    for made in (corpus, crashes):
        made.mkdir(parents=True, exist_ok=True)
    start = seeds(target, folder)
    for number, seed in enumerate(start):
        Path(corpus, f"seed-{number:03d}").write_bytes(seed)
    dictionary.write_text(guided_seeds.written(guided_seeds.words(start)), encoding="ascii")
    options = [
        f"-artifact_prefix={crashes}/",
        f"-dict={dictionary}",
        f"-max_len={guided_seeds.LONGEST}",
        f"-timeout={SECONDS_PER_INPUT}",
        f"-report_slow_units={SECONDS_PER_INPUT}",
        f"-rss_limit_mb={MEGABYTES}",
        "-len_control=0",
        "-print_final_stats=1",
    ]
    atheris.Setup(
        [sys.argv[0], *options, str(corpus)],
        Budget(TARGETS[target], seconds, folder / "figures.json"),
        custom_mutator=guided_seeds.TreeMutator(start, bytes_changed),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
