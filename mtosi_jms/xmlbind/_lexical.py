"""Lexical forms of the XSD built-in types: text to Python value and back.

`parse_x` raises ValueError for text that is not in the lexical space; `format_x` writes the form that we use.
Dates must have the forms of XML Schema; Python's ISO 8601 parser, which accepts others, is not used.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation

from mtosi_jms.errors import ConfigError

_ZONE = r"(Z|[+-]\d\d:\d\d)?"
_DATE = r"(-?\d{4,})-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d):(\d\d)(?:\.(\d+))?"
_DATE_TIME_RE = re.compile(f"{_DATE}T{_TIME}{_ZONE}", re.ASCII)
_DATE_RE = re.compile(f"{_DATE}{_ZONE}", re.ASCII)
_TIME_RE = re.compile(f"{_TIME}{_ZONE}", re.ASCII)
_DURATION_RE = re.compile(
    r"(-)?P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_INTEGER_RE = re.compile(r"[+-]?\d+", re.ASCII)
_DECIMAL_RE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_FLOAT_RE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|-?INF|NaN", re.ASCII)
_BASE64_RE = re.compile(r"[A-Za-z0-9+/=\s]*", re.ASCII)
_NO_MARKS = str.maketrans("", "", "-:T")
_ITU_RE = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.(\d+))?(Z|[+-]\d{4})?", re.ASCII)
_LOOSE_ZONE_RE = re.compile(r"([^T\n]*T.*)([+-]\d\d)(\d\d)", re.ASCII)
_EPOCH_RE = re.compile(r"\d{10}(?:\d{3})?", re.ASCII)
_FARTHEST_ZONE = 14 * 60
_LONGEST_DURATION = 80
_STARTS = ((1696, 9), (1697, 2), (1903, 3), (1903, 7))
_EXACT = Context(prec=100)  # the 28 digits of Decimal's default context would round some durations


_MOMENT_RE = re.compile(
    r"(?:(?P<year>-?\d{4,})(?:-(?P<month>\d\d))?(?:-(?P<day>\d\d))?|--(?P<month2>\d\d)(?:--|-(?P<day2>\d\d))?"
    r"|---(?P<day3>\d\d))?T?(?:(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:\.\d+)?))?"
    r"(?P<zone>Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)
_LEAP_YEAR = 1972


class Moment:
    """The time of a date, a time or a part of one, for comparisons only.

    If only one of two moments has a time zone and they are within 14 hours of each other, neither is less.
    """

    __slots__ = ("_seconds", "_text", "_zoned")

    def __init__(self, text: str) -> None:
        """Read a text in any form of XML Schema. Raises ValueError: the text has none of these forms."""
        match = _MOMENT_RE.fullmatch(text)
        if not match:
            raise ValueError("not a date, a time or a part of one")
        found = match.groupdict()
        month = int(found["month"] or found["month2"] or 1)
        day = int(found["day"] or found["day2"] or found["day3"] or 1)
        days = _days(int(found["year"] or _LEAP_YEAR), month, day)
        minutes = (days * 24 + int(found["hour"] or 0)) * 60 + int(found["minute"] or 0)
        offset = (_zone(found["zone"]) or dt.UTC).utcoffset(None) or dt.timedelta(0)
        self._text = text
        self._zoned = found["zone"] is not None
        self._seconds = Decimal(minutes * 60) - offset // dt.timedelta(seconds=1) + Decimal(found["second"] or 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moment) and (self._seconds, self._zoned) == (other._seconds, other._zoned)

    def __hash__(self) -> int:
        return hash((self._seconds, self._zoned))

    def __lt__(self, other: Moment) -> bool:
        apart = 0 if self._zoned == other._zoned else _FARTHEST_ZONE * 60
        return self._seconds + apart < other._seconds

    def __le__(self, other: Moment) -> bool:
        return self < other or self == other

    def __gt__(self, other: Moment) -> bool:
        return other < self

    def __ge__(self, other: Moment) -> bool:
        return other <= self

    def __str__(self) -> str:
        return self._text


def _span(year: int, month: int, months: int) -> int:
    """Return the number of days in some months, from the first day of a month on."""
    years, last = divmod(month - 1 + months, 12)
    return _days(year + years, last + 1, 1) - _days(year, month, 1)


def _days(year: int, month: int, day: int) -> int:
    """Return the number of days since a fixed day, in the proleptic Gregorian calendar."""
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day


@dataclass(frozen=True, slots=True)
class Duration:
    """An xsd:duration. Months and seconds cannot be converted into each other, so it has both.

    A duration is less than another only if it is for months of any length: `P1M` is neither less nor more than `P30D`.

    Attributes:
        months: years and months, in months.
        seconds: days, hours, minutes and seconds, in seconds.
    """

    months: int = 0
    seconds: Decimal = Decimal(0)

    def __lt__(self, other: Duration) -> bool:
        return all(one < two for one, two in zip(self._lengths(), other._lengths(), strict=True))

    def __le__(self, other: Duration) -> bool:
        return all(one <= two for one, two in zip(self._lengths(), other._lengths(), strict=True))

    def __gt__(self, other: Duration) -> bool:
        return other < self

    def __ge__(self, other: Duration) -> bool:
        return other <= self

    def _lengths(self) -> list[Decimal]:
        """Return the duration in seconds from each of the four days with which XML Schema compares durations."""
        return [_EXACT.add(self.seconds, 86400 * _span(*start, self.months)) for start in _STARTS]

    def to_timedelta(self) -> dt.timedelta:
        """Return the duration as a timedelta. Raises ConfigError: the duration has months, which have no fixed length,
        or is too long for a timedelta."""
        if self.months:
            raise ConfigError("a duration with years or months has no fixed length")
        seconds: object = self.seconds
        if not isinstance(seconds, (int, Decimal)):
            raise ConfigError(f"a number of seconds is needed, not {type(seconds).__name__}")
        try:
            return dt.timedelta(microseconds=int(self.seconds * 1_000_000))
        except (ArithmeticError, ValueError):
            raise ConfigError(f"{self.seconds!r:.60} seconds are more than a timedelta holds, or no number") from None

    def __str__(self) -> str:
        try:
            return format_duration(self)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ConfigError(f"no duration: {error}") from None


def parse_boolean(text: str) -> bool:
    try:
        return {"true": True, "1": True, "false": False, "0": False}[text]
    except KeyError:
        raise ValueError("not a boolean: true, false, 1 or 0") from None


def format_boolean(value: bool) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    raise TypeError(f"a bool is needed, not {type(value).__name__}")


def parse_integer(text: str) -> int:
    """Decimal digits with an optional sign; Python's underscores and spaces are not allowed."""
    if not _INTEGER_RE.fullmatch(text) or len(text) > 4000:
        raise ValueError("not an integer")
    return int(text)


