"""A network as it was recorded: the objects and alarms in a folder of landed envelopes or inventory documents.

Objects are found and decoded in the lists of flat replies and in the nested layout. An object that comes again replaces
the earlier one. Requests and faults hold no objects; only the alarms of notifications are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from lxml import etree

from mtosi_jms.compression import DOCUMENT_NAMES
from mtosi_jms.errors import ConfigError, EncodeError, MtosiError, XmlError
from mtosi_jms.inventory import Routes, find_objects, is_object, type_class
from mtosi_jms.namespaces import SOAP11, SOAP12, clark, split_clark
from mtosi_jms.simulator._events import standing_alarms
from mtosi_jms.simulator._parts import Resource
from mtosi_jms.spool import scan
from mtosi_jms.stubs.fmw.coi import CommonObjectInfoType
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.nra.alm import AlarmType
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.xmlbind import decode, iter_decode, parse_xml, read_document

_BODIES: Final = (clark(SOAP11, "Body"), clark(SOAP12, "Body"))
_IN_ELEMENT: Final = 2
"""Steps of the name of a managed element: MD and ME."""


class Recording:
    """The objects and alarms of a recorded network; all are held in memory. `objects`: objects by full name, in the
    order in which they first came."""

    def __init__(self, objects: Iterable[CommonObjectInfoType], alarms: Iterable[AlarmType] = ()) -> None:
        self.objects: dict[str, Any] = {
            str(found.name): found for found in objects if isinstance(found.name, NamingAttributeType)
        }
        self.alarms = tuple(alarms)
        self._inside: dict[str, list[Any]] = {}
        for found in self.objects.values():
            if len(found.name.rdn) > _IN_ELEMENT:
                element = NamingAttributeType(rdn=found.name.rdn[:_IN_ELEMENT])
                self._inside.setdefault(str(element), []).append(found)

    @classmethod
    def read(
        cls, folder: str | Path, on_problem: Callable[[str, MtosiError | OSError], object] | None = None
    ) -> Recording:
        """Read every envelope and document of a folder (`*.xml`, `*.xml.gz`, `*.xml.zst`), in the order of their names.

        Args:
            folder: a landing, or any folder of files.
            on_problem: called for each unreadable file, which is then left out; None: the error is raised.

        Raises:
            SpoolError: the folder cannot be read.
            ConfigError: it has no such file.
            XmlError, OSError: a file cannot be read.
        """
        objects: list[Any] = []
        alarms: list[AlarmType] = []
        for path in _files(Path(folder)):
            try:
                data = read_document(path)
                objects += _objects_of(parse_xml(data, source=str(path)))
                alarms += iter_decode(data, AlarmType)
            except (XmlError, EncodeError, OSError) as error:
                if on_problem is None:
                    raise
                on_problem(str(path), error)
        return cls(objects, standing_alarms(alarms).values())

    def elements(self) -> Iterator[ManagedElementType]:
        return (found for found in self.objects.values() if isinstance(found, ManagedElementType))

    def elements_in(self, domain: NamingAttributeType | None) -> Iterable[ManagedElementType] | None:
        """See `Source`; a domain exists if the recording has any object in it."""
        if domain is None:
            return self.elements()
        inside = f"{domain}/"
        if str(domain) not in self.objects and not any(name.startswith(inside) for name in self.objects):
            return None
        return (found for found in self.elements() if str(found.name).startswith(inside))

    def is_managed_by(self, system: NamingAttributeType) -> bool:
        """See `Source`; true if the system was recorded, or elements name it as their manager."""
        own = system.rdn[-1].value if system.rdn else None
        return str(system) in self.objects or any(found.naming_os == own for found in self.elements())

    def equipment_of(self, element: NamingAttributeType) -> Iterable[EquipmentHolderType | EquipmentType] | None:
        found = [one for one in self.inside(element) if isinstance(one, EquipmentHolderType | EquipmentType)]
        return found if found or isinstance(self.find(element), ManagedElementType) else None

    def inside(self, element: NamingAttributeType) -> list[Any]:
        """The objects in a managed element."""
        return self._inside.get(str(element), [])

    def find(self, wanted: NamingAttributeType) -> Resource | None:
        return self.objects.get(str(wanted))


def _files(folder: Path) -> list[Path]:
    if not (found := scan(folder).documents):
        raise ConfigError(f"{folder}: holds no envelope ({DOCUMENT_NAMES})")
    return found


def _objects_of(root: etree._Element) -> Iterator[Any]:
    body = next((child for child in root if child.tag in _BODIES), None)
    top: Any = [root] if body is None else body
    if any(split_clark(str(child.tag))[1] == "notify" for child in top):
        return
    for hit in find_objects(top, Routes(is_object)):
        made: Any = type_class(hit.table).cls
        found = decode(hit.element, made) if hit.element is not None else made()
        if isinstance(found, CommonObjectInfoType):
            if not isinstance(found.name, NamingAttributeType) and hit.name:
                found.name = NamingAttributeType.parse(hit.name)  # its position gives its name
            yield found
