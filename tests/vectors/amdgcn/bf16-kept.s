; Triton 3.9.0, make.py: ('gemm', 'bf16', {'OUTSIDE': 'kept'}, (32, 32, 32), {})
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
	v_and_or_b32 v4, v0, 63, s0
	s_lshl_b32 s8, s16, 5
	v_lshrrev_b32_e32 v43, 3, v4
	v_or_b32_e32 v2, s8, v43
	v_lshlrev_b32_e32 v1, 2, v0
	v_mul_lo_u32 v2, v2, s10
	v_and_b32_e32 v44, 28, v1
	v_ashrrev_i32_e32 v3, 31, v2
	s_cmp_gt_i32 s10, 0
	v_lshl_add_u64 v[34:35], v[2:3], 1, s[2:3]
	v_mov_b32_e32 v33, 0
	s_cselect_b64 s[0:1], -1, 0
	s_cmp_lt_i32 s10, 1
	v_lshlrev_b32_e32 v32, 1, v44
	s_cbranch_scc1 .LBB0_2
	v_lshl_add_u64 v[2:3], v[34:35], 0, v[32:33]
	global_load_dwordx2 v[6:7], v[2:3], off
	s_branch .LBB0_3
.LBB0_2:
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v7, v6
.LBB0_3:
	s_lshl_b32 s2, s17, 5
	s_and_b64 s[0:1], s[0:1], exec
	v_or_b32_e32 v2, s2, v44
	s_cselect_b32 s0, 1, 0
	s_cmp_lg_u32 s0, 1
	v_ashrrev_i32_e32 v3, 31, v2
	s_cbranch_scc1 .LBB0_5
	v_mul_lo_u32 v8, v43, s9
	v_ashrrev_i32_e32 v9, 31, v8
	v_lshl_add_u64 v[8:9], v[8:9], 1, s[4:5]
	v_lshl_add_u64 v[8:9], v[2:3], 1, v[8:9]
	global_load_dwordx2 v[8:9], v[8:9], off
	s_branch .LBB0_6