def format_integer(value: int) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"an int is needed, not {type(value).__name__}")
    return str(int(value))


def parse_decimal(text: str) -> Decimal:
    """A decimal number; trailing zeros are kept."""
    if not _DECIMAL_RE.fullmatch(text):
        raise ValueError("not a decimal number")
    return Decimal(text)


def format_decimal(value: Decimal | int) -> str:
    """Plain notation, never an exponent."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int):
        raise TypeError(f"a Decimal is needed, not {type(value).__name__}")
    try:
        number = Decimal(value)
        if not number.is_finite():
            raise ValueError("a finite decimal is needed")
        return format(number, "f")
    except InvalidOperation as error:
        raise ValueError(str(error)) from None


def parse_float(text: str) -> float:
    """A floating-point number, `INF`, `-INF` or `NaN`."""
    if not _FLOAT_RE.fullmatch(text):
        raise ValueError("not a floating-point number")
    return float(text.replace("INF", "inf").replace("NaN", "nan"))


def format_float(value: float) -> str:
    """Shortest form that reads back equal."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        raise TypeError(f"a float is needed, not {type(value).__name__}")
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return repr(float(value))


def _zone(text: str | None) -> dt.tzinfo | None:
    if not text:
        return None
    if text == "Z":
        return dt.UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > 14 or minutes > 59 or (hours == 14 and minutes):
        raise ValueError("a time zone is at most 14:00 from UTC")
    offset = dt.timedelta(hours=hours, minutes=minutes)
    return dt.timezone(-offset if text[0] == "-" else offset)


