"""The constraints of the integer program, one function each; the mathematics stands in its docstring.

y[s,c,n] = 1 if position s takes choice c with n layers. See `planner.program.subproblem` for the other symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.program.packing import patterns
from planner.program.solver import Linear, weighted
from planner.program.variables import Variables


def one_column(variables: Variables) -> None:
    """sum_{c,n} y[s,c,n] = 1 for every position s."""
    for position in range(variables.sub.num_stages):
        variables.model.add_exactly_one(variables.taken[column] for column in variables.columns(position))


def all_layers(variables: Variables) -> None:
    """sum_{s,c,n} n y[s,c,n] = L: every layer runs once; runs are consecutive because positions are."""
    variables.model.add(
        sum(column.layers * taken for column, taken in variables.taken.items()) == variables.sub.num_layers
    )


def capacity(variables: Variables) -> None:
    """least[r] <= sum_{s,c,n} usage[r,c] y[s,c,n] <= capacity[r] for every limit r (groups, and all together)."""
    sub = variables.sub
    for usage, least, most in zip(sub.usage, sub.least, sub.capacity, strict=True):
        used = weighted((usage[column.choice], taken) for column, taken in variables.taken.items())
        variables.model.add_linear_constraint(used, int(least), int(most))


def node_slots(variables: Variables) -> None:
    """Copies do not straddle nodes: sum_p x[p] <= nodes, D sum_s split_s [width_s = w] <= sum_p count[p,w] x[p].

    x[p] counts the nodes that are filled after pattern p. Needed only where the widths of a group do not divide one
    another and the node: elsewhere the capacity says the same.
    """
    sub, model = variables.sub, variables.model
    for slots in sub.slots:
        widths = tuple(sorted({int(sub.widths[choice]) for choice in slots.choices}))
        fillings = patterns(widths, slots.devices_per_node)
        filled = [model.new_int_var(0, slots.num_nodes, "") for _ in fillings]
        model.add(sum(filled) <= slots.num_nodes)
        for index, width in enumerate(widths):
            needed = weighted(
                (sub.splits[column.choice], taken)
                for column, taken in variables.taken.items()
                if column.choice in slots.choices and sub.widths[column.choice] == width
            )
            offered = sum(filling[index] * count for filling, count in zip(fillings, filled, strict=True))
            model.add(sub.family.num_replicas * needed <= offered)


def joint_choices(variables: Variables) -> None:
    """sum_{c'} z[s,c,c'] = sum_n y[s,c,n] and sum_c z[s,c,c'] = sum_n y[s+1,c',n]: a joint knows both its ends."""
    for position in sorted({key[0] for key in variables.joints}):
        following = variables.following(position)
        here, there = variables.choices(position), variables.choices(following)
        for choice in here:
            leaving = sum(variables.joints[(position, choice, other)] for other in there)
            variables.model.add(leaving == variables.chosen(position, choice))
        for choice in there:
            entering = sum(variables.joints[(position, other, choice)] for other in here)
            variables.model.add(entering == variables.chosen(following, choice))


def stage_pace(variables: Variables) -> None:
    """tau_l >= sum of the parts of stage s that lane l paces, for every lane and stage.

    Where transfers block, x_s is part of the forward pass and y_{s-1} of the backward pass.
    """
    for lane, tau in zip(variables.sub.family.schedule.lanes, variables.lanes, strict=True):
        for position in range(variables.sub.num_stages):
            sent = variables.sends(position)
            variables.model.add(tau >= sum(variables.amount(position, part) + sent[part] for part in lane))


def link_pace(variables: Variables) -> None:
    """tau_l >= x_s (y_s) where lane l paces forward (backward) passes: a link carries one transfer at a time."""
    for lane, tau in zip(variables.sub.family.schedule.lanes, variables.lanes, strict=True):
        for position in variables.senders:
            for part in lane:
                variables.model.add(tau >= variables.hop(position, ("forward", "backward").index(part)))


def cycle_pace(variables: Variables) -> None:
    """Tau >= (sum_{s..e} t_j + sum_{s..e-1} (x_j + y_j)) / (w_s - w_e + 1) for every s <= e with w_s < M.

    Linear in P with u_e = the largest excess of a cycle that ends at e:
    u_e >= t_e - tau;  u_e >= u_{e-1} + x_{e-1} + y_{e-1} + t_e - (w_{e-1} - w_e) tau;  u_e <= 0.
    Where transfers block, t_e + x_e + y_{e-1} takes the place of t_e and of the transfers.
    """
    sub, model = variables.sub, variables.model
    held = sub.in_flight
    previous = None
    for position in range(sub.num_stages) if sub.cycles else ():
        if held[position] >= sub.num_passes:
            continue
        excess = model.new_int_var(-(sub.num_stages + 1) * variables.pace, 0, "")
        busy = variables.amount(position, "time") + sum(variables.sends(position).values())
        model.add(excess >= busy - variables.tau)
        if previous is not None:
            hops = 0 if sub.blocking else variables.hop(position - 1, 0) + variables.hop(position - 1, 1)
            grown = (held[position - 1] - held[position]) * variables.tau
            model.add(excess >= previous + hops + busy - grown)
        previous = excess


def uneven_pace(variables: Variables) -> None:
    """V tau >= t_e + d_e + (v - 1) t_s for the ends e and every s other than e, where stages have chunks.

    d_e is what embedding or head add to one chunk beyond the mean: while that chunk runs, others cannot make up for it.
    """
    sub, chunks = variables.sub, variables.sub.virtual_stages
    if not sub.turns:
        return
    for end, position in enumerate((0, sub.num_stages - 1)):
        longest = variables.amount(position, "time") + variables.uneven(position, end)
        for other in set(range(sub.num_stages)) - {position}:
            rest = (chunks - 1) * variables.amount(other, "time")
            variables.model.add(chunks * variables.tau >= longest + rest)


def turn_pace(variables: Variables) -> None:
    """2 P tau >= sum_s t_s + sum_s (x_s + y_s) + X + Y where w_0 < M v; X, Y lead from the last position to the first.

    Once round all stages and back, a micro-batch is 2 P passes later; without chunks nothing goes round.
    """
    sub = variables.sub
    if sub.turns and sub.cycles:
        variables.model.add(2 * sub.num_stages * variables.tau >= variables.turn())


def turn_stall(variables: Variables) -> None:
    """Z >= sum_s t_s + sum_s (x_s + y_s) + X + Y - P tau: a round of P passes waits for the way round all stages."""
    if variables.sub.turns and variables.sub.critical is None:
        variables.model.add(variables.stall >= variables.turn() - variables.sub.num_stages * variables.tau)


def trip_pace(variables: Variables) -> None:
    """O v d tau >= v sum_s (f_s + i_s) + v sum_s (x_s + y_s) + (v - 1) (X + Y), with o micro-batches open at once.

    A micro-batch is away for so long, through v chunks there and back; b_s stands for i_s where backward passes are
    whole. Each of d directions begins one in d v passes of a stage, and at most o of its own are away. Only where a
    schedule is given by its passes, and a step has more.
    """
    sub = variables.sub
    if sub.critical is None or not sub.critical.opened:
        return
    chunks, stages = sub.virtual_stages, range(sub.num_stages)
    away = sum(variables.amount(position, "time") for position in stages)
    away -= sum(variables.amount(position, "weight") for position in stages if sub.critical.split)
    away += sum(variables.hop(position, way) for position in stages[:-1] for way in (0, 1))
    around = sum(variables.hop(sub.num_stages - 1, way) for way in (0, 1)) if sub.turns else 0
    opened = sub.critical.opened * sub.family.schedule.parts
    variables.model.add(opened * variables.tau >= chunks * away + (chunks - 1) * around)


def longest_path(variables: Variables) -> None:
    """R >= sum_s (alpha_k f_s + beta_k i_s + gamma_k w_s) + eta_k sum_s (x_s + y_s) + theta_k (X + Y) for every path k.

    What the critical path k of equal stages holds beside M v - 1 passes of a stage; and R >= tau, since a stage runs
    M v of them. Only where a schedule is given by its passes.
    """
    sub = variables.sub
    if sub.critical is None:
        return
    variables.model.add(variables.fill >= variables.tau)
    for path in range(len(sub.fills)):
        stages = sum(variables.sum(position, sub.fills[path]) for position in range(sub.num_stages))
        joints = sum(
            variables.across(position, (sub.crossings, sub.arounds)[position == sub.num_stages - 1][path, way])
            for position in variables.senders
            for way in (0, 1)
        )
        variables.model.add(variables.fill >= stages + joints)


def mirrored(variables: Variables) -> None:
    """y[s,c,n] = y[P-1-s,c,n] where the pipeline runs from both ends: facing ranks hold the same two stages."""
    sub = variables.sub
    if sub.family.schedule.directions == 1:
        return
    for column, taken in variables.taken.items():
        facing = replace(column, position=sub.num_stages - 1 - column.position)
        variables.model.add(taken == variables.taken.get(facing, 0))


def sync_end(variables: Variables) -> None:
    """S >= sync_s - sum_{j<s} (b_j + y_j) for every s: stages further on finish their backward passes earlier.

    S >= sync_s where a schedule is given by its passes: its ranks end at about the same time.
    """
    behind: Linear = 0
    for position in range(variables.sub.num_stages):
        variables.model.add(variables.sync >= variables.sum(position, variables.sub.sync) - behind)
        if variables.sub.critical is not None:
            continue
        behind = behind + variables.amount(position, "backward")
        if position < variables.sub.num_stages - 1:
            behind = behind + variables.hop(position, 1)


CONSTRAINTS: tuple[Callable[[Variables], None], ...] = (
    one_column,
    all_layers,
    capacity,
    node_slots,
    joint_choices,
    stage_pace,
    link_pace,
    cycle_pace,
    uneven_pace,
    turn_pace,
    turn_stall,
    trip_pace,
    longest_path,
    mirrored,
    sync_end,
)
