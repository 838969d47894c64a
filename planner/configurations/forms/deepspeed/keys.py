"""The keys of DeepSpeed's JSON.

From the classes of `deepspeed` 0.19.8 (`runtime/config.py`, `runtime/zero/config.py`, `runtime/precision_config.py` and
their neighbours). Blocks of pydantic models refuse unknown keys; others, and the outermost level, ignore them.
"""

from __future__ import annotations

from planner.configurations.nested import Kinds, Table, table

VERSION = "0.19.8"
"""Of DeepSpeed, whose keys these are."""

REMOVED_IN = "0.19.7"
"""First version of DeepSpeed that refuses the keys of `REMOVED`."""
REMOVED = (
    "amp",
    "compression_training",
    "curriculum_learning",
    "eigenvalue",
    "elasticity",
    "graph_harvesting",
    "nebula",
    "progressive_layer_drop",
    "quantize_training",
    "sparse_attention",
    "sparse_gradients",
    "zero_optimization.mics_hierarchical_params_gather",
    "zero_optimization.mics_shard_size",
    "zero_optimization.zeropp_loco_param",
)
"""Keys that DeepSpeed knew once."""

_OUTER: Kinds = {
    "int": (
        "train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps sequence_parallel_size "
        "data_parallel_size vocabulary_size"
    ),
    "number": "gradient_clipping gradient_predivide_factor steps_per_print",
    "bool": (
        "prescale_gradients dump_state disable_allgather disable_python_gc wall_clock_breakdown memory_breakdown "
        "dataloader_drop_last zero_allow_untested_optimizer zero_force_ds_cpu_optimizer "
        "managed_gradient_accumulation use_data_before_expert_parallelism"
    ),
    "text": "communication_data_type seq_parallel_communication_data_type gradient_allreduce_op log_level",
    "block": (
        "activation_checkpointing aio autotuning bf16 bfloat16 checkpoint comet comms_logger compile csv_monitor "
        "data_efficiency data_types datastates_ckpt expert_parallel flops_profiler fp16 hybrid_engine optimizer "
        "pipeline scheduler tensor_parallel tensorboard timers torch_autocast wandb weight_quantization"
    ),
    "any": (
        "zero_optimization amp compression_training curriculum_learning eigenvalue elasticity graph_harvesting nebula "
        "progressive_layer_drop quantize_training sparse_attention sparse_gradients"
    ),
}