def _is_midnight(hour: str, minute: str, second: str, fraction: str | None) -> bool:
    """Whether a time is 24:00:00, the end of its day."""
    return hour == "24" and minute == second == "00" and not (fraction or "").strip("0")


def _micros(fraction: str | None) -> int:
    return int(fraction[:6].ljust(6, "0")) if fraction else 0


def parse_date_time(text: str) -> dt.datetime:
    """`2026-11-20T17:30:00Z`; digits beyond microseconds are cut off, 24:00:00 is midnight of the next day."""
    match = _DATE_TIME_RE.fullmatch(text)
    if not match:
        raise ValueError("not a dateTime of the form yyyy-mm-ddThh:mm:ss")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    midnight = _is_midnight(hour, minute, second, fraction)
    clock = (0 if midnight else int(hour), int(minute), int(second), _micros(fraction))
    try:
        value = dt.datetime(int(year), int(month), int(day), *clock, _zone(zone))
        return value + dt.timedelta(days=1) if midnight else value
    except OverflowError:
        raise ValueError(f"Python has no year {year[:12]}") from None


def parse_itu_time(text: str) -> dt.datetime:
    """`20261120173000.0Z`, with or without fraction and zone."""
    match = _ITU_RE.fullmatch(text)
    if not match:
        raise ValueError("not a time of the form yyyymmddhhmmss.s")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, zone = match.groups()[6:]
    return dt.datetime(year, month, day, hour, minute, second, _micros(fraction), _zone(zone))


def format_itu_time(value: dt.datetime) -> str:
    """The ITU form with `Z` for UTC, and with as many digits of the second as there are, at least one."""
    iso = format_date_time(value)
    fraction, zone = f"{value.microsecond:06d}".rstrip("0") or "0", iso[19:].lstrip(".0123456789").replace(":", "")
    return f"{iso[:19].translate(_NO_MARKS)}.{fraction}{zone}"


def parse_loose_date_time(text: str) -> dt.datetime:
    """Other forms that real systems send: ITU text, a zone without colon, seconds or milliseconds since 1970 (C03).
    Raises ValueError: the text has none of these forms."""
    if _ITU_RE.fullmatch(text):
        return parse_itu_time(text)
    if match := _LOOSE_ZONE_RE.fullmatch(text):
        return parse_date_time(f"{match.group(1)}{match.group(2)}:{match.group(3)}")
    if _EPOCH_RE.fullmatch(text):
        seconds = int(text) / (1000 if len(text) == 13 else 1)
        return dt.datetime.fromtimestamp(seconds, dt.UTC)
    raise ValueError("not a dateTime")


def _zone_text(value: dt.datetime | dt.time) -> str:
    offset = value.utcoffset()
    if offset is None:
        if value.tzinfo is not None:
            raise ValueError("a time zone that changes with the date cannot be written without the date")
        return ""
    if not offset:
        return "Z"
    minutes, rest = divmod(abs(offset), dt.timedelta(minutes=1))
    if rest or minutes > _FARTHEST_ZONE:
        raise ValueError("a time zone is whole minutes, at most 14:00 from UTC")
    return f"{'-' if offset < dt.timedelta(0) else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def format_date_time(value: dt.datetime) -> str:
    """ISO form with `Z` for UTC, and with a fraction only if there is one."""
    if not isinstance(value, dt.datetime):
        raise TypeError(f"a datetime is needed, not {type(value).__name__}")
    if type(value) is dt.datetime and value.tzinfo is dt.UTC:  # as nearly all are
        bare, zone = value.isoformat()[:-6], "Z"
    else:
        bare, zone = value.replace(tzinfo=None).isoformat(), _zone_text(value)
    return f"{bare.rstrip('0') if value.microsecond else bare}{zone}"


