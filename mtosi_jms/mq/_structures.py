"""The structures MQMD and MQRFH2 as octets: fields of fixed length, and folders of names and values.

Numbers stand in the byte order that the structure before names (`Encoding`), texts in the character set that it names
(`CodedCharSetId`). A file that begins with an MQRFH2 tells its byte order by its version, which is 2.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, get_args

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import MqFormatError

ByteOrder: TypeAlias = Literal["big", "little"]

CHARACTER_SETS: Final = {1208: "utf-8", 1200: "utf-16", 13488: "utf-16", 17584: "utf-16", 819: "latin-1"}
"""The numbers of the character sets that are read and written; UTF-16 is in the byte order of the numbers."""
FORMAT_NONE: Final = ""
FORMAT_STRING: Final = "MQSTR"
FORMAT_RFH2: Final = "MQHRF2"
FORMAT_DEAD: Final = "MQDEAD"
NATIVE_BIG: Final = 273
NATIVE_LITTLE: Final = 546
_SIGN: Final[dict[ByteOrder, str]] = {"big": ">", "little": "<"}
_INTEGERS: Final[dict[int, ByteOrder]] = {0x1: "big", 0x2: "little"}
_OF_THE_MQMD: Final = 0
_INHERIT: Final = -2
_MOST: Final = BOUNDS.folder_bytes
"""Largest MQRFH2, octets."""


def order_of(encoding: int, offset: int) -> ByteOrder:
    """The byte order of numbers that an `Encoding` names. Raises MqFormatError: it names none."""
    found = _INTEGERS.get(encoding & 0xF)
    if found is None:
        raise MqFormatError(f"Encoding {encoding} names no byte order", offset)
    return found


def encoding_of(order: ByteOrder) -> int:
    """The `Encoding` of numbers in this byte order, IEEE floating point."""
    return NATIVE_BIG if order == "big" else NATIVE_LITTLE


def codec_of(ccsid: int, order: ByteOrder, offset: int) -> str:
    """Python's name of a character set. Raises MqFormatError: it is none of `CHARACTER_SETS`."""
    found = CHARACTER_SETS.get(ccsid)
    if found is None:
        known = ", ".join(map(str, CHARACTER_SETS))
        raise MqFormatError(f"CodedCharSetId {ccsid} is not known; {known} are", offset)
    return found if found != "utf-16" else "utf-16-be" if order == "big" else "utf-16-le"


def inherited(ccsid: int, before: int) -> int:
    """The character set of what follows a structure: its own number, or where that inherits, the one before."""
    return before if ccsid in (_INHERIT, _OF_THE_MQMD) else ccsid


def _text(octets: bytes) -> str:
    """A field of characters, without the blanks and nulls at its end."""
    return octets.decode("latin-1").rstrip("\0 ")


def _field(length: int, text: str = "") -> Any:
    return field(default=text, metadata={"format": f"{length}s"})


def _number(value: int = 0) -> Any:
    return field(default=value, metadata={"format": "i"})


