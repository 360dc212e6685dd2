"""The technologies of networks: products, layers, cards, names of ports and channels.

Names follow the conventions of TMF 814, which MTOSI adopted. A port is named by its location,
`/rack=1/shelf=1/slot=2/port=1`, a channel by its position in the multiplex, `/sts3c_au4-j=1/vt2_tu12-k=1-l=3-m=2` or
`/frequency=192.15/odu2=1`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

Product = tuple[str, str, tuple[str, ...]]
"""Manufacturer, name, and the software versions in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Technology:
    """A technology of networks.

    Attributes:
        name: SDH, OTN, ETHERNET, MICROWAVE; MIXED for elements of all kinds with one flat shelf.
        rates: layer rates that elements can connect.
        port_rates: layer rates of a port, the innermost last; empty if ports do not state them.
        link_rate: layer rate of a topological link.
        cards: types of cards that carry ports.
        channel: name and layer rate of a port's channel by its number, from 0; the rate is empty if channels have none.
        capacity: most channels of a port; None: any number.
        causes: probable causes of port alarms.
    """

    name: str
    products: tuple[Product, ...]
    rates: tuple[str, ...]
    port_rates: tuple[str, ...] = ()
    link_rate: str
    cards: tuple[str, ...] = ()
    channel: Callable[[int], tuple[str, str]]
    capacity: int | None = None
    causes: tuple[str, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether its elements have a flat shelf, without slots, and ports that do not state their layers."""
        return not self.port_rates


_LAMBDA: Final = ("Transvega", "TV-Lambda 96", ("R7.1", "R7.2", "R8.0"))
_PACKET: Final = ("Lumen & Sons", "Packet <X> 500", ("21.4", "22.1", "22.2"))
_NWO_8800: Final = ("Northwind Optical", "NWO-8800", ("9.1.2", "9.2.0", "9.2.4"))
_NWO_4400: Final = ("Northwind Optical", "NWO-4400", ("6.0.1", "6.0.9"))
_TV_10K: Final = ("Transvega", "TV-10K", ("R14", "R15 SP2"))
_EDGE: Final = ("Kilotel", "K-Edge", ("3.3.3",))

_TRIBUTARIES: Final = 63
"""VC-12s in a VC-4: 3 x 7 x 3."""
_GRID: Final = 80
"""Optical channels of the C band, which are 50 GHz apart."""
_LOWEST: Final = 192.10
"""The lowest optical channel, in THz."""


def _numbered(number: int) -> tuple[str, str]:
    return f"/sts3c_au4={number + 1}", ""


def _synchronous(number: int) -> tuple[str, str]:
    """A VC-4, then the VC-12s in it, then the next VC-4."""
    j, place = divmod(number, _TRIBUTARIES + 1)
    if place == 0:
        return f"/sts3c_au4-j={j + 1}", "LR_STS3c_and_AU4_VC4"
    k, rest = divmod(place - 1, 21)
    tributary, m = divmod(rest, 3)
    return f"/sts3c_au4-j={j + 1}/vt2_tu12-k={k + 1}-l={tributary + 1}-m={m + 1}", "LR_VT2_and_TU12_VC12"


def _optical(number: int) -> tuple[str, str]:
    """An optical channel, then the ODU2 in it, then the next channel."""
    place, inner = divmod(number, 2)
    channel = f"/frequency={_LOWEST + place * 0.05:.2f}"
    return (f"{channel}/odu2=1", "LR_OCH_Data_Unit_2") if inner else (channel, "LR_Optical_Channel")


def _ethernet(number: int) -> tuple[str, str]:
    return f"/ethernet={number + 1}", "LR_Ethernet"


MIXED: Final = Technology(
    name="MIXED",
    products=(_NWO_8800, _NWO_4400, _PACKET, _TV_10K, _EDGE),
    rates=("LR_Line_OC48_STS48_and_MS_STM16", "LR_Line_OC192_STS192_and_MS_STM64", "LR_Ethernet"),
    link_rate="LR_PHYSICAL_OPTICAL",
    channel=_numbered,
    causes=("LOS", "LOF", "BER_SD"),
)
SDH: Final = Technology(
    name="SDH",
    products=(_NWO_8800, _NWO_4400, _TV_10K),
    rates=("LR_STS3c_and_AU4_VC4", "LR_VT2_and_TU12_VC12"),
    port_rates=(
        "LR_PHYSICAL_OPTICAL",
        "LR_DSR_OC48_and_STM16",
        "LR_Section_OC48_STS48_and_RS_STM16",
        "LR_Line_OC48_STS48_and_MS_STM16",
    ),
    link_rate="LR_DSR_OC48_and_STM16",
    cards=("STM16-2", "STM16-2E"),
    channel=_synchronous,
    capacity=16 * (_TRIBUTARIES + 1),
    causes=("LOS", "LOF", "MS-AIS", "BER_SD", "TIM"),
)
OTN: Final = Technology(
    name="OTN",
    products=(_LAMBDA,),
    rates=("LR_OCH_Data_Unit_2", "LR_Optical_Channel"),
    port_rates=(
        "LR_PHYSICAL_OPTICAL",
        "LR_OPTICAL_SECTION",
        "LR_Optical_Transmission_Section",
        "LR_Optical_Multiplex_Section",
    ),
    link_rate="LR_Optical_Transmission_Section",
    cards=("OMD80", "OMD80-R"),
    channel=_optical,
    capacity=2 * _GRID,
    causes=("LOS", "OSC_LOS", "OSC_SD", "SSF"),
)
ETHERNET: Final = Technology(
    name="ETHERNET",
    products=(_PACKET, _EDGE),
    rates=("LR_Ethernet",),
    port_rates=("LR_PHYSICAL_OPTICAL", "LR_DSR_10Gigabit_Ethernet"),
    link_rate="LR_DSR_10Gigabit_Ethernet",
    cards=("XGE-8", "XGE-8S"),
    channel=_ethernet,
    capacity=4094,
    causes=("LOS", "RX_FAIL", "TX_FAIL"),
)
MICROWAVE: Final = Technology(
    name="MICROWAVE",
    products=(("Highpoint Radio", "HR-18", ("4.2", "4.3")), ("Highpoint Radio", "HR-23e", ("5.0.1",))),
    rates=("LR_STS3c_and_AU4_VC4", "LR_VT2_and_TU12_VC12"),
    port_rates=(
        "LR_PHYSICAL_MEDIALESS",
        "LR_DSR_OC3_STM1",
        "LR_Section_OC3_STS3_and_RS_STM1",
        "LR_Line_OC3_STS3_and_MS_STM1",
    ),
    link_rate="LR_PHYSICAL_MEDIALESS",
    cards=("RADIO-1+0", "RADIO-1+1"),
    channel=_synchronous,
    capacity=_TRIBUTARIES + 1,
    causes=("DEMODULATION_FAIL", "RX_FAIL", "TX_DEGRADE", "XPIC_FAIL"),
)

TECHNOLOGIES: Final[Mapping[str, Technology]] = {found.name: found for found in (MIXED, SDH, OTN, ETHERNET, MICROWAVE)}