_STRICT: dict[str, Kinds] = {
    "zero_optimization": {
        "0|1|2|3": "stage",
        "bool": (
            "gather_16bit_weights_on_model_save use_all_reduce_for_fetch_params allgather_sequential "
            "contiguous_gradients reduce_scatter use_multi_rank_bucket_allreduce allgather_partitions overlap_comm "
            "compute_grad_norm load_from_fp32_weights elastic_checkpoint cpu_offload_param cpu_offload_use_pin_memory "
            "cpu_offload stage3_gather_16bit_weights_on_model_save stage3_use_all_reduce_for_fetch_params "
            "stage3_allgather_sequential stage3_gather_fp16_weights_on_model_save ignore_unused_parameters "
            "legacy_stage1 round_robin_gradients parameter_alignment zero_quantized_weights "
            "zero_quantized_nontrainable_weights zero_quantized_gradients memory_efficient_linear "
            "pipeline_loading_checkpoint override_module_apply log_trace_cache_warnings enable_sanity_checks "
            "save_muon_momentum_buffer_in_memory mics_hierarchical_params_gather"
        ),
        "int": (
            "reduce_bucket_size allgather_bucket_size sub_group_size stage3_prefetch_bucket_size "
            "stage3_param_persistence_threshold stage3_model_persistence_threshold stage3_max_live_parameters "
            "prefetch_bucket_size param_persistence_threshold model_persistence_threshold max_live_parameters "
            "max_reuse_distance module_granularity_threshold "
            "stage3_max_reuse_distance stage3_module_granularity_threshold zero_hpz_partition_size mics_shard_size"
        ),
        "block": "offload_param offload_optimizer zenflow leaf_module",
        "any": "zeropp_loco_param",
    },
    "zero_optimization.offload_param": {
        "none|cpu|nvme": "device",
        "text": "nvme_path",
        "int": "buffer_count buffer_size max_in_cpu",
        "bool": "pin_memory",
    },
    "zero_optimization.offload_optimizer": {
        "none|cpu|nvme": "device",
        "text": "nvme_path",
        "int": "buffer_count",
        "bool": "pin_memory pipeline_read pipeline_write fast_init super_offload",
        "number": "ratio cpuadam_cores_perc",
    },
    "zero_optimization.zenflow": {
        "number": "topk_ratio auto_ratio pt_reserved_cores_perc",
        "text": "select_strategy",
        "any": "select_interval update_interval",
        "bool": "overlap_step offload",
        "int": "full_warm_up_rounds steps_per_epoch",
    },
    "zero_optimization.leaf_module": {
        "list": "classes names name_suffixes",
    },
    "bf16": {
        "bool": (
            "enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads bf16_optimizer_states"
        ),
    },
    "fp16": {
        "bool": "enabled auto_cast consecutive_hysteresis fp16_master_weights_and_grads",
        "number": "loss_scale",
        "int": "initial_scale_power loss_scale_window hysteresis min_loss_scale",
    },
    "tensor_parallel": {
        "text": "dtype preset_model",
        "int": "autotp_size",
        "bool": "tp_overlap_comm vocab_parallel_lm_head keep_module_on_host kernel_inject",
        "torch|liger": "vocab_parallel_ce_backend",
        "block": "tp tensor_parallel",
        "any": "injection_policy_tuple partition_config",
    },
    "tensor_parallel.tp": {
        "int": "tp_size tp_grain_size",
        "any": "mpu tp_group",
    },
    "tensor_parallel.tensor_parallel": {
        "int": "tp_size tp_grain_size",
        "any": "mpu tp_group",
    },
    "compile": {
        "bool": (
            "deepcompile autoep_non_moe free_activation offload_activation offload_activation_pin_memory "
            "offload_opt_states double_buffer symmetric_memory debug_log offload_parameters sync_before_reduce "
            "sync_after_reduce sync_before_allgather sync_after_allgather keep_int_input_tensors "
            "keep_all_input_tensors"
        ),
        "int": "free_activation_threshold",
        "list": "passes",
    },
    "comms_logger": {
        "bool": "enabled prof_all verbose debug",
        "list": "prof_ops",
    },
    "tensorboard": {
        "bool": "enabled",
        "text": "output_path job_name",
    },
    "wandb": {
        "bool": "enabled",
        "text": "group team project",
    },
    "csv_monitor": {
        "bool": "enabled",
        "text": "output_path job_name",
    },
    "comet": {
        "bool": "enabled online",
        "int": "samples_log_interval",
        "text": "project workspace api_key experiment_name experiment_key mode",
    },
    "timers.throughput": {
        "bool": "enabled synchronized",
    },
    "hybrid_engine": {
        "bool": "enabled release_inference_cache pin_parameters enable_cuda_graph",
        "int": "max_out_tokens inference_tp_size tp_gather_partition_size",
    },
    "weight_quantization": {
        "bool": "enabled",
        "int": "num_bits q_groups",
        "asymmetric|symmetric": "q_type",
        "any": "quantized_initialization post_init_quant",
    },
}

