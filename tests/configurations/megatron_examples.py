"""An example of every rule of Megatron-LM: what breaks it, and what mends it."""

from __future__ import annotations

import re

BASE = (
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048"
    " --micro-batch-size 1 --global-batch-size 64 --bf16 --use-distributed-optimizer --overlap-grad-reduce"
    " --overlap-param-gather"
)
"""A sound configuration, on `WORLD` ranks; examples add flags to it, replace them, or take them away with a ``!``."""
WORLD = 16
CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"
EXPERTS = "--num-experts 8 --disable-bias-linear --moe-ffn-hidden-size 512"
TENSOR = "--tensor-model-parallel-size 2 --sequence-parallel"
FSDP = "--use-megatron-fsdp --ckpt-format fsdp_dtensor"
TORCH = (
    "--use-torch-fsdp2 --no-gradient-accumulation-fusion --untie-embeddings-and-output-weights"
    " !--use-distributed-optimizer !--overlap-param-gather"
)
FULL = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
SP = "--sequence-parallel"
PIPE = "--pipeline-model-parallel-size"
LAYOUT = f"{PIPE} 2 --pipeline-model-parallel-layout"
CHUNKS = f"{PIPE} 4 --num-layers-per-virtual-pipeline-stage 3"
HYBRID_PATTERN = "M" * 12 + "|" + "M" * 12