.LBB0_5:
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, v8
.LBB0_6:
	v_and_b32_e32 v38, 31, v0
	v_and_b32_e32 v39, 32, v0
	v_lshlrev_b32_e32 v0, 3, v4
	v_lshrrev_b32_e32 v4, 1, v4
	v_and_b32_e32 v4, 56, v4
	v_xor_b32_e32 v4, v4, v0
	s_sub_i32 s0, s10, 32
	v_add_u32_e32 v45, 0, v4
	v_add_u32_e32 v46, 0, v0
	v_mov_b32_e32 v33, 0
	s_cmp_lt_i32 s0, 1
	v_and_b32_e32 v40, 56, v1
	v_lshrrev_b32_e32 v41, 2, v39
	v_lshlrev_b32_e32 v42, 1, v38
	s_waitcnt vmcnt(0)
	ds_write_b64 v45, v[6:7]
	ds_write_b64 v46, v[8:9] offset:2048
	s_cbranch_scc1 .LBB0_11
	v_xor_b32_e32 v0, v40, v41
	v_lshl_or_b32 v0, v38, 6, v0
	v_xor_b32_e32 v1, 16, v0
	v_add_u32_e32 v47, 0, v0
	v_add_u32_e32 v48, 0, v1
	v_xor_b32_e32 v1, 32, v0
	v_xor_b32_e32 v0, 48, v0
	v_add_u32_e32 v49, 0, v1
	v_add_u32_e32 v50, 0, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b64 v[26:27], v47
	ds_read_b64 v[28:29], v48
	ds_read_b64 v[30:31], v49
	ds_read_b64 v[52:53], v50
	v_lshl_add_u64 v[36:37], v[2:3], 1, s[4:5]
	v_or_b32_e32 v2, 32, v43
	v_lshl_add_u64 v[0:1], v[34:35], 0, v[32:33]
	s_setprio 1
	global_load_dwordx2 v[54:55], v[0:1], off offset:64
	v_lshl_add_u32 v0, v39, 3, 0
	v_add_u32_e32 v32, v0, v42
	ds_read_u16 v3, v32 offset:2048
	ds_read_u16 v4, v32 offset:2112
	ds_read_u16 v5, v32 offset:2176
	ds_read_u16 v6, v32 offset:2240
	ds_read_u16 v7, v32 offset:2560
	ds_read_u16 v8, v32 offset:2624
	ds_read_u16 v9, v32 offset:2688
	ds_read_u16 v10, v32 offset:2752
	ds_read_u16 v11, v32 offset:3072
	ds_read_u16 v12, v32 offset:3136
	ds_read_u16 v13, v32 offset:3200
	ds_read_u16 v14, v32 offset:3264
	ds_read_u16 v15, v32 offset:3584
	ds_read_u16 v22, v32 offset:3648
	ds_read_u16 v23, v32 offset:3712
	ds_read_u16 v24, v32 offset:3776
	s_setprio 0
	v_mul_lo_u32 v0, v2, s9
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[0:1], v[0:1], 1, v[36:37]
	global_load_dwordx2 v[56:57], v[0:1], off
	s_mov_b32 s1, 0x5040100
	s_waitcnt lgkmcnt(12)
	v_perm_b32 v17, v6, v5, s1
	v_perm_b32 v16, v4, v3, s1
	s_waitcnt lgkmcnt(8)
	v_perm_b32 v19, v10, v9, s1
	v_perm_b32 v18, v8, v7, s1
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v21, v14, v13, s1
	v_perm_b32 v20, v12, v11, s1
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v23, v24, v23, s1
	v_perm_b32 v22, v22, v15, s1
	v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[26:27], 0
	s_setprio 1
	v_mfma_f32_32x32x8_bf16 v[0:15], v[18:19], v[28:29], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[20:21], v[30:31], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[22:23], v[52:53], v[0:15]
	s_setprio 0
	s_nop 9
	v_pk_add_f32 v[22:23], v[0:1], 0 op_sel_hi:[1,0]
	v_pk_add_f32 v[20:21], v[2:3], 0 op_sel_hi:[1,0]
	v_pk_add_f32 v[16:17], v[4:5], 0 op_sel_hi:[1,0]
	v_pk_add_f32 v[18:19], v[6:7], 0 op_sel_hi:[1,0]
	v_pk_add_f32 v[24:25], v[8:9], 0 op_sel_hi:[1,0]
	v_pk_add_f32 v[26:27], v[10:11], 0 op_sel_hi:[1,0]
	v_pk_add_f32 v[28:29], v[12:13], 0 op_sel_hi:[1,0]
	v_pk_add_f32 v[30:31], v[14:15], 0 op_sel_hi:[1,0]
	s_cmp_lt_u32 s0, 33
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b64 v45, v[54:55]
	s_waitcnt vmcnt(0)
	ds_write_b64 v46, v[56:57] offset:2048
	s_cbranch_scc1 .LBB0_10
	s_mov_b32 s3, 32
