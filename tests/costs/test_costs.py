"""Costs, each worked out by hand."""

from dataclasses import replace

import pytest

from planner.costs import plan_cost
from planner.costs.collectives import collective_time, device_rate, ring_rate
from planner.costs.compute import attention_times, matmul_time
from planner.costs.hop import StageEnd, hop_time
from planner.costs.kernels import ATTENTION_KERNELS
from planner.costs.layer import layer_cost
from planner.costs.sizes import parameter_bytes
from planner.costs.stage import layer_costs, stage_terms
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import AttentionCore, Matmul, Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.parallelism import ZERO_STAGES
from planner.specs import catalog
from planner.specs.cluster import read_cluster
from planner.specs.model import model_from_record

MEGATRON = catalog.framework("megatron")
A100 = catalog.device("a100-sxm-80gb")


def cluster(text: str = "4x8:a100-sxm-80gb") -> Cluster:
    """Return the cluster of a one-liner."""
    return read_cluster(text)


def group() -> DeviceGroup:
    """Return four nodes of eight A100, eight rails of 200 Gbit/s a node."""
    return cluster().groups[0]


def llama(*, tied: bool = False) -> Model:
    """Return Llama 2 7B with four layers."""
    record = {"family": "llama", "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 32}
    sizes = {"intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096}
    return model_from_record({**record, **sizes, "tie_word_embeddings": tied}, "test")


def job() -> Job:
    """Return 64 samples of 4,096 tokens in bf16."""
    return Job(global_batch=64, sequence=4096, precision="bf16", framework="megatron")


def tensor(degree: int) -> Strategy:
    """Return a tensor degree with sequence parallelism."""
    return Strategy(degrees=(("tp", degree),) if degree > 1 else (), sequence_parallel=degree > 1)


def test_matmul_is_bound_by_arithmetic() -> None:
    """4096^3: 2 * 4096^3 / (312e12 * 0.805) * (1 + 190/4096)^3 = 0.547 ms * 1.146 = 0.627 ms."""
    time = matmul_time(Matmul(4096, 4096, 4096), A100, MEGATRON, "bf16", 2)
    assert time == pytest.approx(2 * 4096**3 / (312e12 * 0.805) * (1 + 190 / 4096) ** 3)
    assert time == pytest.approx(0.627e-3, rel=1e-3)


def test_quality_is_a_factor_on_efficiency() -> None:
    """Nanotron's products reach 0.97 of what the device does: large ones take 1/0.97 as long."""
    large = Matmul(65536, 65536, 65536)
    full, less = (
        matmul_time(large, A100, replace(MEGATRON, matmul_quality=quality), "bf16", 2) for quality in (1.0, 0.97)
    )
    assert less == pytest.approx(full / 0.97)


@pytest.mark.parametrize(
    ("precision", "peak", "efficiency"), [("bf16", 2.5e15, 0.53), ("mxfp8", 5e15, 0.44), ("nvfp4", 1e16, 0.38)]
)
def test_narrow_products_run_at_their_rate(precision: str, peak: float, efficiency: float) -> None:
    """16384^3 on GB200: 8.796 TFLOP at 1.325, 2.2 and 3.8 PFLOP/s are 6.64, 3.998 and 2.315 ms, times 1.0352."""
    time = matmul_time(Matmul(16384, 16384, 16384), catalog.device("gb200"), MEGATRON, precision, 2)
    assert time == pytest.approx(2 * 16384**3 / (peak * efficiency) * (1 + 190 / 16384) ** 3)
    milliseconds = {"bf16": 6.64, "mxfp8": 3.998, "nvfp4": 2.315}
    assert time == pytest.approx(milliseconds[precision] * 1.0352e-3, rel=2e-3)


@pytest.mark.parametrize(("precision", "read"), [("bf16", 2), ("fp8", 1), ("mxfp8", 33 / 32), ("nvfp4", 9 / 16)])
def test_narrow_products_read_less(precision: str, read: float) -> None:
    """One row by 16384^2 weights: the weights bind at 8 TB/s * 0.85; what comes out has 16 bits in any precision."""
    row = Matmul(1, 16384, 16384)
    time = matmul_time(row, catalog.device("gb200"), replace(MEGATRON, saturation=0), precision, 2)
    assert time == pytest.approx(((16384**2 + 16384) * read + 16384 * 2) / (0.85 * 8e12))


def test_a_device_without_an_efficiency_of_its_own_keeps_the_usual() -> None:
    """Where a block gives none, fp8 reaches the share that bf16 does; mxfp8 needs the fp4 peak beside it."""
    device = replace(A100, peak_flops=(("bf16", 4e14), ("fp8", 8e14)))
    assert (device.efficiency("fp8"), device.peak("fp8"), device.peak("mxfp8")) == (0.805, 8e14, 0.0)
    assert replace(device, peak_flops=(*device.peak_flops, ("fp4", 1e15))).peak("mxfp8") == 8e14


def test_causal_attention_computes_half_the_scores() -> None:
    """A fused kernel skips masked blocks; its backward pass costs 2.5 / 0.85 times as much."""
    core = AttentionCore(queries=32 * 4096, keys=4096, head_dim=128, causal=True)
    forward, backward = attention_times(core, A100, MEGATRON, ATTENTION_KERNELS["flash2"], 2)
    assert forward == pytest.approx(0.5 * 4 * 32 * 4096**2 * 128 / (312e12 * 0.5))
    assert backward == pytest.approx(forward * 2.5 / 0.85)


def test_all_reduce_crosses_a_ring_twice() -> None:
    """1 GB over 4 ranks at 100 GB/s: 2 * 3/4 * 10 ms, and two doublings of latency."""
    assert collective_time("all_reduce", 1e9, 4, 100e9, 1e-5) == pytest.approx(15e-3 + 2e-5)
    assert collective_time("all_gather", 1e9, 1, 100e9, 1e-5) == 0.0


def test_rings_share_a_node() -> None:
    """Eight rings behind tp 8 each get an eighth of the node; one ring inside a node gets NVLink's rate."""
    node = group().inter_node.rate(4)
    assert device_rate(group().inter_node, 8, 4) == pytest.approx(node / 8)
    assert ring_rate(group(), 4, 8) == pytest.approx(node / 8)
    assert ring_rate(group(), 32, 1) == pytest.approx(min(node, group().intra_node.rate))
    assert ring_rate(group(), 8, 1) == group().intra_node.rate


def test_a_lone_device_hands_over_on_one_rail() -> None:
    """One replica with tp 1 sends its 4096 x 4096 x 2 bytes over one of eight rails; with tp 8 over all of them."""
    one = StageEnd(group=group(), strategy=tensor(1), num_replicas=1)
    eight = StageEnd(group=group(), strategy=tensor(8), num_replicas=1)
    slow, fast = (hop_time(end, end, cluster(), llama(), job(), MEGATRON, 1) for end in (one, eight))
    fixed = MEGATRON.hop_latency + group().inter_node.latency
    assert (slow - fixed) == pytest.approx(4096 * 4096 * 2 / (group().inter_node.rate(4) / 8))
    assert (fast - fixed) == pytest.approx((slow - fixed) / 8)


@pytest.mark.parametrize(("zero", "expected"), [(0, 18), (1, 6 + 12 / 8), (2, 2 + 16 / 8), (3, 18 / 8)])
def test_bytes_per_parameter(zero: int, expected: float) -> None:
    """Megatron's recipe: 18 bytes replicated, 6 + 12/dp with a sharded optimizer, 2 + 16/dp, 18/dp."""
    stage = Stage(group="a100-sxm-80gb", first_layer=0, last_layer=3, strategy=tensor(1))
    plan = Plan(stages=(stage,), schedule="1f1b", num_replicas=8, micro_batch=1, num_microbatches=8, zero_stage=zero)
    memory = dict(plan_cost(plan, cluster(), llama(), job(), MEGATRON).stages[0].memory)
    state = memory["weights"] + memory["gradients"] + memory["optimizer"]
    assert state / llama().parameters == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "megatron", "fsdp", "fp32"),
    [
        ("adam-fp32-states", 18, 16, 16),  # 2 + 4 + 4 + 8, with the weight in the master 4 + 4 + 8; 4 + 4 + 8
        ("adam-bf16-states", 12, 12, 12),  # 2 + 4 + 2 + 4, the master's lower half in both; 4 + 4 + 4
        ("adam-8bit", 12.03125, 10.03125, 10.03125),  # 2 + 4 + 4 + 2 + 8/256
        ("adam-bf16-pure", 8, 8, 12),  # 2 + 2 + 4; in fp32 weight and gradient are fp32
        ("sgd-momentum", 14, 12, 12),  # 2 + 4 + 4 + 4
        ("adafactor", 10.002, 8.002, 8.002),  # 2 + 4 + 4 + 8/4096
        ("muon", 14, 12, 12),
    ],
)
def test_bytes_per_parameter_of_a_recipe(name: str, megatron: float, fsdp: float, fp32: float) -> None:
    """Weight, gradient, master weight and state, replicated; sharded over 8, the latter two are an eighth."""
    recipe = catalog.optimizer(name)
    asked = replace(job(), optimizer=recipe)
    for framework, found, expected in (
        (MEGATRON, asked, megatron),
        (catalog.framework("fsdp"), asked, fsdp),
        (MEGATRON, replace(asked, precision="fp32"), fp32),
    ):
        whole, sharded = (parameter_bytes(framework, found, ZERO_STAGES[stage], 8) for stage in (0, 1))
        assert whole.weights + whole.gradients + whole.optimizer == pytest.approx(expected)
        assert (sharded.weights, sharded.gradients) == (whole.weights, whole.gradients)
        assert sharded.optimizer == pytest.approx(whole.optimizer / 8)
        assert (whole.update, sharded.update) == (recipe.update_bytes, recipe.update_bytes / 8)
        assert whole.sent_gradients == whole.gradients


