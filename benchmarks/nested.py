"""Reading the nested layout of getInventory into rows on one core, from 10,000 objects to a million: is it linear?

As a script it draws the measurements: `nested.py out/bench.json docs/nested.svg`.
"""

from __future__ import annotations

import gc
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from lxml import etree
from measure import Comparison, Line
from messaging import header, sent
from network import managed_element

from mtosi_jms.inventory import load_stubs
from mtosi_jms.spark import SourceOptions
from mtosi_jms.stubs.fmw.md import ManagementDomainType
from mtosi_jms.stubs.fmw.nam import NamingAttributeListType, name
from mtosi_jms.stubs.mri.rir import GetInventoryResponse
from mtosi_jms.stubs.nrb.cri import ResourceStateEnumType, ResourceStateType, SourceEnumType, SourceType
from mtosi_jms.stubs.nrf import invdata
from mtosi_jms.stubs.nrf.com import (
    DirectionalityType,
    EquipmentHolderEnumType,
    EquipmentHolderTypeType,
    HolderStateType,
    ResourceFulfillmentStateEnumType,
)
from mtosi_jms.stubs.nrf.ctp import ConnectionTerminationPointType
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.landing import plan_landing
from mtosi_jms.tables.reader import ObjectReader

TYPES: Final = ("MD", "ME", "EH", "EQ", "PTP", "CTP")
SIZES: Final = (10_000, 100_000, 1_000_000)
PER_ELEMENT: Final = 20
"""Objects of an element: itself, a rack, a shelf, four slots with a card each, three ports with two channels each."""
PER_FILE: Final = 2000
LIMIT: Final = "lxml's parse alone"
_NUMBER: Final = "7777777"


def nested_inventory(*, quick: bool) -> Comparison:
    """Landings of three sizes, read in one process as a worker reads them. The limit is lxml's parse of one of them."""
    load_stubs(())
    lines: list[Line] = []
    limits: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="bench-nested-") as folder:
        for size in (2_000, 10_000) if quick else SIZES:
            landing = Path(folder) / str(size)
            megabytes = land(landing, size) / 1e6
            read = partial(_read, landing, size)
            if not lines:
                read()  # to warm up
            rounds = 1 if size == SIZES[-1] else 3
            lines.append(Line(f"{size:,} objects", "ours", size, megabytes, [_seconds(read) for _ in range(rounds)]))
            if rounds > 1:
                parse = partial(_parse, landing)
                limits.append(Line(LIMIT, "limit", size, megabytes, [_seconds(parse) for _ in range(rounds)]))
    rates = [line.rate for line in lines]
    lines.append(limits[-1])
    for line in lines:
        line.ratio = lines[0].rate / line.rate
    return Comparison(
        "nested",
        f"the nested inventory to rows of {', '.join(TYPES)} in one process, on one core",
        "objects",
        lines,
        rounds=len(lines[0].seconds),
        notes=[
            "seconds are those of the processor, so that what else runs on the machine does not count",
            f"the largest landing's rate is {rates[-1] / rates[0]:.2f} times that of the smallest",
        ],
    )


def _seconds(run: Callable[[], object]) -> float:
    """Return seconds of processor time: reading only waits for files, and other programs must not count."""
    gc.collect()
    started = time.process_time()
    run()
    return time.process_time() - started


def _read(landing: Path, size: int) -> None:
    options = SourceOptions.parse({"path": str(landing), "objectType": ",".join(TYPES)})
    files = plan_landing(options).files
    rows = sum(batch.num_rows for batch in ObjectReader(options, full_schema(options)).read(files))
    if rows != size:
        raise RuntimeError(f"{rows} rows of {size} objects")


def _parse(landing: Path) -> None:
    for file in landing.iterdir():
        etree.fromstring(file.read_bytes())


