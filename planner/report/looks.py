"""What stands for the time of a stage in a drawing of a step: a character, and a colour that only decorates."""

from __future__ import annotations

Look = tuple[str, str]
"""(character, style)."""
IDLE, BUSY_ELSEWHERE, SENDS, CUT = ".", " ", ">", "~"
"""What stands for the time of a stage beside its passes."""
LETTERS = {"F": "0123456789", "B": "abcdefghij", "I": "abcdefghij", "W": "klmnopqrst"}
"""Kind of pass -> what stands for it, by the last digit of its micro-batch."""
KINDS = {"F": "forward", "B": "backward", "I": "backward (input)", "W": "backward (weights)"}
"""Kind of pass -> what it is; its letter stands for it where micro-batches are not told apart."""
STYLES = {"F": "black on bright_cyan", "B": "black on yellow", "I": "black on yellow", "W": "black on bright_green"}
"""Kind of pass -> its colours."""
BY_TURNS, BY_TURNS_STYLE = "*", "white on blue"
"""What stands for passes of several kinds, too short to be told apart, and its colours."""
OTHER_STYLES = {IDLE: "bright_black", SENDS: "magenta", "=": "magenta", "#": "green", "+": "bright_black"}
"""What stands for no pass -> its colours."""
COMMANDS = {
    code: "?"
    for codes in (range(9), range(11, 32), range(127, 160), range(0x202A, 0x202F), range(0x2066, 0x206A))
    for code in codes
}
"""Characters that a terminal, or a page, would obey: commands, and changes of the direction of writing."""
