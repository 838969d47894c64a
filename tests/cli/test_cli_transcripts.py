"""What users see of the real command line, whole: command, exit code and both streams."""

from __future__ import annotations

from pathlib import Path

import pytest

import transcripts

GOLDEN = Path(__file__).parent / "golden"
PLANNER = "python -m planner"
WRONG_RUNS = r"printf 'layers,hidden,heads,seq,gpu,gpus,gbs,oom\n2,64,4,128,H100,8,x,0\n2.5,64,4,128,H100,0,16,yes\n'"

MIXTRAL = (
    r"""printf '{"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,\n"""
    r""""num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,\n"""
    r""""max_position_embeddings": 32768, "num_local_experts": 8, "num_experts_per_tok": 2}'"""
)

LAB = (
    f"{PLANNER} plan cluster_specs/lab-3080-4090.yaml model_specs/gpt2.json --no-references"
    " -c 'pp = 2' -c 'dp = 2' -c 'tp = 2' -o -"
)

COMMANDS = {
    "help": f"{PLANNER} --help",
    "show-cluster": f"{PLANNER} show cluster cluster_specs/mixed-h100-a100-l40s.yaml",
    "show-model": f"{PLANNER} show model model_specs/llama-3-405b.json",
    "show-frameworks": f"{PLANNER} show frameworks",
    "import-model": f"{PLANNER} import model model_specs/qwen3-8b.json",
    "import-cluster": (
        f"{PLANNER} import cluster tests/machines/data/nvidia_topo_a100_pcie.txt"
        " tests/machines/data/nvidia_query_a100_pcie.csv --nodes 4"
    ),
    "import-cluster-slurm": (
        f"cat tests/machines/data/slurm_nodes.txt | {PLANNER} import cluster - tests/machines/data/slurm_topology.conf"
        " --network ib-ndr"
    ),
    "wrong-dumps": (
        f"{PLANNER} import cluster tests/machines/data/nvidia_topo_h100.txt tests/machines/data/nvidia_smi_mixed.xml"
    ),
    "import-experts": f"{MIXTRAL} | {PLANNER} import model -",
    "accuracy": f"{PLANNER} accuracy tests/accuracy/data/sample.csv",
    "calibrate": f"{PLANNER} calibrate tests/accuracy/data/hagemann2023_llama_a100.csv",
    "calibrate-few": f"{PLANNER} calibrate tests/accuracy/data/korthikanti2022_selective_recompute.csv -o -",
    "wrong-calibration": f"{PLANNER} calibrate tests/accuracy/data/llm_foundry_mpt_fsdp.csv",
    "wrong-runs": f"{WRONG_RUNS} | {PLANNER} accuracy - tests/accuracy/data/sampel.csv",
    "wrong-device": f"{PLANNER} plan 8x8:h100-sxm-80bg model_specs/llama-3-8b.json",
    "wrong-job": f"{PLANNER} plan 1x8:h100-sxm-80gb model_specs/gpt2.json --headroom 2 --gap nan -c 'tq <= 2'",
    "predict-context": (
        f"{PLANNER} predict 8x8:h100-sxm-80gb model_specs/llama-3-70b.json"
        " --layout tp=8,cp=8,gbs=16,seq=131072,recompute=full"
    ),
    "predict-context-a2a": (
        f"{PLANNER} predict 8x8:h100-sxm-80gb model_specs/llama-3-8b.json"
        " --layout tp=2,cp=4,cp_comm_type=a2a,pp=2,gbs=16,seq=131072,recompute=full"
    ),
    "predict-repairs": (
        f"{PLANNER} predict 4x8:h100-sxm-80gb model_specs/llama-3-70b.json --optimizer adam-bf16-pure"
        " --layout tp=1,pp=8,dp=4,mbs=4,gbs=128,seq=512"
    ),
    "wrong-context": (
        f"{PLANNER} predict 2x8:h100-sxm-80gb model_specs/llama-3-8b.json --layout tp=2,cp=8,cp_comm_type=a2a,seq=32768"
    ),
    "timeline": f"{LAB} | {PLANNER} timeline -",
    "timeline-chunks": (
        f"{PLANNER} plan 1x4:h100-sxm-80gb+1x4:a100-sxm-80gb model_specs/llama-3-8b.json --no-references"
        f" --global-batch 8 -c 'pp = 4' -c 'vpp = 2' -o - | {PLANNER} timeline - --format text"
    ),
    "export-rank-table": f"{LAB} | {PLANNER} export - --to rank-table",
    "export-hostfile": f"{LAB} | {PLANNER} export - --to hostfile",
    "wrong-target": f"{PLANNER} export plan.yaml --to rank-tabel",
    "reader-gone": f"{PLANNER} show devices | head -n 1",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_it_printed(name: str, tmp_path: Path, update_golden: bool) -> None:
    """Exit code and output are those of tests/cli/golden; --update-golden rewrites them for review."""
    path = GOLDEN / f"{name}.txt"
    got = transcripts.transcript(COMMANDS[name], transcripts.scratch(tmp_path))
    if update_golden:
        transcripts.rewrite(path, got)
    assert transcripts.steady(got) == transcripts.steady(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (f"{PLANNER} show devices > /dev/full", 2, "standard output cannot be written"),
        (f"{PLANNER} show devices >&-", 2, "standard output is closed"),
        (f"{PLANNER} show cluster - < /dev/null", 2, "is empty"),
        (f"{PLANNER} show devices 2>&-", 0, ""),
    ],
)
def test_broken_streams_are_no_bugs(command: str, code: int, says: str, tmp_path: Path) -> None:
    """A full disk, closed streams and an empty input end with a message, not with a traceback."""
    done = transcripts.run(command, transcripts.scratch(tmp_path))
    assert done.code == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
