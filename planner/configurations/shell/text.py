"""Text of which every character knows where it stands in the file, wherever a script moves it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

UNKNOWN = "\x00"
"""A character that stands for text that only a run of the script would tell."""
BLANKS = " \t\r\n"
"""What separates words; to the shell other blanks, such as those without a break, are letters."""
MAYBE = "\x01"
"""A character in front of a word that is there only under a condition that was not evaluated."""


@dataclass(frozen=True, slots=True)
class Text:
    """Characters and the (line, column) of each, counted from 1."""

    chars: str = ""
    at: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, chars: str) -> Text:
        """Return the text of a whole file."""
        at, line, column = [], 1, 1
        for char in chars:
            at.append((line, column))
            line, column = (line + 1, 1) if char == "\n" else (line, column + 1)
        return cls(chars, tuple(at))

    @classmethod
    def made(cls, chars: str, spot: tuple[int, int]) -> Text:
        """Return text that stands nowhere itself, but comes from what stands at `spot`."""
        return cls(chars, (spot,) * len(chars))

    @classmethod
    def joined(cls, parts: Iterable[Text]) -> Text:
        """Return several texts after one another."""
        listed = tuple(parts)
        return cls("".join(part.chars for part in listed), tuple(spot for part in listed for spot in part.at))

    def __getitem__(self, part: slice) -> Text:
        """Return a part."""
        return Text(self.chars[part], self.at[part])

    @property
    def spot(self) -> tuple[int, int]:
        """Where it begins; (0, 0) if it is empty."""
        return self.at[0] if self.at else (0, 0)

    @property
    def is_known(self) -> bool:
        """Whether all of it is written."""
        return UNKNOWN not in self.chars

    def words(self) -> list[Text]:
        """Return what blanks separate."""
        found, begin = [], None
        for index, char in enumerate(self.chars):
            if char not in BLANKS:
                begin = index if begin is None else begin
            elif begin is not None:
                found.append(self[begin:index])
                begin = None
        return found if begin is None else [*found, self[begin:]]