def land(landing: Path, objects: int) -> int:
    """Write a landing with exactly this number of objects, 2,000 in a file; return its bytes."""
    landing.mkdir()
    before, element, after = _pieces(3, 2)
    _, smaller, _ = _pieces(3, 2, lacking=1)
    size = 0
    files = objects // PER_FILE
    each = PER_FILE // PER_ELEMENT
    for number in range(1, files + 1):
        items = [element.replace(_NUMBER, f"{number * each + index:07d}") for index in range(each - 1)]
        # The domain is an object too, so the last element has one channel less.
        items.append(smaller.replace(_NUMBER, f"{number * each + each - 1:07d}"))
        head = before.replace(f">{_NUMBER}</", f">{number}</").replace(">false</", f">{str(number == files).lower()}</")
        data = f"{head}{''.join(items)}{after}".encode()
        (landing / f"reply-{number:05d}.xml").write_bytes(data)
        size += len(data)
    return size


def _pieces(ports: int, channels: int, lacking: int = 0) -> tuple[str, str, str]:
    """Return an envelope in three pieces: before, in, and after its only element."""
    md = invdata.ManagementDomainInventoryType(
        md_nm="EMS1",
        md_attrs=ManagementDomainType(user_label="North", naming_os="EMS1"),
        me_list=invdata.ManagementDomainInventoryTypeMeList(me_inv=[_element(ports, channels, lacking)]),
    )
    data = invdata.InventoryDataType(md_list=invdata.InventoryDataTypeMdList(md=[md]))
    head = header("getInventory", "RESPONSE", number=int(_NUMBER), last=False)
    text = sent(head, GetInventoryResponse(inventory_data=data)).body.decode()
    tag = text[text.index("<", text.index("meList>")) + 1 :].partition(">")[0]
    start, end = text.index(f"<{tag}>"), text.rindex(f"</{tag}>") + len(tag) + 3
    return text[:start], text[start:end], text[end:]


def _element(ports: int, channels: int, lacking: int) -> invdata.ManagedElementInventoryType:
    attributes = managed_element(int(_NUMBER))
    attributes.name = None
    shelf = _holder("shelf=1", EquipmentHolderEnumType.shelf, [_slot(number) for number in range(1, 5)])
    rack = _holder("rack=1", EquipmentHolderEnumType.rack, [shelf])
    found = [_port(number, channels - (lacking if number == ports else 0)) for number in range(1, ports + 1)]
    return invdata.ManagedElementInventoryType(
        me_nm=f"NE-{_NUMBER}",
        me_attrs=attributes,
        eh_list=invdata.ManagedElementInventoryTypeEhList(eh_inv=[rack]),
        ptp_list=invdata.ManagedElementInventoryTypePtpList(ptp_inv=found),
    )


def _common(label: str) -> dict[str, Any]:
    return {
        "user_label": f"{label} of NE-{_NUMBER}",
        "discovered_name": f"{label}.ne{_NUMBER}.ems1",
        "naming_os": "EMS1",
        "owner": "Network operations",
        "source": SourceType(value=SourceEnumType.NETWORK_ME),
        "resource_state": ResourceStateType(value=ResourceStateEnumType.WORKING),
    }


def _holder(
    short: str, kind: EquipmentHolderEnumType, inside: Sequence[invdata.EquipmentHolderInventoryType]
) -> invdata.EquipmentHolderInventoryType:
    return invdata.EquipmentHolderInventoryType(
        eh_nm=f"/{short}",
        eh_attrs=EquipmentHolderType(
            **_common(short),
            is_reporting_alarms=True,
            holder_type=EquipmentHolderTypeType(value=kind),
            holder_state=HolderStateType.INSTALLED_AND_EXPECTED,
        ),
        eh_list=invdata.EquipmentHolderInventoryTypeEhList(eh_inv=list(inside)) if inside else None,
    )


def _slot(number: int) -> invdata.EquipmentHolderInventoryType:
    slot = _holder(f"rack=1/shelf=1/slot={number}", EquipmentHolderEnumType.slot, [])
    port = name(f"MD=EMS1/ME=NE-{_NUMBER}/PTP=port-{number}")
    slot.eq_inv = invdata.EquipmentInventoryType(
        eq_nm=str(number),
        eq_attrs=EquipmentType(
            **_common(f"card {number}"),
            is_reporting_alarms=True,
            installed_equipment_object_type=f"Card-{number}",
            installed_part_number="PN-0815",
            installed_serial_number=f"SN{_NUMBER}{number}",
            resource_fulfillment_state=ResourceFulfillmentStateEnumType.IN_SERVICE,
            installed_version="3.0",
        ),
        supported_ptp_ref_list=NamingAttributeListType(name=[port]),
    )
    return slot