def test_the_usual_recipe_is_the_frameworks() -> None:
    """Adam with fp32 states, asked for by name, costs what a job without a recipe does"""
    asked = replace(job(), optimizer=catalog.optimizer("adam-fp32-states"))
    for framework in catalog.frameworks():
        usual, named = (parameter_bytes(framework, each, ZERO_STAGES[1], 4) for each in (job(), asked))
        assert usual == named


def test_a_recipe_reaches_memory_and_step() -> None:
    """Four layers and edges on one device: 6 bytes less of master and state a parameter, 10 bytes less to move."""
    stage = Stage(group="a100-sxm-80gb", first_layer=0, last_layer=3, strategy=tensor(1))
    plan = Plan(stages=(stage,), schedule="1f1b", num_replicas=1, micro_batch=1, num_microbatches=64, zero_stage=0)
    jobs = (job(), replace(job(), optimizer=catalog.optimizer("adam-bf16-states")))
    usual, less = (plan_cost(plan, cluster(), llama(), each, MEGATRON).stages[0] for each in jobs)
    parameters = llama().parameters
    assert dict(usual.memory)["optimizer"] - dict(less.memory)["optimizer"] == pytest.approx(6 * parameters)
    assert usual.sync - less.sync == pytest.approx(10 * parameters / (0.85 * 2039e9))
    assert (usual.forward, usual.backward) == (less.forward, less.backward)


