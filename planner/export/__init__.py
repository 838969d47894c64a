"""What plans are written for, one target a file; a new one is a file and a row of EXPORTERS."""

from planner.errors import SpecError
from planner.export.base import Exporter
from planner.export.hostfile import HOSTFILE
from planner.export.rank_table import RANK_TABLE

EXPORTERS: tuple[Exporter, ...] = (RANK_TABLE, HOSTFILE)


def exporter(name: str) -> Exporter:
    """Return the target called `name`.

    Raises:
        SpecError: there is none.

    """
    for one in EXPORTERS:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in EXPORTERS)
    raise SpecError.of("--to", f"is {name!r}, which is no target; choose one of {known}")


__all__ = ["EXPORTERS", "Exporter", "exporter"]
