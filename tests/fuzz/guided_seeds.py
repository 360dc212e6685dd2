"""What guided fuzzing starts from, and how it varies it: documents that the SDK made, changed as XML and as bytes."""

from __future__ import annotations

import importlib
import random
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from lxml import etree

from mtosi_codegen import generate, write
from mtosi_jms.namespaces import XSI, clark
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.soap import Envelope
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.mri.rir import GetInventoryResponse
from mtosi_jms.stubs.nrf.me import ManagedElementListType

TESTS: Final = Path(__file__).resolve().parents[1]
ROOT: Final = TESTS.parent
PART: Final = b"\n%%\n"
"""Between the files of one input of the target `wsdl`; in no seed by itself."""
FILE_NAMES: Final = ("shop.wsdl", "messages.xsd", "goods.xsd", "events.xsd", "common.xsd")
LONGEST: Final = 20_000

_PARSER: Final = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
_WORD: Final = re.compile(rb"[\w.:%/+-]{2,60}")


def envelopes() -> list[bytes]:
    """Messages of every kind, and answers with an inventory."""
    network = Network(elements=2, ports=1, channels=1)
    made = [bytes(seed) for seed in importlib.import_module("tests.fuzz.test_any_bytes").SEEDS]
    bodies = (
        GetAllManagedElementsResponse(me_list=ManagedElementListType(me=list(network.managed_elements()))),
        GetInventoryResponse(inventory_data=InventoryEms(network).data([0])),
    )
    header = Header(activity_name="x", msg_type="RESPONSE", sender_uri="a", destination_uri="b")
    made += [Envelope(header=header, body=body).to_bytes() for body in bodies]
    made.append(made[0].decode().replace("UTF-8", "UTF-16").encode("utf-16"))
    return made


def documents(folder: Path) -> list[bytes]:
    """The case table of the binding, whose classes are generated here, and the envelopes.

    Args:
        folder: where the package of the classes goes.
    """
    result = generate([TESTS / "xmlbind" / "schemas"])
    write(folder / "bindcases", result.files)
    sys.path.insert(0, str(folder))
    importlib.import_module("bindcases")
    doc = importlib.import_module("tests.xmlbind.conftest").doc
    return [doc(case.xml) for case in importlib.import_module("tests.xmlbind.test_cases").CASES] + envelopes()


def sources() -> list[bytes]:
    """A small service with its schemas as one input, and the project's own files one by one."""
    small = TESTS / "codegen" / "sources"
    made = [PART.join((small / name).read_bytes() for name in FILE_NAMES)]
    made += [(small / name).read_bytes() for name in FILE_NAMES]
    own = [*sorted((ROOT / "wsdl").glob("*.wsdl")), *sorted((ROOT / "xsd").rglob("*.xsd"))]
    own += sorted((TESTS / "xmlbind" / "schemas").glob("*.xsd"))
    return [*made, *(data for file in own if len(data := file.read_bytes()) < LONGEST // 3)]


def words(seeds: Iterable[bytes]) -> list[bytes]:
    """The dictionary: every word of the seeds, and what breaks documents."""
    found = {word for seed in seeds for word in _WORD.findall(seed)}
    pieces = importlib.import_module("tests.fuzz.test_any_bytes").PIECES
    return [*sorted(found), *(piece for piece in pieces if 0 < len(piece) <= 60), PART]


def written(dictionary: Iterable[bytes]) -> str:
    """A dictionary in the form that libFuzzer reads."""
    return "".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in dictionary)


class TreeMutator:
    """Changes documents as XML, so that most of them stay well-formed; the others, and now and then these, as bytes.

    Args:
        seeds: where names, attributes and values are taken from.
        other: changes bytes: data and greatest length in, bytes out.
    """

    def __init__(self, seeds: Iterable[bytes], other: Callable[[bytes, int], bytes]) -> None:
        self._other = other
        self._seeds = list(seeds)
        self._nodes: list[bytes] = []
        attributes = {(clark(XSI, "nil"), "true")}
        texts = {"", " ", "9" * 40, "-0", "NaN", "x:y", "{}", "true", "##other", "##local", "unbounded", "0"}
        for seed in self._seeds:
            for part in seed.split(PART):
                for node in etree.fromstring(part, _PARSER).iter(etree.Element):
                    if len(self._nodes) < 5000 and len(node) < 4:
                        self._nodes.append(etree.tostring(node, with_tail=False))
                    texts.update((node.text or "", *node.values()))
                    attributes.update(node.items())
        self._texts, self._attributes = sorted(texts), sorted(attributes)

    def __call__(self, data: bytes, longest: int, seed: int) -> bytes:
        """What libFuzzer calls for the next input."""
        chance = random.Random(seed)
        if chance.random() < 0.15:
            return self._other(data, longest)
        changed = self._changed(data, chance)
        if changed is None and chance.random() < 0.5:
            changed = self._changed(chance.choice(self._seeds), chance)
        return changed if changed is not None and len(changed) <= longest else self._other(data, longest)

    def _changed(self, data: bytes, chance: random.Random) -> bytes | None:
        """An input with a few changes to the tree of one of its documents; None where that is not well-formed."""
        parts = data.split(PART)
        at = chance.randrange(len(parts))
        try:
            root = etree.fromstring(parts[at], _PARSER)
            for _ in range(chance.randint(1, 3)):
                self._change(chance, chance.choice(list(root.iter(etree.Element))))
            parts[at] = etree.tostring(root)
        except (etree.XMLSyntaxError, ValueError, TypeError):
            return None
        return PART.join(parts)

    def _change(self, chance: random.Random, node: Any) -> None:
        parent = node.getparent()
        way = chance.randrange(9)
        if way == 0 and parent is not None:
            parent.remove(node)
        elif way == 1 and parent is not None:
            parent.insert(chance.randint(0, len(parent)), etree.fromstring(etree.tostring(node, with_tail=False)))
        elif way == 2:
            node.insert(chance.randint(0, len(node)), etree.fromstring(chance.choice(self._nodes)))
        elif way == 3 and parent is not None:
            parent.replace(node, etree.fromstring(chance.choice(self._nodes)))
        elif way == 4:
            node.tag = etree.fromstring(chance.choice(self._nodes)).tag
        elif way == 5:
            node.text = self._text(chance)
        elif way == 6 and node.attrib:
            node.set(chance.choice(node.keys()), self._text(chance))
        elif way == 7:
            name, value = chance.choice(self._attributes)
            node.set(name, value)
        else:
            node.tail = self._text(chance)

    def _text(self, chance: random.Random) -> str:
        return chance.choice(self._texts)
