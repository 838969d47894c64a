"""Plans as Accelerate's YAML and as its variables: what they say, what is refused, and that reading gives the plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

import uniform
from configurations import cases
from planner.checks import refusals
from planner.configurations.forms.accelerate import ACCELERATE as FORM
from planner.domain.configuration import NOTE
from planner.domain.plan import Plan
from planner.errors import CannotExpress
from planner.export.frameworks.accelerate import ACCELERATE
from planner.specs.catalog import framework
from planner.specs.plan import PlanFile

MESH = uniform.plan(tp=2, cp=2, dp=2, zero=3, micro_batch=2, num_microbatches=4, recompute=True)


def config(file: PlanFile) -> str:
    return ACCELERATE.parts(file)[0].text


def test_every_degree_is_written_out() -> None:
    """One key a line, as accelerate config writes it."""
    assert config(uniform.plan_file(MESH, 4)) == (
        "compute_environment: LOCAL_MACHINE\n"
        "distributed_type: FSDP\n"
        "mixed_precision: bf16\n"
        "num_machines: 2\n"
        "num_processes: 8\n"
        "machine_rank: 0\n"
        "main_process_ip: chips-0\n"
        "main_process_port: 29500\n"
        "rdzv_backend: static\n"
        "same_network: true\n"
        "main_training_function: main\n"
        "use_cpu: false\n"
        "debug: false\n"
        "fsdp_config:\n"
        "  fsdp_version: 2\n"
        "  fsdp_reshard_after_forward: true\n"
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
        "  fsdp_offload_params: false\n"
        "  fsdp_activation_checkpointing: true\n"
        "  fsdp_cpu_ram_efficient_loading: true\n"
        "  fsdp_sync_module_states: true\n"
        "  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
        "parallelism_config:\n"
        "  parallelism_config_dp_replicate_size: 1\n"
        "  parallelism_config_dp_shard_size: 2\n"
        "  parallelism_config_tp_size: 2\n"
        "  parallelism_config_cp_size: 2\n"
        "  parallelism_config_cp_backend: torch\n"
        "  parallelism_config_cp_comm_strategy: alltoall\n"
        "  parallelism_config_sp_size: 1\n"
        "  parallelism_config_sp_backend: deepspeed\n"
    )


def test_a_script_starts_a_machine_by_its_number() -> None:
    """The batch is the script's, and in its arguments."""
    part = ACCELERATE.parts(uniform.plan_file(MESH, 4))[1]
    assert part.executable
    assert part.text == (
        "#!/bin/sh\n"
        "# Run on every machine with its number: 0 chips-0, 1 chips-1.\n"
        "# What follows the number goes to train.py, which stands for your own script.\n"
        "machine=${1:?number of this machine}\n"
        "shift\n"
        'exec accelerate launch --config_file accelerate.yaml --machine_rank "$machine" \\\n'
        '    train.py --per_device_train_batch_size 2 --gradient_accumulation_steps 4 "$@"\n'
    )


def test_launchers_set_what_accelerate_launch_would() -> None:
    """So that torchrun can start nodes that are not alike."""
    assert ACCELERATE.program
    program = ACCELERATE.program(uniform.plan_file(MESH, 4))
    assert dict(program.environment) == {
        "ACCELERATE_MIXED_PRECISION": "bf16",
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_VERSION": "2",
        "FSDP_RESHARD_AFTER_FORWARD": "true",
        "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
        "FSDP_OFFLOAD_PARAMS": "false",
        "FSDP_ACTIVATION_CHECKPOINTING": "true",
        "FSDP_CPU_RAM_EFFICIENT_LOADING": "true",
        "FSDP_SYNC_MODULE_STATES": "true",
        "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT",
        "ACCELERATE_USE_PARALLELISM_CONFIG": "true",
        "PARALLELISM_CONFIG_DP_REPLICATE_SIZE": "1",
        "PARALLELISM_CONFIG_DP_SHARD_SIZE": "2",
        "PARALLELISM_CONFIG_TP_SIZE": "2",
        "PARALLELISM_CONFIG_CP_SIZE": "2",
        "PARALLELISM_CONFIG_CP_BACKEND": "torch",
        "PARALLELISM_CONFIG_CP_COMM_STRATEGY": "alltoall",
        "PARALLELISM_CONFIG_SP_SIZE": "1",
        "PARALLELISM_CONFIG_SP_BACKEND": "deepspeed",
    }


