"""Objects out of a stream together with what stands around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from mtosi_jms.xmlbind.plan import OBJECT, plan_of
from mtosi_jms.xmlbind.values import XmlObject

T_co = TypeVar("T_co", bound=XmlObject, covariant=True)
U = TypeVar("U", bound=XmlObject)


@dataclass(frozen=True, slots=True)
class Around:
    """An element around an object, as far as it had been read when the object was met.

    Attributes:
        tag: Clark name of the element.
        path: its path, local names, the second and later of equal siblings with their position.
        line: the line it begins on.
        value: an object of its class with the fields that had been read: attributes, simple values, and parts that
            stand once; None where no class is known. What was not there yet, and what is never kept, is None or empty.
            Objects with the same surroundings share it.
        left_out: names of the fields that had been met and are not in `value`: lists, and what holds objects asked for.
    """

    tag: str
    path: str
    line: int | None
    value: XmlObject | None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed(Generic[T_co]):
    """An object and where it stood.

    Attributes:
        value: the object.
        tag: Clark name of its element.
        path: path of its element, as in warnings.
        line: the line that the element begins on.
        above: the elements around it, outermost first.
    """

    value: T_co
    tag: str
    path: str
    line: int | None
    above: tuple[Around, ...]

    def around(self, cls: type[U]) -> U | None:
        """The nearest object of a class around this one, as far as it had been read.

        Either an element around this one is of the class, or it has one part of the class: in the nested inventory
        layout both `ManagedElementInventoryType` and `ManagedElementType` lead to the managed element.

        Returns:
            The object; None where nothing around is of the class, or where the nearest that could be was not there.
        """
        for place in reversed(self.above):
            if isinstance(place.value, cls):
                return place.value
            if place.value is None:
                continue
            names = {
                slot.name
                for slot in plan_of(place.value.__xml__).slots.values()
                if slot.kind == OBJECT and not slot.many and issubclass(slot.target.cls, cls)
            }
            if names:
                parts = (getattr(place.value, name) for name in sorted(names))
                return next((part for part in parts if isinstance(part, cls)), None)
        return None
