; Triton 3.9.0, make.py: ('gemm', 'fp16', {'MASK': True}, (32, 32, 32), {})
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
	v_readfirstlane_b32 s13, v0
	s_and_b32 s0, s13, 0xc0
	v_and_or_b32 v1, v0, 63, s0
	s_lshl_b32 s11, s16, 5
	v_lshrrev_b32_e32 v25, 3, v1
	v_lshlrev_b32_e32 v24, 2, v0
	v_or_b32_e32 v2, s11, v25
	v_and_b32_e32 v26, 28, v24
	v_cmp_gt_i32_e32 vcc, s8, v2
	v_mul_lo_u32 v2, v2, s10
	v_ashrrev_i32_e32 v3, 31, v2
	v_cmp_gt_i32_e64 s[0:1], s10, v26
	v_lshl_add_u64 v[16:17], v[2:3], 1, s[2:3]
	s_and_b64 s[2:3], s[0:1], vcc
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v7, 0
	s_and_saveexec_b64 s[0:1], s[2:3]
	s_cbranch_execz .LBB0_2
	v_lshlrev_b32_e32 v2, 1, v26
	v_mov_b32_e32 v3, v4
	v_lshl_add_u64 v[2:3], v[16:17], 0, v[2:3]
	global_load_dwordx2 v[6:7], v[2:3], off
.LBB0_2:
	s_or_b64 exec, exec, s[0:1]
	s_lshl_b32 s12, s17, 5
	v_or_b32_e32 v2, s12, v26
	v_cmp_gt_i32_e64 s[0:1], s9, v2
	v_cmp_gt_i32_e64 s[2:3], s10, v25
	s_and_b64 s[14:15], s[0:1], s[2:3]
	v_ashrrev_i32_e32 v3, 31, v2
	v_mov_b32_e32 v5, 0
	s_and_saveexec_b64 s[2:3], s[14:15]
	s_cbranch_execz .LBB0_4
	v_mul_lo_u32 v4, v25, s9
	v_ashrrev_i32_e32 v5, 31, v4
	v_lshl_add_u64 v[4:5], v[4:5], 1, s[4:5]
	v_lshl_add_u64 v[4:5], v[2:3], 1, v[4:5]
	global_load_dwordx2 v[4:5], v[4:5], off
.LBB0_4:
	s_or_b64 exec, exec, s[2:3]
	v_and_b32_e32 v22, 31, v0
	v_and_b32_e32 v23, 32, v0
	v_lshlrev_b32_e32 v0, 3, v1
	v_lshrrev_b32_e32 v1, 1, v1
	v_and_b32_e32 v1, 56, v1
	v_xor_b32_e32 v1, v1, v0
	s_sub_i32 s14, s10, 32
	v_add_u32_e32 v27, 0, v1
	v_add_u32_e32 v28, 0, v0
	s_cmp_lt_i32 s14, 1
	s_waitcnt vmcnt(0)
	ds_write_b64 v27, v[6:7]
	ds_write_b64 v28, v[4:5] offset:2048
	s_cbranch_scc1 .LBB0_16
	v_or_b32_e32 v0, 32, v26
	v_cmp_gt_i32_e64 s[2:3], s10, v0
	s_and_b64 s[16:17], vcc, s[2:3]
	v_mov_b32_e32 v20, 0
	v_mov_b32_e32 v34, 0
	v_mov_b32_e32 v35, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_7
	v_lshlrev_b32_e32 v0, 1, v26
	v_mov_b32_e32 v1, v20
	v_lshl_add_u64 v[0:1], v[16:17], 0, v[0:1]
	global_load_dwordx2 v[34:35], v[0:1], off offset:64
.LBB0_7:
	s_or_b64 exec, exec, s[2:3]
	v_and_b32_e32 v0, 56, v24
	v_lshrrev_b32_e32 v1, 2, v23
	v_xor_b32_e32 v0, v0, v1
	v_lshl_or_b32 v0, v22, 6, v0
	v_xor_b32_e32 v1, 16, v0
	v_xor_b32_e32 v4, 32, v0
	v_xor_b32_e32 v5, 48, v0
	v_add_u32_e32 v29, 0, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_add_u32_e32 v30, 0, v1
	v_add_u32_e32 v31, 0, v4
	v_add_u32_e32 v32, 0, v5
	ds_read_b64 v[42:43], v29
	ds_read_b64 v[40:41], v30
	ds_read_b64 v[38:39], v31
	ds_read_b64 v[36:37], v32
	v_or_b32_e32 v0, 32, v25
	v_cmp_gt_i32_e64 s[2:3], s10, v0
	v_lshl_add_u64 v[18:19], v[2:3], 1, s[4:5]
	s_and_b64 s[4:5], s[0:1], s[2:3]
	v_mov_b32_e32 v21, 0
	s_and_saveexec_b64 s[2:3], s[4:5]
	s_cbranch_execz .LBB0_9
	v_mul_lo_u32 v0, v0, s9
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[0:1], v[0:1], 1, v[18:19]
	global_load_dwordx2 v[20:21], v[0:1], off