EXAMPLES = {
    "MG101": ("--tensor-model-parallel-size 3", "--tensor-model-parallel-size 2"),
    "MG102": (
        f"{EXPERTS} --expert-model-parallel-size 8 {PIPE} 4",
        f"{EXPERTS} --expert-model-parallel-size 4 {PIPE} 4",
    ),
    "MG103": ("--micro-batch-size 0", "--micro-batch-size 1"),
    "MG104": (
        f"{EXPERTS} {TENSOR} --expert-model-parallel-size 2",
        f"{EXPERTS} {TENSOR} --expert-model-parallel-size 2 --expert-tensor-parallel-size 1",
    ),
    "MG105": ("--sequence-parallel", TENSOR),
    "MG106": ("--tensor-model-parallel-size 2", TENSOR),
    "MG107": (
        f"{EXPERTS} {PIPE} 2 --expert-model-parallel-size 2 --use-tp-pp-dp-mapping",
        f"{EXPERTS} {PIPE} 2 --expert-model-parallel-size 2",
    ),
    "MG108": (
        "--context-parallel-size 4 --hierarchical-context-parallel-sizes 2 4",
        "--context-parallel-size 4 --hierarchical-context-parallel-sizes 2 2",
    ),
    "MG109": (
        "--context-parallel-size 4 --cp-comm-type a2a+p2p",
        "--context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2",
    ),
    "MG110": ("--num-distributed-optimizer-instances 3", "--num-distributed-optimizer-instances 2"),
    "MG111": (
        "--num-distributed-optimizer-instances 2 !--use-distributed-optimizer !--overlap-param-gather",
        "--num-distributed-optimizer-instances 2",
    ),
    "MG112": ("--cp-comm-type a2a", "--cp-comm-type a2a --context-parallel-size 2"),
    "MG113": (f"{TENSOR} --tensor-parallel-num-weight-shards 3", f"{TENSOR} --tensor-parallel-num-weight-shards 4"),
    "MG201": (f"--num-layers 46 {PIPE} 4", f"--num-layers 46 {PIPE} 4 --decoder-last-pipeline-num-layers 10"),
    "MG202": (
        f"--num-layers 40 {PIPE} 2 --num-layers-per-virtual-pipeline-stage 3",
        f"--num-layers 40 {PIPE} 2 --num-layers-per-virtual-pipeline-stage 2",
    ),
    "MG203": (
        f"{PIPE} 2 --num-virtual-stages-per-pipeline-rank 5",
        f"{PIPE} 2 --num-virtual-stages-per-pipeline-rank 6",
    ),
    "MG204": (
        f"{PIPE} 2 --num-virtual-stages-per-pipeline-rank 2 --num-layers-per-virtual-pipeline-stage 6",
        f"{PIPE} 2 --num-virtual-stages-per-pipeline-rank 2",
    ),
    "MG205": (
        f"{PIPE} 4 --decoder-first-pipeline-num-layers 6 --num-layers-per-virtual-pipeline-stage 3",
        f"{PIPE} 4 --decoder-first-pipeline-num-layers 6 --num-virtual-stages-per-pipeline-rank 2",
    ),
    "MG206": (
        f"--num-layers 23 {PIPE} 4 --decoder-last-pipeline-num-layers 5 --account-for-loss-in-pipeline-split",
        f"--num-layers 23 {PIPE} 4 --decoder-last-pipeline-num-layers 5",
    ),
    "MG207": (
        f"--num-layers 94 {PIPE} 4 --decoder-last-pipeline-num-layers 20",
        f"--num-layers 94 {PIPE} 4 --decoder-last-pipeline-num-layers 22",
    ),
    "MG208": ("--num-layers-per-virtual-pipeline-stage 6", CHUNKS),
    "MG209": (
        f"{LAYOUT} Et*12|t*12L --decoder-last-pipeline-num-layers 12",
        f"{LAYOUT} Et*12|t*12L",
    ),
    "MG210": (f"{LAYOUT} Ex*12|t*12L", f"{LAYOUT} Et*12|t*12L"),
    "MG211": (f"{LAYOUT} Et*8|t*8|t*8L", f"{LAYOUT} Et*8|t*8|t*4|t*4L"),
    "MG212": (f"{LAYOUT} Et*12|t*11L", f"{LAYOUT} Et*12|t*12L"),
    "MG213": (f"{LAYOUT} t*12|t*12L", f"{LAYOUT} Et*12|t*12L"),
    "MG214": (
        f"{LAYOUT} Et*12|t*12L --mtp-num-layers 1 --position-embedding-type rope",
        f"{LAYOUT} Et*12|t*12mL --mtp-num-layers 1 --position-embedding-type rope",
    ),
    "MG216": (
        f"--num-layers 2 {PIPE} 4 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split",
        f"--num-layers 6 {PIPE} 4 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split",
    ),
    "MG217": (
        f"{PIPE} 2 --hybrid-layer-pattern {HYBRID_PATTERN} --num-virtual-stages-per-pipeline-rank 2",
        f"{PIPE} 2 --hybrid-layer-pattern {HYBRID_PATTERN}",
    ),
    "MG218": (f"{PIPE} 4 --hybrid-layer-pattern {HYBRID_PATTERN}", f"{PIPE} 2 --hybrid-layer-pattern {HYBRID_PATTERN}"),
    "MG219": (
        f"{PIPE} 8 --vocab-size 128256",
        f"{PIPE} 8 --vocab-size 128256 --pipeline-model-parallel-layout Et*3|t*3|t*3|t*3|t*4|t*4|t*4|L",
    ),
    "MG221": (f"{CHUNKS} --global-batch-size 24", f"{CHUNKS} --global-batch-size 32"),
    "MG222": (f"{CHUNKS} --global-batch-size 24", f"{CHUNKS} --global-batch-size 32"),
    "MG223": (
        f"{PIPE} 2 --num-layers-per-virtual-pipeline-stage 3 --no-overlap-p2p-communication",
        f"{PIPE} 2 --num-layers-per-virtual-pipeline-stage 3",
    ),
    "MG224": (f"{PIPE} 2 --num-layers-per-virtual-pipeline-stage 3", CHUNKS),
    "MG225": ("--num-layers-per-virtual-pipeline-stage 6", CHUNKS),
    "MG226": (f"{PIPE} 8 --global-batch-size 8", f"{PIPE} 8"),
    "MG227": (f"{PIPE} 8 --global-batch-size 16", f"{PIPE} 8 --global-batch-size 128"),
    "MG228": (
        f"{PIPE} 4 --overlap-p2p-communication-warmup-flush",
        f"{CHUNKS} --overlap-p2p-communication-warmup-flush",
    ),
    "MG230": ("--defer-embedding-wgrad-compute", f"{PIPE} 2 --defer-embedding-wgrad-compute"),
    "MG301": ("!--micro-batch-size", ""),
    "MG302": ("--global-batch-size 72", "--global-batch-size 80"),
    "MG303": ("!--global-batch-size", ""),
    "MG304": ("--step-batch-size-schedule 0:16", "--step-batch-size-schedule 0:16 !--global-batch-size"),
    "MG305": ("--rampup-batch-size 16 20 1000", "--rampup-batch-size 16 16 1000"),
    "MG306": ("--eval-global-batch-size 24", "--eval-global-batch-size 32"),
    "MG307": ("--train-iters 10 --lr-decay-samples 10", "--train-iters 10 --lr-decay-iters 10"),
    "MG308": ("--lr-warmup-fraction 0.1 --lr-warmup-iters 10", "--lr-warmup-fraction 0.1"),
    "MG401": (
        "--num-attention-heads 12 --kv-channels 64 --tensor-model-parallel-size 8",
        "--tensor-model-parallel-size 8",
    ),
    "MG402": (
        (
            "--group-query-attention --num-query-groups 8 --num-attention-heads 24 --kv-channels 64"
            " --tensor-model-parallel-size 12"
        ),
        (
            "--group-query-attention --num-query-groups 8 --num-attention-heads 24 --kv-channels 64"
            " --tensor-model-parallel-size 8"
        ),
    ),
    "MG403": (
        "--group-query-attention --num-query-groups 2 --tensor-model-parallel-size 4",
        "--group-query-attention --num-query-groups 4 --tensor-model-parallel-size 4",
    ),
    "MG404": ("--group-query-attention --num-query-groups 5", "--group-query-attention --num-query-groups 4"),
    "MG405": ("--num-query-groups 4", "--num-query-groups 4 --group-query-attention"),
    "MG406": ("--group-query-attention", "--num-query-groups 4 --group-query-attention"),
    "MG407": ("--multi-latent-attention --group-query-attention --num-query-groups 4", "--multi-latent-attention"),
    "MG408": ("--num-attention-heads 12", "--num-attention-heads 12 --kv-channels 64"),
    "MG409": (
        "--ffn-hidden-size 4098 --tensor-model-parallel-size 4",
        "--ffn-hidden-size 4096 --tensor-model-parallel-size 4",
    ),
    "MG410": ("--seq-length 2044 --context-parallel-size 8", "--seq-length 2048 --context-parallel-size 8"),
    "MG411": (f"{TENSOR} --seq-length 2047", TENSOR),
    "MG412": (f"{TENSOR} --seq-length 2040 --fp8-format hybrid", f"{TENSOR} --seq-length 2048 --fp8-format hybrid"),
    "MG413": (
        "--context-parallel-size 8 --cp-comm-type a2a --group-query-attention --num-query-groups 4",
        "--context-parallel-size 8 --cp-comm-type p2p --group-query-attention --num-query-groups 4",
    ),
    "MG414": ("--context-parallel-size 2 --cp-comm-type p2p a2a", "--context-parallel-size 2 --cp-comm-type a2a"),
    "MG415": ("--seq-length 4096", "--seq-length 4096 --max-position-embeddings 4096"),
    "MG416": ("!--hidden-size", ""),
    "MG417": (f"{TENSOR} --vocab-size 1000 --padded-vocab-size 1001", f"{TENSOR} --vocab-size 1000"),
    "MG418": (
        f"{TENSOR} --vocab-size 151669 --tensor-model-parallel-size 8",
        f"{TENSOR} --vocab-size 151669 --tensor-model-parallel-size 8 --make-vocab-size-divisible-by 19008",
    ),
    "MG501": (f"{EXPERTS} --num-experts 6 --expert-model-parallel-size 4", f"{EXPERTS} --expert-model-parallel-size 4"),
    "MG502": ("--expert-model-parallel-size 4", f"{EXPERTS} --expert-model-parallel-size 4"),
    "MG503": (f"{EXPERTS} --expert-model-parallel-size 4 --fp16 !--bf16", f"{EXPERTS} --expert-model-parallel-size 4"),
    "MG504": (f"{EXPERTS} --tensor-model-parallel-size 2", f"{EXPERTS} {TENSOR}"),
    "MG505": (f"{EXPERTS} --moe-grouped-gemm !--bf16", f"{EXPERTS} --moe-grouped-gemm"),
    "MG506": (f"{EXPERTS} {TENSOR} !--disable-bias-linear", f"{EXPERTS} {TENSOR}"),
    "MG507": ("--moe-ffn-hidden-size 512", EXPERTS),
    "MG508": ("--num-experts 8 --disable-bias-linear", EXPERTS),
    "MG509": (f"{EXPERTS} --moe-router-topk 9", f"{EXPERTS} --moe-router-topk 2"),
    "MG510": (
        f"{EXPERTS} --moe-shared-expert-intermediate-size 512 --moe-shared-expert-overlap",
        (
            f"{EXPERTS} --moe-shared-expert-intermediate-size 512 --moe-shared-expert-overlap"
            " --moe-token-dispatcher-type alltoall"
        ),
    ),
    "MG511": (
        f"{EXPERTS} --expert-model-parallel-size 8",
        f"{EXPERTS} --expert-model-parallel-size 8 --moe-token-dispatcher-type alltoall",
    ),
    "MG512": (f"{EXPERTS} --moe-enable-deepep", f"{EXPERTS} --moe-enable-deepep --moe-token-dispatcher-type flex"),
    "MG513": (
        f"{EXPERTS} --overlap-moe-expert-parallel-comm --moe-token-dispatcher-type alltoall",
        (
            f"{EXPERTS} --overlap-moe-expert-parallel-comm --moe-token-dispatcher-type alltoall"
            " --expert-model-parallel-size 2"
        ),
    ),
    "MG514": (
        "--delay-wgrad-compute",
        f"{EXPERTS} --delay-wgrad-compute --overlap-moe-expert-parallel-comm --expert-model-parallel-size 2",
    ),
    "MG515": (
        "--moe-router-padding-for-fp8",
        "--moe-router-padding-for-fp8 --fp8-format hybrid --moe-token-dispatcher-type alltoall",
    ),
    "MG516": ("--mtp-num-layers 1", "--mtp-num-layers 1 --position-embedding-type rope"),
    "MG601": ("!--use-distributed-optimizer", ""),
    "MG602": (
        "--overlap-param-gather-with-optimizer-step",
        f"{CHUNKS} --overlap-param-gather-with-optimizer-step --ckpt-format torch",
    ),
    "MG603": ("!--overlap-grad-reduce !--overlap-param-gather", ""),
    "MG604": ("!--use-distributed-optimizer !--overlap-param-gather", ""),
    "MG605": (f"{TORCH} {PIPE} 2", TORCH),
    "MG606": (f"{TORCH} {FSDP}", TORCH),
    "MG607": ("--use-megatron-fsdp", FSDP),
    "MG608": ("--ckpt-format fsdp_dtensor", FSDP),
    "MG609": ("--ckpt-format torch_dcp", f"{TORCH} --ckpt-format torch_dcp"),
    "MG610": ("--data-parallel-sharding-strategy optim", f"{FSDP} --data-parallel-sharding-strategy optim"),
    "MG611": (f"{FSDP} --optimizer lion", f"{FSDP} --optimizer sgd"),
    "MG612": (f"{FSDP} --optimizer lion", "--optimizer lion"),
    "MG613": ("--optimizer muon", "--optimizer muon !--use-distributed-optimizer !--overlap-param-gather"),
    "MG614": ("--optimizer-cpu-offload", "--optimizer-cpu-offload --use-precision-aware-optimizer"),
    "MG615": ("--optimizer-offload-fraction 1.5", "--optimizer-offload-fraction 0.5"),
    "MG616": (
        "--use-precision-aware-optimizer !--use-distributed-optimizer !--overlap-param-gather",
        "--use-precision-aware-optimizer",
    ),
    "MG617": ("--exp-avg-dtype bf16", "--exp-avg-dtype bf16 --use-precision-aware-optimizer"),
    "MG618": ("--accumulate-allreduce-grads-in-fp32 --main-grads-dtype bf16", "--accumulate-allreduce-grads-in-fp32"),
    "MG619": (
        f"{FSDP} --init-model-with-meta-device --data-parallel-sharding-strategy no_shard",
        f"{FSDP} --init-model-with-meta-device",
    ),
    "MG620": (f"{FSDP} {PIPE} 2", f"{FSDP} {PIPE} 2 --data-parallel-sharding-strategy optim"),
    "MG641": (
        "--recompute-granularity full",
        "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
    ),
    "MG642": ("--recompute-granularity selective --recompute-num-layers 1", "--recompute-granularity selective"),
    "MG643": ("--recompute-num-layers 1 --recompute-method block", ""),
    "MG644": (
        "--recompute-granularity selective --recompute-modules attention",
        "--recompute-granularity selective --recompute-modules core_attn",
    ),
    "MG645": (
        "--recompute-granularity selective --recompute-modules moe_act",
        "--recompute-granularity selective --recompute-modules moe_act --moe-grouped-gemm",
    ),
    "MG646": (
        "--recompute-granularity selective",
        "--recompute-granularity selective --recompute-modules layernorm mlp",
    ),
    "MG647": (
        f"{PIPE} 4 --recompute-granularity full --recompute-method block --recompute-num-layers 7",
        f"{PIPE} 4 --recompute-granularity full --recompute-method block --recompute-num-layers 6",
    ),
    "MG653": (
        "--recompute-granularity selective --recompute-modules moe",
        f"--recompute-granularity selective --recompute-modules moe {EXPERTS}",
    ),
    "MG648": (f"--distribute-saved-activations {FULL}", f"--distribute-saved-activations {FULL} {TENSOR} !{SP}"),
    "MG649": (f"--cpu-offloading-num-layers 4 {PIPE} 2", "--cpu-offloading-num-layers 4"),
    "MG650": (
        "--fine-grained-activation-offloading --offload-modules attn_proj",
        "--fine-grained-activation-offloading --offload-modules attn_proj core_attn",
    ),
    "MG651": (
        "--fine-grained-activation-offloading --offload-modules core_attn --transformer-impl local",
        "--fine-grained-activation-offloading --offload-modules core_attn",
    ),
    "MG652": (
        "--recompute-activations --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
        "--recompute-activations",
    ),
    "MG701": (f"{TENSOR} {CONNECTIONS}=8", f"{TENSOR} {CONNECTIONS}=1"),
    "MG702": (TENSOR, f"{TENSOR} {CONNECTIONS}=1"),
    "MG703": (f"{FSDP} {CONNECTIONS}=1", FSDP),
    "MG704": (f"{FSDP} {TENSOR}", FSDP),
    "MG705": ("--tp-comm-overlap", f"{TENSOR} --tp-comm-overlap"),
    "MG706": ("--fp16", ""),
    "MG707": ("--fp8-format hybrid --fp4-format e2m1", "--fp8-format hybrid"),
    "MG708": ("--fp8-format hybrid !--bf16", "--fp8-format hybrid"),
    "MG709": ("!--bf16", ""),
    "MG710": ("--fp8-param-gather", "--fp8-param-gather --fp8-format hybrid"),
    "MG711": (
        "--fp8-format hybrid --first-last-layers-bf16",
        "--fp8-format hybrid --first-last-layers-bf16 --fp8-recipe tensorwise",
    ),
    "MG712": ("--fp32-residual-connection !--bf16", "--fp32-residual-connection"),
    "MG713": (
        "--cuda-graph-impl local --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
        "--cuda-graph-impl local",
    ),
    "MG714": (
        "--cuda-graph-impl transformer_engine PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "--cuda-graph-impl transformer_engine PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True NCCL_GRAPH_REGISTER=0",
    ),
    "MG715": (
        "--cuda-graph-impl full_iteration",
        "--cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad",
    ),
    "MG716": (
        "--hybrid-context-parallel",
        "--hybrid-context-parallel --calculate-per-token-loss",
    ),
    "MG718": (
        "--cuda-graph-impl local --recompute-granularity selective --recompute-modules mlp --hidden-dropout 0.1",
        "--cuda-graph-impl local --recompute-granularity selective --recompute-modules mlp --hidden-dropout 0",
    ),
    "MG719": (
        "--fine-grained-activation-offloading --offload-modules core_attn",
        "--fine-grained-activation-offloading --offload-modules core_attn NVTE_CPU_OFFLOAD_V1=1",
    ),
    "MG720": (
        "--transformer-impl local --seq-length 4096 --max-position-embeddings 4096",
        "--transformer-impl local --seq-length 1024",
    ),
    "MG721": ("--attention-backend local", "--attention-backend local --spec local"),
    "MG717": (
        "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te",
        "--cross-entropy-loss-fusion --cross-entropy-fusion-impl native",
    ),
}
"""Code -> (what breaks the rule, what does not)."""
VERSIONS = {"MG222": "0.9", "MG224": "0.7", "MG403": "0.15", "MG503": "0.15", "MG613": "0.16"}
"""Rules of older versions -> a version for which they hold."""


def merged(base: str, changes: str) -> tuple[list[str], dict[str, str]]:
    """Return the arguments of `base` with changes, and the variables among these."""
    flags: dict[str, list[str]] = {}
    variables = {}
    last = ""
    for word in f"{base} {changes}".split():
        if word.startswith("!"):
            flags.pop(word[1:], None)
        elif word.startswith("--"):
            last = word
            flags[word] = []
        elif re.match(r"[A-Z0-9_]+=", word):
            name, _, value = word.partition("=")
            variables[name] = value
        else:
            flags[last].append(word)
    return [item for flag, values in flags.items() for item in (flag, *values)], variables