def tensor_collectives(text: str, framework: Framework) -> tuple[float, float]:
    """Return the seconds of tensor collectives that four layers and the head wait for, and the embedding's."""
    machine = cluster(text)
    name = machine.groups[0].name
    stage = Stage(group=name, first_layer=0, last_layer=3, strategy=tensor(8))
    plan = Plan(stages=(stage,), schedule="1f1b", num_replicas=1, micro_batch=1, num_microbatches=64, zero_stage=0)
    whole = dict(plan_cost(plan, machine, llama(), job(), framework).stages[0].parts)["tensor_collectives"]
    ahead = layer_cost(llama().embedding, job(), framework, machine.groups[0], tensor(8), 1, pipelined=False)
    alone = float(dict(ahead.parts)["tensor_collectives"])
    return whole - alone, alone


@pytest.mark.parametrize(("device", "left"), [("h100-sxm-80gb", 0.5), ("a100-sxm-80gb", 1.0)])
def test_fused_kernels_hide_a_share_of_tensor_collectives(device: str, left: float) -> None:
    """With overlap 0.5 half of them is left where fused kernels exist (Hopper and later); the embedding has none."""
    plain = replace(MEGATRON, launch_floor=0.0, launch_edge=0.0, overlap_tensor_backward=0.0)
    bare, fused = (tensor_collectives(f"4x8:{device}", replace(plain, overlap_tensor=share)) for share in (0.0, 0.5))
    assert fused == pytest.approx((left * bare[0], bare[1]))


