; Triton 3.9.0, make.py: ('gemm', 'fp16', {}, (32, 32, 32), {'matrix_instr_nonkdim': 16})
	.amdgcn_target "amdgpu9.42-amd-amdhsa-unknown-gfx942"
	.amdhsa_code_object_version 5
	.text
gemm:
.Lfunc_begin0:
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	s_load_dwordx8 s[4:11], s[0:1], 0x8
	s_load_dwordx4 s[12:15], s[0:1], 0x28
	s_waitcnt lgkmcnt(0)
	s_branch .LBB0_0
.Ltmp0:
.LBB0_0:
.Ltmp1:
	v_readfirstlane_b32 s11, v0
	s_and_b32 s0, s11, 0xc0
	v_and_or_b32 v12, v0, 63, s0
	s_lshl_b32 s8, s16, 5
	v_lshrrev_b32_e32 v10, 3, v12
	v_or_b32_e32 v2, s8, v10
	v_lshlrev_b32_e32 v1, 2, v0
	v_mul_lo_u32 v2, v2, s10
	v_and_b32_e32 v11, 28, v1
	v_ashrrev_i32_e32 v3, 31, v2
	s_cmp_gt_i32 s10, 0
	v_lshl_add_u64 v[4:5], v[2:3], 1, s[2:3]
	v_mov_b32_e32 v3, 0
	s_cselect_b64 s[0:1], -1, 0
	s_cmp_lt_i32 s10, 1
	v_lshlrev_b32_e32 v2, 1, v11
	s_cbranch_scc1 .LBB0_2
	v_lshl_add_u64 v[6:7], v[4:5], 0, v[2:3]
	global_load_dwordx2 v[14:15], v[6:7], off
	s_branch .LBB0_3
.LBB0_2:
	v_mov_b32_e32 v14, 0
	v_mov_b32_e32 v15, v14
.LBB0_3:
	s_lshl_b32 s2, s17, 5
	s_and_b64 s[0:1], s[0:1], exec
	v_or_b32_e32 v6, s2, v11
	s_cselect_b32 s0, 1, 0
	s_cmp_lg_u32 s0, 1
	v_ashrrev_i32_e32 v7, 31, v6
	s_cbranch_scc1 .LBB0_5
	v_mul_lo_u32 v8, v10, s9
	v_ashrrev_i32_e32 v9, 31, v8
	v_lshl_add_u64 v[8:9], v[8:9], 1, s[4:5]
	v_lshl_add_u64 v[8:9], v[6:7], 1, v[8:9]
	global_load_dwordx2 v[18:19], v[8:9], off
	s_branch .LBB0_6
.LBB0_5:
	v_mov_b32_e32 v18, 0
	v_mov_b32_e32 v19, v18
.LBB0_6:
	v_and_b32_e32 v9, 0x70, v12
	v_lshlrev_b32_e32 v3, 3, v12
	v_lshrrev_b32_e32 v12, 1, v9
	v_xor_b32_e32 v12, v12, v3
	v_and_b32_e32 v8, 15, v0
	s_and_b32 s0, s11, 0x80
	v_add_u32_e32 v16, 0, v12
	s_sub_i32 s1, s10, 32
	s_waitcnt vmcnt(0)
	ds_write_b64 v16, v[14:15]
	v_add_u32_e32 v17, 0, v3
	v_mov_b32_e32 v3, 0
	s_cmp_lt_i32 s1, 1
	v_lshlrev_b32_e32 v12, 6, v8
	v_and_b32_e32 v13, 56, v1
	v_and_b32_e32 v14, 48, v0
	v_lshlrev_b32_e32 v15, 1, v8
	ds_write_b64 v17, v[18:19] offset:2048
	s_cbranch_scc1 .LBB0_9
	v_lshrrev_b32_e32 v0, 1, v14
	s_lshl_b32 s3, s0, 3
	v_xor_b32_e32 v0, v13, v0
	v_or3_b32 v0, s3, v12, v0
	v_add_u32_e32 v18, 0, v0
	v_xor_b32_e32 v0, 32, v0
	v_add_u32_e32 v19, 0, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b64 v[28:29], v18
	ds_read_b64 v[30:31], v19
	s_mov_b32 s3, 32
	s_lshr_b32 s12, s11, 1
	v_lshl_add_u64 v[6:7], v[6:7], 1, s[4:5]
	v_lshl_add_u64 v[0:1], v[4:5], 0, v[2:3]
	s_and_b32 s12, s12, 32
	v_or_b32_e32 v21, 32, v10
	s_setprio 1
	global_load_dwordx2 v[32:33], v[0:1], off offset:64
	v_lshl_add_u32 v0, v14, 4, s12
	v_add_u32_e32 v20, v0, v15
	ds_read_u16 v2, v20 offset:2048
	ds_read_u16 v3, v20 offset:2112
	ds_read_u16 v22, v20 offset:2176
	ds_read_u16 v23, v20 offset:2240
	ds_read_u16 v24, v20 offset:3072
	ds_read_u16 v25, v20 offset:3136
	ds_read_u16 v26, v20 offset:3200
	ds_read_u16 v27, v20 offset:3264
	s_setprio 0
	v_mul_lo_u32 v0, v21, s9
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[0:1], v[0:1], 1, v[6:7]
	global_load_dwordx2 v[34:35], v[0:1], off
	s_mov_b32 s4, 0x5040100
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v1, v23, v22, s4
	v_perm_b32 v0, v3, v2, s4
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v23, v27, v26, s4
	v_perm_b32 v22, v25, v24, s4
	v_mfma_f32_16x16x16_f16 v[0:3], v[0:1], v[28:29], 0
	s_setprio 1
	v_mfma_f32_16x16x16_f16 v[0:3], v[22:23], v[30:31], v[0:3]
	s_setprio 0
	s_cmp_lt_u32 s1, 33
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b64 v16, v[32:33]
	s_waitcnt vmcnt(0)
	ds_write_b64 v17, v[34:35] offset:2048
	s_cbranch_scc1 .LBB0_10
