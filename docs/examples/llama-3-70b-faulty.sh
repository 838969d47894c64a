#!/bin/bash
#SBATCH --job-name=llama-3-70b
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8

export CUDA_DEVICE_MAX_CONNECTIONS=1
export WANDB_API_KEY=${WANDB_API_KEY:-}

GPUS_PER_NODE=8
TP=${TP:-8}
PP=3

MODEL_ARGS=(
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --group-query-attention
    --num-query-groups 8
    --seq-length 4096
    --max-position-embeddings 8192
    --position-embedding-type rope
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --vocab-size 128256
)

PARALLEL_ARGS=(
    --tensor-model-parallel-size $TP
    --pipeline-model-parallel-size $PP
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gater
)

srun torchrun --nnodes "$SLURM_NNODES" --nproc-per-node $GPUS_PER_NODE \
    --rdzv-backend c10d --rdzv-endpoint "$(hostname):29500" \
    pretrain_gpt.py "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" \
    --micro-batch-size 1 --global-batch-size 1024 \
    --recompute-granularity selective \
    --bf16 --tokenizer-type HuggingFaceTokenizer --data-path "$DATA"
