"""Units at the border: everything inside is bytes, seconds, FLOP and their quotients.

The arithmetic helpers take floats or numpy arrays alike, so that one formula prices one plan or thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

GIB = 2**30
"""[bytes] memory sheets of accelerators mean powers of two."""
KIB = 2**10
"""[bytes] sizes of messages mean powers of two."""
GBYTE = 10**9
"""[bytes] network sheets mean powers of ten."""
GBIT = GBYTE / 8
"""[bytes] a gigabit on a network sheet."""
TFLOPS = 10**12
"""[FLOP/s]"""
MICROSECOND = 1e-6
"""[s]"""
NANOSECOND = 1e-9
"""[s]"""

Bytes: TypeAlias = Any
"""[bytes] a float, or a numpy array where many layouts are priced at once."""
Seconds: TypeAlias = Any
"""[s] a float, or a numpy array where many layouts are priced at once."""


def larger(first: Any, second: Any) -> Any:
    """Return the elementwise maximum of two floats or arrays."""
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return max(first, second)
    import numpy as np

    return np.maximum(first, second)


def smaller(first: Any, second: Any) -> Any:
    """Return the elementwise minimum of two floats or arrays."""
    return -larger(-first, -second)


def logarithm2(value: Any) -> Any:
    """Return the base-2 logarithm of a float or an array."""
    if isinstance(value, (int, float)):
        import math

        return math.log2(value)
    import numpy as np

    return np.log2(value)


def choose(condition: Any, first: Any, second: Any) -> Any:
    """Return `first` where `condition` holds, else `second`; elementwise where it is an array."""
    if isinstance(condition, bool):
        return first if condition else second
    import numpy as np

    return np.where(condition, first, second)


def interpolated(position: Any, points: Sequence[tuple[Any, Any]]) -> Any:
    """Return the value at `position` of the power law between neighbouring (position, value) points, ascending.

    Outside of the points the value is that of the nearest one.
    """
    value = points[0][1]
    for (left, low), (right, high) in pairwise(points):
        share = smaller(1.0, larger(0.0, logarithm2(position / left) / logarithm2(right / left)))
        value = choose(position > left, low * (high / low) ** share, value)
    return value