.LBB0_9:
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b64 v[60:61], v47
	ds_read_b64 v[62:63], v48
	ds_read_b64 v[64:65], v49
	ds_read_b64 v[66:67], v50
	s_add_i32 s3, s3, 32
	v_or_b32_e32 v0, s3, v44
	v_ashrrev_i32_e32 v1, 31, v0
	v_or_b32_e32 v2, s3, v43
	v_lshl_add_u64 v[0:1], v[0:1], 1, v[34:35]
	s_setprio 1
	global_load_dwordx2 v[68:69], v[0:1], off
	ds_read_u16 v3, v32 offset:2048
	ds_read_u16 v4, v32 offset:2112
	ds_read_u16 v5, v32 offset:2176
	ds_read_u16 v6, v32 offset:2240
	ds_read_u16 v7, v32 offset:2560
	ds_read_u16 v8, v32 offset:2624
	ds_read_u16 v9, v32 offset:2688
	ds_read_u16 v10, v32 offset:2752
	ds_read_u16 v11, v32 offset:3072
	ds_read_u16 v12, v32 offset:3136
	ds_read_u16 v13, v32 offset:3200
	ds_read_u16 v14, v32 offset:3264
	ds_read_u16 v15, v32 offset:3584
	ds_read_u16 v33, v32 offset:3648
	ds_read_u16 v51, v32 offset:3712
	ds_read_u16 v58, v32 offset:3776
	s_setprio 0
	v_mul_lo_u32 v0, v2, s9
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[0:1], v[0:1], 1, v[36:37]
	global_load_dwordx2 v[70:71], v[0:1], off
	s_waitcnt lgkmcnt(12)
	v_perm_b32 v53, v6, v5, s1
	v_perm_b32 v52, v4, v3, s1
	s_waitcnt lgkmcnt(8)
	v_perm_b32 v55, v10, v9, s1
	v_perm_b32 v54, v8, v7, s1
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v57, v14, v13, s1
	v_perm_b32 v56, v12, v11, s1
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v59, v58, v51, s1
	v_perm_b32 v58, v33, v15, s1
	v_mfma_f32_32x32x8_bf16 v[0:15], v[52:53], v[60:61], 0
	s_setprio 1
	v_mfma_f32_32x32x8_bf16 v[0:15], v[54:55], v[62:63], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[56:57], v[64:65], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[58:59], v[66:67], v[0:15]
	s_setprio 0
	s_nop 9
	v_pk_add_f32 v[22:23], v[22:23], v[0:1]
	v_pk_add_f32 v[20:21], v[20:21], v[2:3]
	v_pk_add_f32 v[16:17], v[16:17], v[4:5]
	v_pk_add_f32 v[18:19], v[18:19], v[6:7]
	v_pk_add_f32 v[24:25], v[24:25], v[8:9]
	v_pk_add_f32 v[26:27], v[26:27], v[10:11]
	v_pk_add_f32 v[28:29], v[28:29], v[12:13]
	v_pk_add_f32 v[30:31], v[30:31], v[14:15]
	s_cmp_lt_i32 s3, s0
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b64 v45, v[68:69]
	s_waitcnt vmcnt(0)
	ds_write_b64 v46, v[70:71] offset:2048
	s_cbranch_scc1 .LBB0_9
.LBB0_10:
	v_mov_b32_e32 v33, v30
	s_branch .LBB0_12
.LBB0_11:
	v_mov_b32_e32 v31, 0
	v_mov_b32_e32 v28, 0
	v_mov_b32_e32 v29, 0
	v_mov_b32_e32 v26, 0
	v_mov_b32_e32 v27, 0
	v_mov_b32_e32 v24, 0
	v_mov_b32_e32 v25, 0
	v_mov_b32_e32 v18, 0
	v_mov_b32_e32 v19, 0
	v_mov_b32_e32 v16, 0
	v_mov_b32_e32 v17, 0
	v_mov_b32_e32 v20, 0
	v_mov_b32_e32 v21, 0
	v_mov_b32_e32 v22, 0
	v_mov_b32_e32 v23, 0
.LBB0_12:
	s_lshr_b32 s0, s11, 6
	s_add_i32 s10, s10, 31
	s_cmp_gt_i32 s10, 31
	s_cselect_b64 vcc, -1, 0
	s_cmp_lt_i32 s10, 32
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_14
	v_lshlrev_b32_e32 v0, 3, v39
	v_add3_u32 v30, 0, v0, v42
	ds_read_u16 v0, v30 offset:2240
	ds_read_u16 v1, v30 offset:2176
	ds_read_u16 v2, v30 offset:2112
	ds_read_u16 v3, v30 offset:2048
	v_xor_b32_e32 v4, v40, v41
	v_lshl_or_b32 v32, v38, 6, v4
	v_add_u32_e32 v4, 0, v32
	s_mov_b32 s1, 0x5040100
	ds_read_b64 v[42:43], v4
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v35, v0, v1, s1
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v34, v2, v3, s1
	ds_read_u16 v0, v30 offset:2752
	ds_read_u16 v1, v30 offset:2688
	ds_read_u16 v36, v30 offset:2624
	ds_read_u16 v40, v30 offset:2560
	v_xad_u32 v2, v32, 16, 0
	ds_read_b64 v[44:45], v2
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v37, v0, v1, s1
	v_mfma_f32_32x32x8_bf16 v[0:15], v[34:35], v[42:43], 0
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v36, v36, v40, s1
	ds_read_u16 v34, v30 offset:3264
	ds_read_u16 v35, v30 offset:3200
	ds_read_u16 v40, v30 offset:3136
	ds_read_u16 v41, v30 offset:3072
	v_xad_u32 v42, v32, 32, 0
	ds_read_b64 v[42:43], v42
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v35, v34, v35, s1
	v_xad_u32 v32, v32, 48, 0
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v34, v40, v41, s1
	v_mfma_f32_32x32x8_bf16 v[0:15], v[36:37], v[44:45], v[0:15]
	ds_read_u16 v36, v30 offset:3776
	ds_read_u16 v37, v30 offset:3712
	ds_read_u16 v40, v30 offset:3648
	ds_read_u16 v30, v30 offset:3584
	s_waitcnt lgkmcnt(4)
	v_mfma_f32_32x32x8_bf16 v[0:15], v[34:35], v[42:43], v[0:15]
	ds_read_b64 v[42:43], v32
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v35, v36, v37, s1
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v34, v40, v30, s1
	s_waitcnt lgkmcnt(0)
	s_nop 0
	v_mfma_f32_32x32x8_bf16 v[0:15], v[34:35], v[42:43], v[0:15]
	s_cmp_lg_u32 s0, 0
	s_cbranch_scc1 .LBB0_15
	s_branch .LBB0_16