def test_whole_replicas_are_ddp() -> None:
    """Without a mesh; fp32 is the word no, in quotes; what DDP recomputes, the script does."""
    file = uniform.plan_file(uniform.plan(dp=4, recompute=True), 4, "fp32")
    text = config(file)
    assert "distributed_type: MULTI_GPU\nmixed_precision: 'no'\n" in text
    assert "fsdp_config" not in text
    assert "parallelism_config" not in text
    assert ACCELERATE.program
    assert ACCELERATE.program(file).command[-2:] == ("--gradient_checkpointing", "true")
    assert ACCELERATE.program(file).environment == (("ACCELERATE_MIXED_PRECISION", "no"),)


def uneven() -> PlanFile:
    """Return a plan on a node of four devices and half of another."""
    file = uniform.plan_file(uniform.plan(dp=6, zero=3), 6)
    return replace(file, cluster=uniform.cluster(2, 4))


def test_nodes_must_be_alike_for_accelerate_launch() -> None:
    """Yet torchrun can start them."""
    with pytest.raises(CannotExpress, match="equally many processes on every node, not 2 and 4; write --to torchrun"):
        ACCELERATE.parts(uneven())
    assert ACCELERATE.program
    assert ACCELERATE.program(uneven()).command[0] == "train.py"


@pytest.mark.parametrize(
    ("plan", "precision", "said"),
    [
        (uniform.plan(tp=2, dp=2, zero=3, sequence_parallel=True), "bf16", "name the layout with sp=0"),
        (uniform.plan(tp=2, dp=2), "bf16", "goes with FSDP, not with whole replicas"),
        (uniform.plan(dp=2), "fp8", "mixed_precision is bf16, fp16, fp32, not fp8"),
    ],
)
def test_what_it_cannot_say_is_refused(plan: Plan, precision: str, said: str) -> None:
    """Never rounded."""
    with pytest.raises(CannotExpress, match=said):
        ACCELERATE.parts(uniform.plan_file(plan, 2, precision))


@pytest.mark.parametrize("seed", range(80))
def test_what_is_written_is_read_again(seed: int) -> None:
    """By our own reader: no rule is broken, and it means the plan; the batch is not in the file."""
    file = uniform.drawn(seed, "p2p", tensor=True)
    stage, plan = file.plan.stages[0], file.plan
    if refusals(plan, framework("accelerate"), file.cluster):
        return
    alone = plan.num_replicas * stage.strategy.degree("cp") == 1
    if stage.strategy.degree("tp") > 1 and plan.zero_stage == 0 and plan.num_replicas > 1:
        return
    text = config(file)
    told = cases.findings(FORM, text, "accelerate.yaml")
    assert all(one.severity == NOTE for one in told), told
    meant = FORM.setup(cases.read(FORM, text, "accelerate.yaml"))
    layout = meant.layout
    assert (layout.dp, layout.cp, layout.tp) == (
        plan.num_replicas,
        stage.strategy.degree("cp"),
        stage.strategy.degree("tp"),
    )
    # Without another rank to shard over, the ZeRO stage means nothing.
    assert layout.zero == (0 if alone else plan.zero_stage)
    assert (layout.recompute == "full") == (bool(stage.num_recomputed) and plan.zero_stage > 0 and not alone)
    assert (meant.world, meant.precision) == (plan.num_devices, file.job.precision)