.LBB0_9:
	s_or_b64 exec, exec, s[2:3]
	v_lshlrev_b32_e32 v0, 1, v22
	v_lshl_add_u32 v1, v23, 3, 0
	v_add_u32_e32 v33, v1, v0
	ds_read_u16 v0, v33 offset:2048
	ds_read_u16 v1, v33 offset:2112
	ds_read_u16 v2, v33 offset:2176
	ds_read_u16 v3, v33 offset:2240
	ds_read_u16 v46, v33 offset:2560
	ds_read_u16 v47, v33 offset:2624
	ds_read_u16 v48, v33 offset:2688
	ds_read_u16 v49, v33 offset:2752
	s_mov_b32 s4, 0x5040100
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v45, v3, v2, s4
	v_perm_b32 v44, v1, v0, s4
	s_cmp_lt_u32 s14, 33
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[44:45], v[42:43], 0
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v43, v49, v48, s4
	v_perm_b32 v42, v47, v46, s4
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[0:15], v[42:43], v[40:41], v[0:15]
	ds_read_u16 v40, v33 offset:3072
	ds_read_u16 v42, v33 offset:3136
	ds_read_u16 v41, v33 offset:3200
	ds_read_u16 v43, v33 offset:3264
	ds_read_u16 v44, v33 offset:3584
	ds_read_u16 v45, v33 offset:3648
	ds_read_u16 v46, v33 offset:3712
	ds_read_u16 v47, v33 offset:3776
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v41, v43, v41, s4
	v_perm_b32 v40, v42, v40, s4
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_waitcnt vmcnt(0)
	ds_write_b64 v27, v[34:35]
	v_mfma_f32_32x32x8_f16 v[0:15], v[40:41], v[38:39], v[0:15]
	v_perm_b32 v39, v47, v46, s4
	v_perm_b32 v38, v45, v44, s4
	ds_write_b64 v28, v[20:21] offset:2048
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[38:39], v[36:37], v[0:15]
	s_cbranch_scc1 .LBB0_17
	s_mov_b32 s5, 32
	s_branch .LBB0_12
.LBB0_11:
	s_or_b64 exec, exec, s[2:3]
	ds_read_u16 v20, v33 offset:2048
	ds_read_u16 v46, v33 offset:2112
	ds_read_u16 v21, v33 offset:2176
	ds_read_u16 v47, v33 offset:2240
	ds_read_u16 v48, v33 offset:2560
	ds_read_u16 v49, v33 offset:2624
	ds_read_u16 v50, v33 offset:2688
	ds_read_u16 v51, v33 offset:2752
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v21, v47, v21, s4
	v_perm_b32 v20, v46, v20, s4
	s_cmp_lt_i32 s5, s14
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[20:21], v[44:45], v[0:15]
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v21, v51, v50, s4
	v_perm_b32 v20, v49, v48, s4
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[0:15], v[20:21], v[42:43], v[0:15]
	ds_read_u16 v20, v33 offset:3072
	ds_read_u16 v42, v33 offset:3136
	ds_read_u16 v21, v33 offset:3200
	ds_read_u16 v43, v33 offset:3264
	ds_read_u16 v44, v33 offset:3584
	ds_read_u16 v45, v33 offset:3648
	ds_read_u16 v46, v33 offset:3712
	ds_read_u16 v47, v33 offset:3776
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v21, v43, v21, s4
	v_perm_b32 v20, v42, v20, s4
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_waitcnt vmcnt(0)
	ds_write_b64 v27, v[36:37]
	v_mfma_f32_32x32x8_f16 v[0:15], v[20:21], v[40:41], v[0:15]
	v_perm_b32 v21, v47, v46, s4
	v_perm_b32 v20, v45, v44, s4
	ds_write_b64 v28, v[34:35] offset:2048
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[20:21], v[38:39], v[0:15]
	s_cbranch_scc0 .LBB0_17
.LBB0_12:
	s_add_i32 s5, s5, 32
	v_or_b32_e32 v20, s5, v26
	v_cmp_gt_i32_e64 s[2:3], s10, v20
	s_and_b64 s[16:17], vcc, s[2:3]
	v_mov_b32_e32 v34, 0
	v_mov_b32_e32 v36, 0
	v_mov_b32_e32 v37, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_14
	v_ashrrev_i32_e32 v21, 31, v20
	v_lshl_add_u64 v[20:21], v[20:21], 1, v[16:17]
	global_load_dwordx2 v[36:37], v[20:21], off
.LBB0_14:
	s_or_b64 exec, exec, s[2:3]
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b64 v[44:45], v29
	ds_read_b64 v[42:43], v30
	ds_read_b64 v[40:41], v31
	ds_read_b64 v[38:39], v32
	v_or_b32_e32 v20, s5, v25
	v_cmp_gt_i32_e64 s[2:3], s10, v20
	s_and_b64 s[16:17], s[0:1], s[2:3]
	v_mov_b32_e32 v35, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_11
	v_mul_lo_u32 v20, v20, s9
	v_ashrrev_i32_e32 v21, 31, v20
	v_lshl_add_u64 v[20:21], v[20:21], 1, v[18:19]
	global_load_dwordx2 v[34:35], v[20:21], off
	s_branch .LBB0_11
