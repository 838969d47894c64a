"""Messages in the wire format of Protocol Buffers, as far as traces need it.

Source: "Encoding" of the Protocol Buffers documentation: a field is a varint of number and wire type, then a varint, or
a length and as many bytes; numbers below zero are 64 bits wide; fields that have their default are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

VARINT, BYTES = 0, 2
"""Wire types."""


def varint(number: int) -> bytes:
    """Return a number seven bits a byte, the lowest first."""
    number &= 2**64 - 1
    written = bytearray()
    while number > 0x7F:
        written.append(0x80 | number & 0x7F)
        number >>= 7
    written.append(number)
    return bytes(written)


def integer(field: int, number: int) -> bytes:
    """Return a field that holds a whole number or an enumerated value; nothing if it is zero."""
    return always(field, number) if number else b""


def always(field: int, number: int) -> bytes:
    """Return the same, a zero too, as in a oneof."""
    return varint(field << 3 | VARINT) + varint(number)


def packed(field: int, numbers: Iterable[int]) -> bytes:
    """Return a repeated field of whole numbers; nothing if there are none."""
    return nested(field, b"".join(map(varint, numbers)))


def text(field: int, value: str) -> bytes:
    """Return a field that holds text; nothing if it is empty."""
    return nested(field, value.encode())


def nested(field: int, message: bytes) -> bytes:
    """Return a field that holds a message or bytes; nothing if these are empty."""
    return varint(field << 3 | BYTES) + varint(len(message)) + message if message else b""


def delimited(message: bytes) -> bytes:
    """Return a message behind its length, as in a file of several."""
    return varint(len(message)) + message