.LBB0_8:
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b64 v[32:33], v18
	ds_read_b64 v[34:35], v19
	s_add_i32 s3, s3, 32
	v_or_b32_e32 v22, s3, v11
	v_ashrrev_i32_e32 v23, 31, v22
	v_or_b32_e32 v21, s3, v10
	v_lshl_add_u64 v[22:23], v[22:23], 1, v[4:5]
	s_setprio 1
	global_load_dwordx2 v[36:37], v[22:23], off
	ds_read_u16 v24, v20 offset:2048
	ds_read_u16 v25, v20 offset:2112
	ds_read_u16 v26, v20 offset:2176
	ds_read_u16 v27, v20 offset:2240
	ds_read_u16 v28, v20 offset:3072
	ds_read_u16 v29, v20 offset:3136
	ds_read_u16 v30, v20 offset:3200
	ds_read_u16 v31, v20 offset:3264
	s_setprio 0
	v_mul_lo_u32 v22, v21, s9
	v_ashrrev_i32_e32 v23, 31, v22
	v_lshl_add_u64 v[22:23], v[22:23], 1, v[6:7]
	global_load_dwordx2 v[38:39], v[22:23], off
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v23, v27, v26, s4
	v_perm_b32 v22, v25, v24, s4
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v25, v31, v30, s4
	v_perm_b32 v24, v29, v28, s4
	v_mfma_f32_16x16x16_f16 v[0:3], v[22:23], v[32:33], v[0:3]
	s_setprio 1
	v_mfma_f32_16x16x16_f16 v[0:3], v[24:25], v[34:35], v[0:3]
	s_setprio 0
	s_cmp_lt_i32 s3, s1
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b64 v16, v[36:37]
	s_waitcnt vmcnt(0)
	ds_write_b64 v17, v[38:39] offset:2048
	s_cbranch_scc1 .LBB0_8
	s_branch .LBB0_10
.LBB0_9:
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v1, v0
	v_mov_b32_e32 v2, v0
	v_mov_b32_e32 v3, v0
.LBB0_10:
	s_add_i32 s10, s10, 31
	s_cmp_lt_i32 s10, 32
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_12
	s_lshr_b32 s1, s11, 1
	s_and_b32 s1, s1, 32
	v_lshlrev_b32_e32 v4, 4, v14
	v_add3_u32 v6, s1, v4, v15
	ds_read_u16 v4, v6 offset:2240
	ds_read_u16 v5, v6 offset:2176
	ds_read_u16 v7, v6 offset:2112
	ds_read_u16 v10, v6 offset:2048
	v_lshrrev_b32_e32 v11, 1, v14
	s_lshl_b32 s1, s0, 3
	v_xor_b32_e32 v11, v13, v11
	v_or3_b32 v11, s1, v12, v11
	v_add_u32_e32 v12, 0, v11
	s_mov_b32 s1, 0x5040100
	v_xad_u32 v11, v11, 32, 0
	ds_read_b64 v[14:15], v12
	ds_read_b64 v[16:17], v11
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v5, v4, v5, s1
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v4, v7, v10, s1
	ds_read_u16 v7, v6 offset:3264
	ds_read_u16 v10, v6 offset:3200
	ds_read_u16 v12, v6 offset:3136
	ds_read_u16 v6, v6 offset:3072
	s_waitcnt lgkmcnt(5)
	v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[14:15], v[0:3]
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v7, v7, v10, s1
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v6, v12, v6, s1
	s_nop 1
	v_mfma_f32_16x16x16_f16 v[0:3], v[6:7], v[16:17], v[0:3]
.LBB0_12:
	s_lshr_b32 s0, s0, 3
	v_or_b32_e32 v5, s0, v8
	v_or_b32_e32 v5, s8, v5
	v_lshrrev_b32_e32 v4, 2, v9
	v_mul_lo_u32 v6, v5, s9
	v_or_b32_e32 v4, s2, v4
	v_ashrrev_i32_e32 v7, 31, v6
	v_lshl_add_u64 v[6:7], v[6:7], 2, s[6:7]
	v_ashrrev_i32_e32 v5, 31, v4
	v_lshl_add_u64 v[4:5], v[4:5], 2, v[6:7]
	global_store_dwordx4 v[4:5], v[0:3], off
	s_endpgm
.Ltmp2:
.Lfunc_end0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel gemm
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 56
		.amdhsa_user_sgpr_count 16
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_kernarg_preload_length 14
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_enable_private_segment 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 40
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 40
		.amdhsa_reserve_vcc 0
		.amdhsa_reserve_xnack_mask 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
	.section	.AMDGPU.csdata,"",@progbits
	.text
	.p2alignl 6, 3212836864
	.fill 256, 4, 3212836864
	.section	.AMDGPU.gpr_maximums,"",@progbits
	.text
	.section	".note.GNU-stack","",@progbits
.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         8
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         16
        .size:           8
        .value_kind:     global_buffer
      - .offset:         24
        .size:           4
        .value_kind:     by_value
      - .offset:         28
        .size:           4
        .value_kind:     by_value
      - .offset:         32
        .size:           4
        .value_kind:     by_value
      - .address_space:  global
        .offset:         40
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         48
        .size:           8
        .value_kind:     global_buffer
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 56
    .max_flat_workgroup_size: 256
    .name:           gemm
    .private_segment_fixed_size: 0
    .sgpr_count:     24
    .sgpr_spill_count: 0
    .symbol:         gemm.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     40
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