_LOOSE: dict[str, Kinds] = {
    "expert_parallel": {
        "bool": (
            "enabled validate_folding_routing async_split_plan use_grouped_mm disable_triton_grouped_mm route_norm "
            "has_shared_experts"
        ),
        "int": "autoep_size expert_tensor_parallel_size comm_num_sm comm_qp_margin comm_max_tokens_per_rank",
        "text": (
            "preset_model moe_layer_pattern expert_pattern router_pattern expert_w1 expert_w2 num_experts_attr "
            "top_k_attr shared_experts_pattern shared_experts_gate_pattern expert_activation"
        ),
        "number": "route_scale load_balance_coeff",
        "auto|pre|post": "score_apply",
        "auto|weighted_sum|fused_weighted_sum|legacy_bmm": "combine_impl",
        "auto|eager|fused": "row_weighting_impl",
        "separate|fused": "gate_up_impl",
        "comm|deepep": "comm_backend",
        "any": "num_expert_groups num_limited_groups top_k routed_scaling_factor expert_w3",
        "auto|softmax|sigmoid": "score_func",
    },
    "activation_checkpointing": {
        "bool": (
            "contiguous_memory_optimization cpu_checkpointing partition_activations profile "
            "synchronize_checkpoint_boundary"
        ),
        "int": "number_checkpoints",
    },
    "pipeline": {
        "any": "stages partition seed_layers",
        "int": "activation_checkpoint_interval",
        "bool": "pipe_partitioned grad_partitioned use_reentrant",
    },
    "aio": {
        "any": "block_size intra_op_parallelism overlap_events queue_depth single_submit use_gds thread_count",
    },
    "autotuning": {
        "any": (
            "arg_mappings enabled end_profile_step exps_dir fast max_train_batch_size "
            "max_train_micro_batch_size_per_gpu metric metric_path min_train_batch_size "
            "min_train_micro_batch_size_per_gpu model_info model_info_path mp_size num_tuning_micro_batch_sizes "
            "overwrite results_dir start_profile_step tuner_early_stopping tuner_num_trials tuner_type"
        ),
    },
    "autotuning.model_info": {
        "any": "hidden_size num_layers num_params profile",
    },
    "checkpoint": {
        "WARN|IGNORE|FAIL": "tag_validation",
        "bool": "load_universal use_node_local_storage",
        "any": "checkpoint_serialization parallel_write writer",
    },
    "checkpoint.parallel_write": {
        "bool": "pipeline_stage",
    },
    "checkpoint.writer": {
        "any": "data_parallel decoupled io_buffer_double io_buffer_size io_multiplier show_statistics type",
    },
    "data_efficiency": {
        "any": "data_routing data_sampling enabled seed",
    },
    "data_efficiency.data_routing": {
        "any": "enabled random_ltd",
    },
    "data_efficiency.data_routing.random_ltd": {
        "any": "enabled",
    },
    "data_efficiency.data_sampling": {
        "any": "curriculum_learning dynamic_batching enabled num_epochs num_workers pin_memory",
    },
    "data_efficiency.data_sampling.curriculum_learning": {
        "any": "enabled",
    },
    "data_efficiency.data_sampling.dynamic_batching": {
        "any": "enabled lr_scaling_method max_batch_size min_batch_size sequence_picking_order verbose",
    },
    "data_types": {
        "any": "buffer_dtype grad_accum_dtype keep_in_fp32_modules param_dtype",
    },
    "flops_profiler": {
        "any": "detailed enabled module_depth output_file profile_step recompute_fwd_factor top_modules",
    },
    "optimizer": {
        "any": "legacy_fusion type params",
    },
    "scheduler": {
        "any": "params type",
    },
    "timers": {
        "any": "throughput",
    },
    "torch_autocast": {
        "bool": "enabled",
        "any": "dtype lower_precision_safe_modules",
    },
}

TABLES: dict[str, Table] = {
    "": table(_OUTER, strict=False),
    "bfloat16": table(_STRICT["bf16"], strict=True),
    **{block: table(kinds, strict=True) for block, kinds in _STRICT.items()},
    **{block: table(kinds, strict=False) for block, kinds in _LOOSE.items()},
}
"""Block -> its keys; blocks that are not here (parameters of optimizers and schedulers) may hold anything."""
