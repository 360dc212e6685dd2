"""The mechanics of an element: racks, shelves, slots and sub-slots, and the cards in them, by their paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mtosi_jms.errors import ConfigError
from mtosi_jms.stubs.nrf.com import EquipmentHolderEnumType


@dataclass(frozen=True, slots=True)
class Holder:
    """A place in an element.

    Attributes:
        kind: rack, shelf, slot or sub_slot.
        path: `/rack=1/shelf=1/slot=2`.
        card: whether a card sits in it: one that carries ports, or one that carries the cards of the sub-slots.
        innermost: whether there is no holder in it.
    """

    kind: EquipmentHolderEnumType
    path: str
    card: bool
    innermost: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """What an element is built of.

    Attributes:
        racks: of the element.
        shelves: in each rack.
        slots: in each shelf.
        sub_slots: in each slot; 0: the card is in the slot itself.
    """

    racks: int = 1
    shelves: int = 1
    slots: int = 2
    sub_slots: int = 0

    def __post_init__(self) -> None:
        if min(self.racks, self.shelves, self.slots) < 1 or self.sub_slots < 0:
            raise ConfigError("an element has racks, shelves and slots from 1, and sub-slots from 0")

    @property
    def places(self) -> int:
        """How many innermost holders there are."""
        return self.racks * self.shelves * self.slots * max(self.sub_slots, 1)

    def holders(self) -> Iterator[Holder]:
        """All holders, each before those in it."""
        for rack in range(1, self.racks + 1):
            yield Holder(EquipmentHolderEnumType.rack, f"/rack={rack}", card=False, innermost=False)
            for shelf in range(1, self.shelves + 1):
                yield Holder(EquipmentHolderEnumType.shelf, f"/rack={rack}/shelf={shelf}", card=False, innermost=False)
                for slot in range(1, self.slots + 1):
                    path = f"/rack={rack}/shelf={shelf}/slot={slot}"
                    yield Holder(EquipmentHolderEnumType.slot, path, card=True, innermost=not self.sub_slots)
                    for sub_slot in range(1, self.sub_slots + 1):
                        yield Holder(
                            EquipmentHolderEnumType.sub_slot, f"{path}/sub_slot={sub_slot}", card=True, innermost=True
                        )

    def port(self, number: int, ports: int) -> str:
        """The path of a port.

        Args:
            number: from 0.
            ports: of the element; they are shared out evenly, the first card gets the first ones.
        """
        place, within = divmod(number, max(-(-ports // self.places), 1))
        rest, sub_slot = divmod(place, max(self.sub_slots, 1))
        rest, slot = divmod(rest, self.slots)
        rack, shelf = divmod(rest, self.shelves)
        path = f"/rack={rack + 1}/shelf={shelf + 1}/slot={slot + 1}"
        return f"{path}/sub_slot={sub_slot + 1}/port={within + 1}" if self.sub_slots else f"{path}/port={within + 1}"
