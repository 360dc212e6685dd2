"""Numbers of 128 bits, CORBA's long double, to doubles and back."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Final

_BIAS: Final = 16383
_MANTISSA: Final = 112


def to_quad(number: float) -> bytes:
    """A double as IEEE 754 of 128 bits, which can hold every double."""
    bits = int.from_bytes(struct.pack(">d", number))
    sign, exponent, fraction = bits >> 63, bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    if exponent == 0x7FF:
        exponent = 0x7FFF
    elif exponent == 0 and fraction:
        shift = 53 - fraction.bit_length()
        exponent, fraction = _BIAS - 1022 - shift, fraction << shift & (1 << 52) - 1
    elif exponent:
        exponent += _BIAS - 1023
    return (sign << 127 | exponent << _MANTISSA | fraction << _MANTISSA - 52).to_bytes(16)


def from_quad(octets: bytes) -> float:
    """The double nearest to a number of 128 bits; infinite beyond the range."""
    bits = int.from_bytes(octets)
    exponent, fraction = bits >> _MANTISSA & 0x7FFF, bits & (1 << _MANTISSA) - 1
    if exponent == 0x7FFF:
        size = float("nan") if fraction else float("inf")
    elif exponent - _BIAS > 1024:
        size = float("inf")
    elif exponent - _BIAS < -1100:
        size = 0.0
    else:
        try:
            size = float(Fraction(fraction | 1 << _MANTISSA) * Fraction(2) ** (exponent - _BIAS - _MANTISSA))
        except OverflowError:
            size = float("inf")
    return -size if bits >> 127 else size