def _port(number: int, channels: int) -> invdata.PhysicalTerminationPointInventoryType:
    found = [
        invdata.ConnectionTerminationPointInventoryType(
            ctp_nm=f"/sts3c_au4={channel}",
            ctp_attrs=ConnectionTerminationPointType(
                **_common(f"channel {number}.{channel}"), direction=DirectionalityType.D_BIDIRECTIONAL
            ),
        )
        for channel in range(1, channels + 1)
    ]
    return invdata.PhysicalTerminationPointInventoryType(
        ptp_nm=f"port-{number}",
        ptp_attrs=PhysicalTerminationPointType(
            **_common(f"port {number}"), direction=DirectionalityType.D_BIDIRECTIONAL, is_edge_point=number == 1
        ),
        ctp_list=invdata.PhysicalTerminationPointInventoryTypeCtpList(ctp_inv=found),
    )


_WIDTH, _HEIGHT, _LEFT, _BASE, _TOP, _RIGHT = 640, 360, 70, 310, 30, 610
_INK, _QUIET, _FAINT = "#2a78d6", "#888", "#8884"


def svg(lines: Sequence[dict[str, Any]]) -> str:
    """Return the curve of seconds over objects, both logarithmic; the dashed line extrapolates the smallest landing.

    Args:
        lines: our lines, as in the JSON, ordered by size.
    """
    points = [(float(f"{line['per_second'] * line['median_seconds']:.3g}"), line["median_seconds"]) for line in lines]
    (least, quick), (most, slow) = points[0], points[-1]
    low, high = math.floor(math.log10(quick)), math.ceil(math.log10(slow))

    def at(objects: float, seconds: float) -> tuple[float, float]:
        across = math.log10(objects / least) / math.log10(most / least) * (_RIGHT - _LEFT - 70)
        return _LEFT + 30 + across, _BASE - (math.log10(seconds) - low) / (high - low) * (_BASE - _TOP)

    parts = [_text(_LEFT, 16, "seconds of one core", "start"), _text(_RIGHT, _HEIGHT - 8, "objects", "end")]
    for power in range(low, high + 1):
        y = at(least, 10.0**power)[1]
        parts += [_line([(_LEFT, y), (_RIGHT, y)], _FAINT), _text(_LEFT - 8, y + 4, f"{10.0**power:g}", "end")]
    parts.append(_line([at(least, quick), at(most, quick * most / least)], _QUIET, ' stroke-dasharray="5 4"'))
    parts.append(_line([at(*point) for point in points], _INK, ' stroke-width="2"'))
    for objects, seconds in points:
        x, y = at(objects, seconds)
        label = f"{seconds:.{0 if seconds >= 10 else 2}f} s, {objects / seconds:,.0f}/s"
        parts.append(f'<circle fill="{_INK}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        parts.append(_text(x, _BASE + 20, f"{objects:,.0f}", "middle"))
        parts.append(_text(x + 10, y + 16, label, "start") if objects < most else _text(x, y - 12, label, "end"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" '
        'aria-label="Seconds to read the nested inventory, over the number of objects" '
        'font-family="sans-serif" font-size="12" fill="#777">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _line(points: Sequence[tuple[float, float]], colour: str, more: str = "") -> str:
    course = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path fill="none" stroke="{colour}"{more} d="M{course}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def main() -> None:
    """Draw the curve of a run."""
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    (found,) = (benchmark for benchmark in document["benchmarks"] if benchmark["name"] == "nested")
    Path(sys.argv[2]).write_text(svg([line for line in found["lines"] if line["kind"] == "ours"]), encoding="utf-8")


if __name__ == "__main__":
    main()
