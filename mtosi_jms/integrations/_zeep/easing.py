"""What zeep does not know of XML Schema and WSDL, written out in the mended copy that it reads.

- zeep looks through the imports of an imported WSDL only where that has another namespace: each WSDL imports directly
  what it reaches.
- zeep knows no substitution groups: where the head of one may stand, there is a choice of it and its members.
- zeep moves what a schema includes, and with that may lose a prefix that is declared below the root: all stand there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lxml import etree

from mtosi_codegen.mend import Mended
from mtosi_jms.namespaces import WSDL, XSD, clark, split_clark
from mtosi_jms.xmlbind import read_xml

_ELEMENT: Final = clark(XSD, "element")


def ease(mended: Mended) -> None:
    """Change the files of a mended copy."""
    _import_all(mended)
    trees = {path: read_xml(path) for path in sorted(mended.folder.glob("*.xsd"))}
    changed = _write_out_groups(mended, trees)
    for path, root in trees.items():
        whole = _with_prefixes(root)
        if whole is not root or path in changed:
            path.write_bytes(etree.tostring(whole))


def _import_all(mended: Mended) -> None:
    trees = {path.name: read_xml(path) for path in mended.wsdls.values()}
    tag = clark(WSDL, "import")
    direct = {name: [one.get("location") or "" for one in root.iterchildren(tag)] for name, root in trees.items()}
    for name, root in trees.items():
        reached, queue = {name}, list(direct[name])
        while queue:
            one = queue.pop()
            if one in reached or one not in trees:
                continue
            reached.add(one)
            queue += direct[one]
        for one in sorted(reached - {name, *direct[name]}):
            namespace = trees[one].get("targetNamespace") or ""
            root.insert(0, etree.Element(tag, namespace=namespace, location=one))
        Path(mended.folder, name).write_bytes(etree.tostring(root))


def _write_out_groups(mended: Mended, trees: Mapping[Path, etree._Element]) -> set[Path]:
    """Put choices in the places of elements that others may substitute; the files that were changed."""
    groups = _groups(trees)
    changed = set()
    for path, root in trees.items():
        heads = [(one, name) for one in root.iter(_ELEMENT) if (name := _qname(one, "ref")) in groups]
        for element, head in heads:
            _write_choice(element, groups[head])
        if heads:
            known = {one.get("namespace") for one in root.iterchildren(clark(XSD, "import"))}
            own = root.get("targetNamespace")
            needed = {split_clark(name)[0] for _, head in heads for name in groups[head]}
            for namespace in sorted(needed - known - {own}):
                location = mended.schemas[namespace].name
                root.insert(0, etree.Element(clark(XSD, "import"), namespace=namespace, schemaLocation=location))
            changed.add(path)
    return changed


def _with_prefixes(root: etree._Element) -> etree._Element:
    """A schema that declares all its prefixes at its root; itself where it does."""
    declared = dict(root.nsmap)
    for _, (prefix, namespace) in etree.iterwalk(root, events=("start-ns",)):
        if prefix:
            declared.setdefault(prefix, namespace)
    if declared == dict(root.nsmap):
        return root
    made = etree.Element(root.tag, dict(root.attrib), nsmap=declared)
    made[:] = root[:]
    return made


def _groups(trees: Mapping[Path, etree._Element]) -> dict[str, list[str]]:
    """The elements that may stand in the place of each head, by Clark names; itself too where it is not abstract."""
    direct: dict[str, list[str]] = {}
    abstract: set[str] = set()
    for root in trees.values():
        for element in root.iterchildren(_ELEMENT):
            name = clark(root.get("targetNamespace") or "", element.get("name") or "")
            if element.get("abstract") in ("true", "1"):
                abstract.add(name)
            for head in _qnames(element, "substitutionGroup"):
                direct.setdefault(head, []).append(name)
    groups: dict[str, list[str]] = {}
    for head, nearest in direct.items():
        members, queue = {head: None}, list(nearest)
        while queue:
            name = queue.pop(0)
            if name not in members:
                members[name] = None
                queue += direct.get(name, [])
        groups[head] = [name for name in members if name not in abstract]
    return {head: members for head, members in groups.items() if members and members != [head]}


def _write_choice(element: etree._Element, members: list[str]) -> None:
    choice = etree.Element(clark(XSD, "choice"))
    for attribute in ("minOccurs", "maxOccurs"):
        if (value := element.get(attribute)) is not None:
            choice.set(attribute, value)
    parent = element.getparent()
    if parent is None:
        return
    parent.replace(element, choice)
    for name in members:
        namespace, local = split_clark(name)
        # lxml drops a second prefix for a namespace, and with it what the prefix in the text stands for.
        known = next(
            (prefix for prefix, one in choice.nsmap.items() if one == namespace), "member" if namespace else None
        )
        nsmap = {"member": namespace} if known == "member" else None
        etree.SubElement(choice, _ELEMENT, nsmap=nsmap, ref=f"{known}:{local}" if known else local)


def _qname(element: etree._Element, attribute: str) -> str:
    """The Clark name in an attribute, empty where there is none."""
    return next(iter(_qnames(element, attribute)), "")


def _qnames(element: etree._Element, attribute: str) -> list[str]:
    names = []
    for text in (element.get(attribute) or "").split():
        prefix, _, local = text.rpartition(":")
        names.append(clark(element.nsmap.get(prefix or None) or "", local))
    return names
