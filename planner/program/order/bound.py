"""What no order of the passes can beat: by the work of a rank, by its way there and back, and by its room."""

from __future__ import annotations

from planner.program.order.shop import Shop


def least_step(shop: Shop) -> int:
    """Return [ns] below which no step lies, whatever the order.

    With head_r the time until a micro-batch can be at rank r, back_s that from the end of I on stage s to the end of
    the step (through the stages before it, the W and the exchange of the last one), and trip_s that from the beginning
    of F to the end of W on stage s, through all stages behind it, the largest over the ranks r of

        head_r + M sum_{s on r} (F_s + I_s + W_s) + sync_r
        head_r + M sum_{s on r} (F_s + I_s) + back of r's first stage
        head_r + ceil(M sum_{s on r} n_s trip_s / room_r) + sync_r

    The last one is a matter of area: every micro-batch takes n_s of the room for trip_s at least.
    """
    count, bound = shop.num_microbatches, 0
    heads, trips, backs = _heads(shop), _trips(shop), _backs(shop)
    for rank, sync in enumerate(shop.sync):
        own = shop.hosted(rank)
        head = min(heads[stage] for stage in own)
        work = count * sum(sum(shop.times[stage]) for stage in own)
        chains = count * sum(sum(shop.times[stage][:2]) for stage in own)
        area = count * sum(shop.sizes[stage] * trips[stage] for stage in own)
        bound = max(
            bound,
            head + max(work, -(-area // shop.room[rank])) + sync,
            head + chains + min(backs[stage] for stage in own),
        )
    return bound


def _heads(shop: Shop) -> list[int]:
    """Return [ns] at which the first micro-batch can be at each virtual stage."""
    heads = [0]
    for stage, (forward, _, _) in enumerate(shop.times[:-1]):
        heads.append(heads[-1] + forward + shop.hop(stage, stage + 1))
    return heads


def _trips(shop: Shop) -> list[int]:
    """Return [ns] from the beginning of F to the end of W, on each virtual stage."""
    trips, beyond = [], 0
    for stage in range(len(shop.times) - 1, -1, -1):
        forward, inputs, weights = shop.times[stage]
        trips.append(forward + beyond + inputs + weights)
        if stage:
            beyond += forward + inputs + shop.hop(stage - 1, stage) + shop.hop(stage, stage - 1)
    return trips[::-1]


def _backs(shop: Shop) -> list[int]:
    """Return [ns] from the end of a stage's last I to the end of the step."""
    backs: list[int] = []
    for stage, (_, _, weights) in enumerate(shop.times):
        own = weights + shop.sync[shop.ranks[stage]]
        before = backs[-1] + shop.times[stage - 1][1] + shop.hop(stage, stage - 1) if stage else 0
        backs.append(max(own, before))
    return backs