.LBB0_16:
	v_mov_b32_e32 v15, 0
	v_mov_b32_e32 v14, v15
	v_mov_b32_e32 v13, v15
	v_mov_b32_e32 v12, v15
	v_mov_b32_e32 v11, v15
	v_mov_b32_e32 v10, v15
	v_mov_b32_e32 v9, v15
	v_mov_b32_e32 v8, v15
	v_mov_b32_e32 v7, v15
	v_mov_b32_e32 v6, v15
	v_mov_b32_e32 v5, v15
	v_mov_b32_e32 v4, v15
	v_mov_b32_e32 v3, v15
	v_mov_b32_e32 v2, v15
	v_mov_b32_e32 v1, v15
	v_mov_b32_e32 v0, v15
.LBB0_17:
	s_lshr_b32 s2, s13, 6
	s_add_i32 s10, s10, 31
	s_cmp_lt_i32 s10, 32
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_19
	v_lshlrev_b32_e32 v16, 3, v23
	v_lshlrev_b32_e32 v17, 1, v22
	v_add3_u32 v20, 0, v16, v17
	ds_read_u16 v16, v20 offset:2240
	ds_read_u16 v17, v20 offset:2176
	ds_read_u16 v18, v20 offset:2112
	ds_read_u16 v19, v20 offset:2048
	v_and_b32_e32 v21, 56, v24
	v_lshrrev_b32_e32 v24, 2, v23
	v_xor_b32_e32 v21, v21, v24
	v_lshl_or_b32 v21, v22, 6, v21
	v_add_u32_e32 v24, 0, v21
	s_mov_b32 s0, 0x5040100
	ds_read_b64 v[28:29], v24
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v17, v16, v17, s0
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v16, v18, v19, s0
	v_xad_u32 v26, v21, 16, 0
	ds_read_b64 v[30:31], v26
	ds_read_u16 v18, v20 offset:2752
	ds_read_u16 v19, v20 offset:2688
	ds_read_u16 v24, v20 offset:2624
	ds_read_u16 v25, v20 offset:2560
	s_waitcnt lgkmcnt(5)
	v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[28:29], v[0:15]
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v19, v18, v19, s0
	v_xad_u32 v26, v21, 32, 0
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v18, v24, v25, s0
	ds_read_u16 v16, v20 offset:3264
	ds_read_u16 v17, v20 offset:3200
	ds_read_u16 v24, v20 offset:3136
	ds_read_u16 v25, v20 offset:3072
	ds_read_b64 v[26:27], v26
	v_xad_u32 v21, v21, 48, 0
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v17, v16, v17, s0
	v_mfma_f32_32x32x8_f16 v[0:15], v[18:19], v[30:31], v[0:15]
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v16, v24, v25, s0
	ds_read_u16 v18, v20 offset:3776
	ds_read_u16 v19, v20 offset:3712
	ds_read_u16 v24, v20 offset:3648
	ds_read_u16 v20, v20 offset:3584
	s_waitcnt lgkmcnt(4)
	v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[26:27], v[0:15]
	ds_read_b64 v[26:27], v21
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v17, v18, v19, s0
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v16, v24, v20, s0
	s_waitcnt lgkmcnt(0)
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[26:27], v[0:15]
.LBB0_19:
	v_lshrrev_b32_e32 v16, 3, v23
	v_or_b32_e32 v17, s11, v22
	v_or_b32_e32 v18, s12, v16
	v_cmp_gt_i32_e32 vcc, s8, v17
	v_cmp_gt_i32_e64 s[0:1], s9, v18
	s_and_b64 s[0:1], vcc, s[0:1]
	v_mul_lo_u32 v16, s9, v17
	v_ashrrev_i32_e32 v17, 31, v16
	s_cmp_eq_u32 s2, 0
	v_lshl_add_u64 v[16:17], v[16:17], 2, s[6:7]
	v_ashrrev_i32_e32 v19, 31, v18
	s_cselect_b64 s[2:3], -1, 0
	v_lshl_add_u64 v[16:17], v[18:19], 2, v[16:17]
	s_and_b64 s[4:5], s[0:1], s[2:3]
	s_and_saveexec_b64 s[0:1], s[4:5]
	s_cbranch_execz .LBB0_21
	global_store_dwordx4 v[16:17], v[0:3], off
	global_store_dwordx4 v[16:17], v[4:7], off offset:32
.LBB0_21:
	s_or_b64 exec, exec, s[0:1]
	v_or_b32_e32 v0, 16, v18
	v_cmp_gt_i32_e64 s[0:1], s9, v0
	s_and_b64 s[0:1], vcc, s[0:1]
	s_and_b64 s[0:1], s[0:1], s[2:3]
	s_and_saveexec_b64 s[2:3], s[0:1]
	s_cbranch_execz .LBB0_23
	global_store_dwordx4 v[16:17], v[8:11], off offset:64
	global_store_dwordx4 v[16:17], v[12:15], off offset:96
.LBB0_23:
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
		.amdhsa_next_free_vgpr 52
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 52
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
    .vgpr_count:     52
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