def test_the_backward_all_reduce_hides_behind_weight_gradients() -> None:
    """Half of the backward collectives hidden, and none forward: three quarters of both are left."""
    plain = replace(MEGATRON, overlap_tensor=0.0)
    shares = (replace(plain, overlap_tensor_backward=share) for share in (0.0, 0.5))
    bare, hidden = (tensor_collectives("4x8:a100-sxm-80gb", each) for each in shares)
    assert hidden == pytest.approx((0.75 * bare[0], bare[1]))


def test_no_more_is_hidden_than_what_runs_beside() -> None:
    """On a link of 100 MB/s all products together are short: half of the time of those whose output is cut is gained.

    These are the first product of each block: 4,096 tokens times 4096 x (12288 + 2 x 11008) / 8 weights in two.
    """
    slow = replace(group(), intra_node=replace(group().intra_node, bandwidth=1e8, measured=()))
    shares = (replace(MEGATRON, overlap_tensor=0.0, overlap_tensor_backward=share) for share in (0.0, 0.5))
    bare, hidden = (
        dict(layer_cost(llama().body, job(), each, slow, tensor(8), 1, pipelined=False).parts) for each in shares
    )
    gained = bare["tensor_collectives"] - hidden["tensor_collectives"]
    products = (matmul_time(Matmul(4096, n / 8, 4096), A100, MEGATRON, "bf16", 2) for n in (12288, 2 * 11008))
    assert gained == pytest.approx(0.5 * sum(products))


def test_launches_join_compute() -> None:
    """Kernels that take as long to launch as to run take 2^(1/3) of either; far apart the larger of both."""
    body, group_ = llama().body, group()

    def forward(floor: float) -> float:
        framework = replace(MEGATRON, launch_floor=floor)
        return float(layer_cost(body, job(), framework, group_, tensor(1), 1, pipelined=False).forward)

    compute = forward(0.0)
    assert forward(compute) == pytest.approx(2 ** (1 / 3) * compute)
    assert forward(100 * compute) == pytest.approx(100 * compute, rel=1e-6)


def test_launches_grow_with_tensor_ranks_and_unfused_layers() -> None:
    """A floor of 1 s, twice for gated layers, and 0.1 s a further rank, or 0.5 s in a pipeline: 2.7 and 5.5 s."""
    framework = replace(MEGATRON, launch_floor=1.0, launch_tensor=0.1, launch_tensor_pipeline=0.5, unfused_launches=2.0)
    for pipelined, seconds in ((False, 2.0 + 7 * 0.1), (True, 2.0 + 7 * 0.5)):
        cost = layer_cost(llama().body, job(), framework, group(), tensor(8), 1, pipelined=pipelined)
        assert cost.forward == pytest.approx(seconds, rel=1e-6)


def test_older_kernels_lose_more_on_newer_devices() -> None:
    """FlashAttention 2 reaches the A100's figure and 0.78 of the H100's; causal or not, the ratio is the kernel's."""
    core = AttentionCore(queries=32 * 4096, keys=4096, head_dim=128, causal=True)
    for device, share in (("a100-sxm-80gb", 1.0), ("h100-sxm-80gb", 0.78)):
        best, older = (
            attention_times(core, catalog.device(device), MEGATRON, ATTENTION_KERNELS[kernel], 2)[0]
            for kernel in ("cudnn", "flash2")
        )
        assert older == pytest.approx(best / share)


