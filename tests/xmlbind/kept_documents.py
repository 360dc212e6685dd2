"""Random documents of namespaces and unknown elements: most are well-formed, some only nearly."""

from __future__ import annotations

from random import Random

ME = "http://www.tmforum.org/mtop/nrf/xsd/me/v1"
COI = "http://www.tmforum.org/mtop/fmw/xsd/coi/v1"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
NAMES = ("urn:a", "urn:b?x=1&amp;y=2", "http://vendor.example/ns#v1", "urn:it's", "urn:a&amp;amp;b", "urn:%20", ME)
BAD_NAMES = ("urn:a b", "urn:&lt;", "urn:&#10;", "urn:é", "urn:&quot;", "{urn}")
TEXTS = ("", "text", "p1:type", "a &amp; b", "&lt;", "\n  ", "/p0:a[1]", "é", "tab\there", "cr&#13;", "12:30", "]]&gt;")
VALUES = ("1", "p2:x", "a &amp; 'b'", "line&#10;feed", "tab&#9;", "&lt;&quot;", "cr&#13;", "é")
FAULTS = ("<:x/>", "<p99:x/>", "<x p98:a='1'/>", "<a:b:c/>", "<x a='1' a='2'/>", "<x>", "<x xmlns:q=''/>", "&#1;")


class Maker:
    """Makes one document after the other.

    Args:
        seed: documents of one seed are the same.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def document(self) -> bytes:
        """A managed element with unknown content."""
        random = self._random
        number = random.choice((0, 3, 10, 10, 40, 200)) if random.random() < 0.99 else 2000
        declared = [f' xmlns:p{index}="{self._space(index)}"' for index in range(number)]
        default = random.choice(("", "", ' xmlns="urn:d"'))
        prefixes = [f"p{index}" for index in range(number)]
        count = random.choice((1, 3, 10, 30)) if number < 2000 else 300
        inner = "".join(self._child(prefixes, default) for _ in range(count))
        if random.random() < 0.05:
            inner += random.choice(FAULTS)
        root = f'<me:me xmlns:me="{ME}" xmlns:coi="{COI}" xmlns:xsi="{XSI}"{default}{"".join(declared)}'
        return f"{root}>{inner}</me:me>".encode()

    def _space(self, index: int) -> str:
        random = self._random
        if random.random() < 0.0005:
            return random.choice(BAD_NAMES)
        return random.choice(NAMES) if random.random() < 0.5 else f"urn:n{index}"

    def _child(self, prefixes: list[str], default: str) -> str:
        kind = self._random.random()
        if kind < 0.15:
            return f"<coi:vendorExtensions>{self._element(prefixes, 0)}</coi:vendorExtensions>"
        if kind < 0.3:
            return f'<me:location xsi:type="{self._prefix(prefixes)}Place">x</me:location>'
        return self._element(prefixes, 0)

    def _prefix(self, prefixes: list[str]) -> str:
        return f"{self._random.choice(prefixes)}:" if prefixes and self._random.random() < 0.6 else ""

    def _element(self, prefixes: list[str], depth: int) -> str:
        random = self._random
        declared = ""
        if random.random() < 0.3:
            prefix = random.choice(prefixes) if prefixes and random.random() < 0.5 else "q"
            declared += f' xmlns:{prefix}="{random.choice(NAMES)}"'
            prefixes = [*prefixes, prefix]
        if random.random() < 0.1:
            declared += random.choice((' xmlns=""', ' xmlns="urn:e"'))
        name = self._prefix(prefixes) + random.choice(("location", "site", "x"))
        attributes = ""
        if random.random() < 0.5:
            attributes = f' {self._prefix(prefixes)}{random.choice("abc")}="{random.choice(VALUES)}"'
        content = random.choice(TEXTS)
        if depth < 4 and random.random() < 0.4:
            for _ in range(random.randint(1, 3)):
                content += self._element(prefixes, depth + 1) + random.choice(TEXTS)
        return f"<{name}{declared}{attributes}>{content}</{name}>" if content else f"<{name}{declared}{attributes}/>"
