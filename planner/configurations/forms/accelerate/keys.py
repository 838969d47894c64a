"""The keys of Accelerate's YAML.

From `accelerate` 1.15.0: the fields of `ClusterConfig` (`commands/config/config_args.py`) and the arguments of
``accelerate launch`` (`commands/launch.py`), which the keys of blocks become.
"""

from __future__ import annotations

from planner.configurations.nested import Kinds, Table, table

VERSION = "1.15.0"
"""Of Accelerate, whose keys these are."""

DISTRIBUTED_TYPES = (
    "NO",
    "MULTI_CPU",
    "MULTI_GPU",
    "MULTI_NPU",
    "MULTI_MLU",
    "MULTI_SDAA",
    "MULTI_MUSA",
    "MULTI_XPU",
    "DEEPSPEED",
    "FSDP",
    "XLA",
    "MEGATRON_LM",
    "MULTI_HPU",
    "MULTI_NEURON",
)
SAGEMAKER_TYPES = ("DATA_PARALLEL", "MODEL_PARALLEL")
PRECISIONS = ("no", "fp16", "bf16", "fp8")

_OUTER: Kinds = {
    "LOCAL_MACHINE|AMAZON_SAGEMAKER": "compute_environment",
    "|".join((*DISTRIBUTED_TYPES, *SAGEMAKER_TYPES)): "distributed_type",
    "|".join(PRECISIONS): "mixed_precision",
    "int": "num_processes machine_rank num_machines main_process_port",
    "bool": ("use_cpu debug same_network enable_cpu_affinity downcast_bf16 tpu_use_cluster tpu_use_sudo fp16"),
    "static|c10d|etcd|etcd-v2": "rdzv_backend",
    "text": "main_process_ip main_training_function tpu_name tpu_zone command_file dynamo_backend",
    "list": "commands tpu_vm tpu_env",
    "any": "gpu_ids",
    "block": (
        "fp8_config deepspeed_config fsdp_config parallelism_config megatron_lm_config mpirun_config dynamo_config"
    ),
}

_BLOCKS: dict[str, Kinds] = {
    "fsdp_config": {
        "1|2": "fsdp_version",
        "bool": (
            "fsdp_offload_params fsdp_forward_prefetch fsdp_use_orig_params fsdp_cpu_ram_efficient_loading "
            "fsdp_sync_module_states fsdp_activation_checkpointing fsdp_activation_checkpointing_offload"
        ),
        "int": "fsdp_min_num_params",
        "any": (
            "fsdp_reshard_after_forward fsdp_sharding_strategy fsdp_backward_prefetch fsdp_ignored_modules "
            "fsdp_transformer_layer_cls_to_wrap"
        ),
        "TRANSFORMER_BASED_WRAP|SIZE_BASED_WRAP|NO_WRAP": "fsdp_auto_wrap_policy",
        "FULL_STATE_DICT|LOCAL_STATE_DICT|SHARDED_STATE_DICT": "fsdp_state_dict_type",
    },
    "megatron_lm_config": {
        "int": (
            "megatron_lm_tp_degree megatron_lm_decoder_last_pipeline_num_layers megatron_lm_pp_degree "
            "megatron_lm_num_micro_batches megatron_lm_recompute_num_layers megatron_lm_expert_model_parallel_size "
            "megatron_lm_context_parallel_size megatron_lm_expert_tensor_parallel_size"
        ),
        "bool": (
            "megatron_lm_use_custom_fsdp megatron_lm_no_load_optim megatron_lm_eod_mask_loss "
            "megatron_lm_overlap_cpu_optimizer_d2h_h2d megatron_lm_no_save_optim megatron_lm_optimizer_cpu_offload "
            "megatron_lm_use_precision_aware_optimizer megatron_lm_sequence_parallelism "
            "megatron_lm_recompute_activations megatron_lm_use_distributed_optimizer megatron_lm_attention_backend "
            "megatron_lm_attention_softmax_in_fp32 megatron_lm_calculate_per_token_loss "
            "megatron_lm_use_rotary_position_embeddings"
        ),
        "number": "megatron_lm_gradient_clipping megatron_lm_attention_dropout megatron_lm_hidden_dropout",
        "full|selective": "megatron_lm_recompute_granularity",
        "uniform|block": "megatron_lm_recompute_method",
    },
    "parallelism_config": {
        "int": (
            "parallelism_config_dp_replicate_size parallelism_config_dp_shard_size parallelism_config_tp_size "
            "parallelism_config_cp_size parallelism_config_sp_size"
        ),
        "torch": "parallelism_config_cp_backend",
        "allgather|alltoall": "parallelism_config_cp_comm_strategy",
        "any": "parallelism_config_sp_seq_length",
        "text": "parallelism_config_sp_attn_implementation",
        "deepspeed": "parallelism_config_sp_backend",
        "bool": "parallelism_config_sp_seq_length_is_variable",
    },
    "fp8_config": {
        "ao|te|msamp": "fp8_backend",
        "bool": "fp8_use_autocast_during_eval fp8_enable_fsdp_float8_all_gather fp8_pad_inner_dim",
        "int": "fp8_margin fp8_interval fp8_amax_history_len",
        "HYBRID|E4M3|E5M2": "fp8_format",
        "max|most_recent": "fp8_amax_compute_algo",
        "any": "fp8_override_linear_precision",
        "O1|O2": "fp8_opt_level",
    },
    "dynamo_config": {
        "text": "dynamo_backend",
        "default|reduce-overhead|max-autotune": "dynamo_mode",
        "bool": "dynamo_use_fullgraph dynamo_use_dynamic dynamo_use_regional_compilation",
    },
    "deepspeed_config": {
        "text": (
            "deepspeed_config_file offload_optimizer_nvme_path offload_param_nvme_path deepspeed_hostfile "
            "deepspeed_exclusion_filter deepspeed_inclusion_filter deepspeed_moe_layer_cls_names"
        ),
        "none|cpu|nvme": "offload_optimizer_device offload_param_device",
        "pdsh|standard|openmpi|mvapich|mpich|nossh|slurm": "deepspeed_multinode_launcher",
        "0|1|2|3": "zero_stage",
        "int": "gradient_accumulation_steps",
        "number": "gradient_clipping",
        "bool": "zero3_init_flag zero3_save_16bit_model",
    },
}

TABLES: dict[str, Table] = {
    "": table(_OUTER, strict=True),
    **{block: table(kinds, strict=False) for block, kinds in _BLOCKS.items()},
}
"""Block -> its keys. Unknown ones are refused outermost, and become arguments that nobody reads inside a block."""

PREFIXES = {"fsdp_config": "fsdp_", "fp8_config": "fp8_", "dynamo_config": "dynamo_"}
"""Block -> what ``accelerate launch`` puts before its keys where it is missing."""