def test_activations_follow_the_tensor_list() -> None:
    """Llama 7B keeps 10 h + 2 (4 h) + 2 (3 ffn) + 4 a bytes a token, layer and micro-batch in flight; 6% on top."""
    stages = tuple(Stage(group="a100-sxm-80gb", first_layer=s, last_layer=s, strategy=tensor(1)) for s in range(4))
    plan = Plan(stages=stages, schedule="1f1b", num_replicas=1, micro_batch=1, num_microbatches=64, zero_stage=0)
    memory = [dict(cost.memory) for cost in plan_cost(plan, cluster(), llama(), job(), MEGATRON).stages]
    found = [parts["activations"] for parts in memory]
    layer = 4096 * (10 * 4096 + 2 * 4 * 4096 + 2 * 3 * 11008 + 4 * 32)
    assert found[0] - found[1] == pytest.approx(layer)
    assert found[1] - found[3] == pytest.approx(2 * layer)
    assert [parts["fragmentation"] for parts in memory] == pytest.approx([0.06 * size for size in found])


def test_recompute_pays_a_forward_pass() -> None:
    """A fully recomputed layer keeps its input alone and runs forward once more."""

    def cost(recomputed: int) -> object:
        stage = Stage(group="a100-sxm-80gb", first_layer=0, last_layer=3, strategy=tensor(1), num_recomputed=recomputed)
        plan = Plan(stages=(stage,), schedule="1f1b", num_replicas=1, micro_batch=1, num_microbatches=64, zero_stage=0)
        return plan_cost(plan, cluster(), llama(), job(), MEGATRON).stages[0]

    none, two = cost(0), cost(2)
    parts = dict(two.parts)  # type: ignore[attr-defined]
    assert two.backward - none.backward == pytest.approx(parts["recompute"])  # type: ignore[attr-defined]
    assert two.forward == none.forward  # type: ignore[attr-defined]


def test_parts_sum_to_the_stage() -> None:
    """What a stage's time is spent on adds up to its forward and backward pass."""
    stage = Stage(group="a100-sxm-80gb", first_layer=0, last_layer=3, strategy=tensor(4), num_recomputed=1)
    plan = Plan(stages=(stage,), schedule="1f1b", num_replicas=8, micro_batch=1, num_microbatches=8, zero_stage=3)
    cost = plan_cost(plan, cluster(), llama(), job(), MEGATRON).stages[0]
    assert sum(seconds for _, seconds in cost.parts) == pytest.approx(cost.forward + cost.backward)


@pytest.mark.parametrize(("tp", "replicas", "bytes_of_node"), [(1, 1, 1), (1, 2, 2), (1, 16, 8), (8, 1, 1), (8, 4, 1)])
def test_tied_gradients_share_the_adapters_of_their_node(tp: int, replicas: int, bytes_of_node: int) -> None:
    """32000 x 4096 gradients of 4 bytes, cut by tp: a node of eight sends those of its replicas at 8 x 25 x 0.72 GB/s.

    A device alone has one of the eight rails; ends that are known to be apart do not meet inside a node.
    """
    size, rail = 32000 * 4096 * 4, 25e9 * 0.72
    one_node = replace(group(), num_nodes=1)

    def time(where: DeviceGroup, *, apart: bool = False) -> float:
        costs = layer_costs(llama(tied=True), job(), MEGATRON, where, tensor(tp), 1, pipelined=True)
        rest = {"policy": "none", "num_replicas": replicas, "zero_stage": 1, "last": False}
        return float(stage_terms(costs, job(), MEGATRON, first=True, apart=apart, **rest).tied_sync)  # type: ignore[arg-type]

    senders = min(8, tp * replicas)
    assert time(group()) == time(one_node, apart=True) == pytest.approx(size * bytes_of_node / (senders * rail))
    one_rail = replace(group(), inter_node=replace(group().inter_node, rails=1))
    assert time(one_rail) == pytest.approx(size * bytes_of_node / (8 * rail))
    assert time(one_node) == pytest.approx(size / tp / group().intra_node.rate)