def _octets(length: int) -> Any:
    return field(default=b"\0" * length, metadata={"format": f"{length}s"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqmd:
    """A message descriptor, version 2; one of version 1 has the defaults in its last five fields.

    The attributes are the fields of the structure, by their names in IBM's documentation, in Python's spelling.
    """

    report: int = _number()
    msg_type: int = _number(8)
    expiry: int = _number(-1)
    feedback: int = _number()
    encoding: int = _number(NATIVE_BIG)
    coded_char_set_id: int = _number(1208)
    format: str = _field(8)
    priority: int = _number(-1)
    persistence: int = _number(2)
    msg_id: bytes = _octets(24)
    correl_id: bytes = _octets(24)
    backout_count: int = _number()
    reply_to_q: str = _field(48)
    reply_to_q_mgr: str = _field(48)
    user_identifier: str = _field(12)
    accounting_token: bytes = _octets(32)
    appl_identity_data: str = _field(32)
    put_appl_type: int = _number()
    put_appl_name: str = _field(28)
    put_date: str = _field(8)
    put_time: str = _field(8)
    appl_origin_data: str = _field(4)
    group_id: bytes = _octets(24)
    msg_seq_number: int = _number(1)
    offset: int = _number()
    msg_flags: int = _number()
    original_length: int = _number(-1)

    ID: ClassVar = b"MD  "
    LENGTHS: ClassVar = {1: 324, 2: 364}

    @classmethod
    def read(cls, data: bytes) -> tuple[Self, int]:
        """The descriptor at the beginning of `data`, and its length; its own numbers tell their order by the version.
        Raises MqFormatError: it ends early, or has another version."""
        version, order = _version(data, 4, cls.LENGTHS)
        length = cls.LENGTHS[version]
        if len(data) < length:
            raise MqFormatError(f"an MQMD of version {version} has {length} octets; {len(data)} are there", 0)
        parts = fields(cls) if version == 2 else fields(cls)[:-5]
        layout = _SIGN[order] + "".join(one.metadata["format"] for one in parts)
        values = struct.unpack(layout, data[8:length])
        read: dict[str, Any] = dict(zip((one.name for one in parts), values, strict=True))
        texts = {one.name: _text(read[one.name]) for one in parts if one.type == "str"}
        return cls(**{**read, **texts}), length

    def write(self, order: ByteOrder) -> bytes:
        """The octets. Raises MqFormatError: a text that is too long for its field, or is not in Latin-1."""
        layout, values = _SIGN[order], []
        for one in fields(self):
            layout += one.metadata["format"]
            value = getattr(self, one.name)
            values.append(_padded(one.name, value, one.metadata["format"]) if isinstance(value, str) else value)
        return self.ID + struct.pack(f"{_SIGN[order]}i", 2) + struct.pack(layout, *values)


def _padded(name: str, text: str, layout: str) -> bytes:
    length = int(layout[:-1])
    try:
        octets = text.encode("latin-1")
    except UnicodeEncodeError:
        raise MqFormatError(f"{name}: the field takes Latin-1", 0) from None
    if len(octets) > length:
        raise MqFormatError(f"{name}: {len(octets)} octets in a field of {length}", 0)
    return octets.ljust(length)


def _version(data: bytes, offset: int, known: Collection[int], start: int = 0) -> tuple[int, ByteOrder]:
    """The version of a structure and its byte order, which its version tells. Raises MqFormatError: in no byte order is
    it a version that is known."""
    octets = data[offset : offset + 4]
    for order in get_args(ByteOrder):
        version = int.from_bytes(octets, order)
        if len(octets) == 4 and version in known:
            return version, order
    raise MqFormatError(f"version {octets.hex()} is not known", start + offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rfh2:
    """An MQRFH2 of version 2.

    Attributes:
        encoding: of what follows.
        coded_char_set_id: of what follows.
        format: of what follows: `MQSTR` text, `MQHRF2` another MQRFH2, empty: octets.
        flags: none are defined.
        folders: the texts of the folders in their order, XML without a single root.
        name_value_ccsid: the character set of the folders.
    """

    encoding: int = NATIVE_BIG
    coded_char_set_id: int = 1208
    format: str = FORMAT_NONE
    flags: int = 0
    folders: tuple[str, ...] = ()
    name_value_ccsid: int = 1208
    order: ByteOrder = "big"

    ID: ClassVar = b"RFH "
    FIXED: ClassVar = 36

    @classmethod
    def read(cls, data: bytes, start: int, order: ByteOrder | None) -> tuple[Self, int]:
        """The MQRFH2 at an offset, and where it ends. `order`: the byte order that the structure before named; None:
        none came before. Raises MqFormatError: lengths that do not add up, another version, a character set that is not
        known, or folders that are not in it."""
        head = data[start : start + cls.FIXED]
        if len(head) < cls.FIXED or head[:4] != cls.ID:
            raise MqFormatError("an MQRFH2 was announced and is not there", start)
        _, found = _version(head, 4, (2,), start)
        order = order or found
        if order != found:
            raise MqFormatError(f"the numbers are {found}-endian; the structure before names another order", start + 4)
        _, length, encoding, ccsid, name, flags, names = struct.unpack(f"{_SIGN[order]}iiii8sii", head[4:])
        end = start + length
        if length < cls.FIXED or length % 4 or length > _MOST or end > len(data):
            raise MqFormatError(f"a StrucLength of {length} in {len(data) - start} octets", start + 8)
        codec = codec_of(names, order, start + 32)
        folders, at = [], start + cls.FIXED
        while at < end:
            if at + 4 > end:
                raise MqFormatError("a folder's length is cut off", at)
            (size,) = struct.unpack(f"{_SIGN[order]}i", data[at : at + 4])
            if size < 0 or size % 4 or at + 4 + size > end:
                raise MqFormatError(f"a folder of {size} octets where {end - at - 4} are left", at)
            try:
                folders.append(data[at + 4 : at + 4 + size].decode(codec).rstrip("\0 "))
            except UnicodeDecodeError as error:
                raise MqFormatError(f"a folder is not in CCSID {names}", at + 4 + error.start) from None
            at += 4 + size
        read = cls(
            encoding=encoding,
            coded_char_set_id=ccsid,
            format=_text(name),
            flags=flags,
            folders=tuple(folders),
            name_value_ccsid=names,
            order=order,
        )
        return read, end

    def write(self) -> bytes:
        """The octets. Raises MqFormatError: a folder that its character set does not have, or more than 64 MiB."""
        sign, codec = _SIGN[self.order], codec_of(self.name_value_ccsid, self.order, 0)
        rest = b""
        for folder in self.folders:
            try:
                octets = folder.encode(codec)
            except UnicodeEncodeError:
                raise MqFormatError(f"a folder does not fit CCSID {self.name_value_ccsid}", 0) from None
            blank = " ".encode(codec)
            octets += blank * (-len(octets) % 4 // len(blank))
            rest += struct.pack(f"{sign}i", len(octets)) + octets
        length = self.FIXED + len(rest)
        if length > _MOST:
            raise MqFormatError(f"folders of {len(rest)} octets", 0)
        name = _padded("format", self.format, "8s")
        numbers = (2, length, self.encoding, self.coded_char_set_id, name, self.flags, self.name_value_ccsid)
        return self.ID + struct.pack(f"{sign}iiii8sii", *numbers) + rest


@dataclass(frozen=True, slots=True)
class Header:
    """A header of MQ whose content JMS does not have, but for the reason of a dead letter.

    Attributes:
        encoding: of what follows.
        coded_char_set_id: of what follows.
        format: of what follows.
        reason: why the message is a dead letter, an MQRC or MQFB; None in other headers.
    """

    encoding: int
    coded_char_set_id: int
    format: str
    reason: int | None
    order: ByteOrder

    @classmethod
    def read(cls, data: bytes, start: int, name: str, order: ByteOrder | None) -> tuple[Self, int]:
        """The header at an offset, and where it ends. `name`: the format that the structure before names, one of
        `HEADERS`. `order`: the byte order that the structure before named; None: none came before. Raises
        MqFormatError: another structure, another version, or a length that does not add up; it names the format."""
        known = HEADERS[name]
        try:
            if data[start : start + 4] != known.ID:
                raise MqFormatError(f"a structure of format {name} was announced and is not there", start)
            version, found = _version(data[start : start + 8], 4, known.LENGTHS, start)
            order = order or found
            length = known.LENGTHS[version]
            if length is None and len(data) >= start + 12:
                (length,) = struct.unpack_from(f"{_SIGN[order]}i", data, start + 8)
            if order != found:
                raise MqFormatError(
                    f"the numbers are {found}-endian; the structure before names another order", start + 4
                )
            if length is None or length < known.AT + 16 or start + length > len(data):
                raise MqFormatError(f"a length of {length} in {len(data) - start} octets", start + 8)
            encoding, ccsid, following = struct.unpack_from(f"{_SIGN[order]}ii8s", data, start + known.AT)
            reason = struct.unpack_from(f"{_SIGN[order]}i", data, start + 8)[0] if name == FORMAT_DEAD else None
        except MqFormatError as error:
            raise MqFormatError(f"{name}: {error.message}", error.offset) from None
        return cls(encoding, ccsid, _text(following), reason, order), start + length


class _Known(NamedTuple):
    """How a header is laid out. `ID`: what it begins with. `LENGTHS`: its length by version; None: its third field says
    it. `AT`: where Encoding, CodedCharSetId and Format of what follows stand."""

    ID: bytes
    LENGTHS: Mapping[int, int | None]
    AT: int


HEADERS: Final = {
    FORMAT_DEAD: _Known(b"DLH ", {1: 172}, 108),
    "MQCICS": _Known(b"CIH ", {1: None, 2: None}, 12),
    "MQIMS": _Known(b"IIH ", {1: None}, 12),
    "MQHWIH": _Known(b"WIH ", {1: None}, 12),
    "MQHRF": _Known(b"RFH ", {1: None}, 12),
    "MQHMDE": _Known(b"MDE ", {2: None}, 12),
    "MQHREF": _Known(b"RMH ", {1: None}, 12),
    "MQHDIST": _Known(b"DH  ", {1: None}, 12),
    "MQHEPH": _Known(b"EPH ", {1: None}, 12),
}
"""The headers that are stepped over, by the format that announces them."""
BODIES: Final = frozenset(
    {FORMAT_STRING, "MQADMIN", "MQCHCOM", "MQCMD1", "MQCMD2", "MQEVENT", "MQIMSVS", "MQPCF", "MQTRIG"}
)
"""The formats of MQ that are bodies, not headers."""