.LBB0_14:
	v_mov_b32_e32 v14, 0
	v_mov_b32_e32 v15, 0
	v_mov_b32_e32 v12, 0
	v_mov_b32_e32 v13, 0
	v_mov_b32_e32 v10, 0
	v_mov_b32_e32 v11, 0
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, 0
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v7, 0
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v3, 0
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v1, 0
	s_cmp_lg_u32 s0, 0
	s_cbranch_scc0 .LBB0_16
.LBB0_15:
	s_endpgm
.LBB0_16:
	v_or_b32_e32 v35, s8, v38
	v_lshrrev_b32_e32 v32, 3, v39
	v_mul_lo_u32 v36, s9, v35
	v_or_b32_e32 v34, s2, v32
	v_ashrrev_i32_e32 v37, 31, v36
	v_mov_b32_e32 v30, v33
	v_lshl_add_u64 v[36:37], v[36:37], 2, s[6:7]
	v_ashrrev_i32_e32 v35, 31, v34
	v_pk_add_f32 v[0:1], v[22:23], v[0:1]
	v_pk_add_f32 v[2:3], v[20:21], v[2:3]
	v_lshl_add_u64 v[34:35], v[34:35], 2, v[36:37]
	v_pk_add_f32 v[14:15], v[30:31], v[14:15]
	v_pk_add_f32 v[12:13], v[28:29], v[12:13]
	v_pk_add_f32 v[10:11], v[26:27], v[10:11]
	v_pk_add_f32 v[8:9], v[24:25], v[8:9]
	v_cndmask_b32_e32 v1, v23, v1, vcc
	v_cndmask_b32_e32 v0, v22, v0, vcc
	v_cndmask_b32_e32 v3, v21, v3, vcc
	v_cndmask_b32_e32 v2, v20, v2, vcc
	v_pk_add_f32 v[6:7], v[18:19], v[6:7]
	v_pk_add_f32 v[4:5], v[16:17], v[4:5]
	v_cndmask_b32_e32 v15, v31, v15, vcc
	v_cndmask_b32_e32 v14, v33, v14, vcc
	v_cndmask_b32_e32 v13, v29, v13, vcc
	v_cndmask_b32_e32 v12, v28, v12, vcc
	v_cndmask_b32_e32 v11, v27, v11, vcc
	v_cndmask_b32_e32 v10, v26, v10, vcc
	v_cndmask_b32_e32 v9, v25, v9, vcc
	v_cndmask_b32_e32 v8, v24, v8, vcc
	v_cndmask_b32_e32 v7, v19, v7, vcc
	v_cndmask_b32_e32 v6, v18, v6, vcc
	v_cndmask_b32_e32 v5, v17, v5, vcc
	v_cndmask_b32_e32 v4, v16, v4, vcc
	global_store_dwordx4 v[34:35], v[0:3], off
	global_store_dwordx4 v[34:35], v[4:7], off offset:32
	global_store_dwordx4 v[34:35], v[8:11], off offset:64
	global_store_dwordx4 v[34:35], v[12:15], off offset:96
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
		.amdhsa_next_free_vgpr 72
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 72
		.amdhsa_reserve_vcc 1
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
    .vgpr_count:     72
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