def parse_date(text: str) -> dt.date:
    """`2026-11-20`; a time zone is checked but not part of the value."""
    match = _DATE_RE.fullmatch(text)
    if not match:
        raise ValueError("not a date of the form yyyy-mm-dd")
    year, month, day, zone = match.groups()
    _zone(zone)
    try:
        return dt.date(int(year), int(month), int(day))
    except OverflowError:
        raise ValueError(f"Python has no year {year[:12]}") from None


def format_date(value: dt.date) -> str:
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise TypeError(f"a date is needed, not {type(value).__name__}")
    return value.isoformat()


def parse_time(text: str) -> dt.time:
    """`17:30:00Z`; 24:00:00 is midnight."""
    match = _TIME_RE.fullmatch(text)
    if not match:
        raise ValueError("not a time of the form hh:mm:ss")
    hour, minute, second, fraction, zone = match.groups()
    if _is_midnight(hour, minute, second, fraction):
        hour = "00"
    return dt.time(int(hour), int(minute), int(second), _micros(fraction), _zone(zone))


def format_time(value: dt.time) -> str:
    """ISO form with `Z` for UTC."""
    if not isinstance(value, dt.time):
        raise TypeError(f"a time is needed, not {type(value).__name__}")
    bare = value.replace(tzinfo=None).isoformat()
    return (bare.rstrip("0") if value.microsecond else bare) + _zone_text(value)


def parse_duration(text: str) -> Duration:
    """`P1Y2M3DT4H5M6.7S`, with an optional minus sign."""
    match = _DURATION_RE.fullmatch(text)
    if not match:
        raise ValueError("not a duration of the form PnYnMnDTnHnMnS")
    if len(text) > _LONGEST_DURATION:
        raise ValueError("too long for a duration")
    negative = match.group(1) is not None
    years, months, days, hours, minutes = (int(part or 0) for part in match.groups()[1:6])
    seconds = _EXACT.add(Decimal(match.group(7) or 0), 60 * (minutes + 60 * (hours + 24 * days)))
    whole = 12 * years + months
    return Duration(-whole, seconds.copy_negate()) if negative else Duration(whole, seconds)


def format_duration(value: Duration | dt.timedelta) -> str:
    if isinstance(value, dt.timedelta):
        value = Duration(0, Decimal(value // dt.timedelta(microseconds=1)) / 1_000_000)
    if not isinstance(value, Duration):
        raise TypeError(f"a Duration is needed, not {type(value).__name__}")
    if (value.months < 0 < value.seconds) or (value.seconds < 0 < value.months):
        raise ValueError("months and seconds of a duration need the same sign")
    years, months = divmod(abs(value.months), 12)
    try:
        whole, seconds = _EXACT.divmod(Decimal(value.seconds).copy_abs(), 60)
    except InvalidOperation:
        raise ValueError("not a number of seconds that a duration can hold") from None
    hours, minutes = divmod(int(whole), 60)
    days, hours = divmod(hours, 24)
    date = "".join(f"{number}{unit}" for number, unit in ((years, "Y"), (months, "M"), (days, "D")) if number)
    second_text = format(_EXACT.normalize(seconds), "f") if seconds else ""
    time = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (second_text, "S")) if number)
    sign = "-" if value.months < 0 or value.seconds < 0 else ""
    return f"{sign}P{date}{'T' + time if time else ''}" if date or time else "PT0S"


def _check_bytes(value: object) -> None:
    if not isinstance(value, (bytes, bytearray)):
        raise TypeError(f"bytes are needed, not {type(value).__name__}")


def parse_base64(text: str) -> bytes:
    if not _BASE64_RE.fullmatch(text):
        raise ValueError("not base64")
    return base64.b64decode("".join(text.split()), validate=True)


def format_base64(value: bytes) -> str:
    """Base64 without line breaks."""
    _check_bytes(value)
    return base64.b64encode(value).decode("ascii")


def parse_hex(text: str) -> bytes:
    if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", text):
        raise ValueError("not hexadecimal")
    return bytes.fromhex(text)


def format_hex(value: bytes) -> str:
    """Upper-case hexadecimal, the canonical form."""
    _check_bytes(value)
    return value.hex().upper()


def parse_string(text: str) -> str:
    return text


def format_string(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a str is needed, not {type(value).__name__}")
    return str(value)
