; Triton 3.9.0, make.py: ('gemm', 'fp16', {}, (64, 64, 32), {'kpack': 2})
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
	v_and_or_b32 v6, v0, 63, s0
	s_lshl_b32 s8, s16, 6
	v_lshrrev_b32_e32 v2, 2, v6
	v_or_b32_e32 v2, s8, v2
	v_lshlrev_b32_e32 v1, 3, v0
	v_mul_lo_u32 v2, v2, s10
	v_and_b32_e32 v26, 24, v1
	v_ashrrev_i32_e32 v3, 31, v2
	s_cmp_gt_i32 s10, 0
	v_lshl_add_u64 v[16:17], v[2:3], 1, s[2:3]
	v_mov_b32_e32 v3, 0
	s_cselect_b64 s[0:1], -1, 0
	s_cmp_lt_i32 s10, 1
	v_lshlrev_b32_e32 v2, 1, v26
	s_cbranch_scc1 .LBB0_2
	v_lshl_add_u64 v[4:5], v[16:17], 0, v[2:3]
	global_load_dwordx4 v[8:11], v[4:5], off
	s_branch .LBB0_3
.LBB0_2:
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, v8
	v_mov_b32_e32 v10, v8
	v_mov_b32_e32 v11, v8
.LBB0_3:
	s_lshl_b32 s2, s17, 6
	s_and_b64 s[0:1], s[0:1], exec
	v_and_or_b32 v4, v1, 56, s2
	s_cselect_b32 s0, 1, 0
	v_lshrrev_b32_e32 v27, 3, v6
	s_cmp_lg_u32 s0, 1
	v_ashrrev_i32_e32 v5, 31, v4
	s_cbranch_scc1 .LBB0_5
	v_mul_lo_u32 v12, v27, s9
	v_ashrrev_i32_e32 v13, 31, v12
	v_lshl_add_u64 v[12:13], v[12:13], 1, s[4:5]
	v_lshl_add_u64 v[12:13], v[4:5], 1, v[12:13]
	global_load_dwordx4 v[12:15], v[12:13], off
	s_branch .LBB0_6
.LBB0_5:
	v_mov_b32_e32 v12, 0
	v_mov_b32_e32 v13, v12
	v_mov_b32_e32 v14, v12
	v_mov_b32_e32 v15, v12
.LBB0_6:
	v_and_b32_e32 v20, 31, v0
	v_and_b32_e32 v21, 32, v0
	v_lshlrev_b32_e32 v0, 1, v0
	v_lshlrev_b32_e32 v3, 4, v6
	v_and_b32_e32 v0, 48, v0
	s_and_b32 s0, s11, 0x80
	s_and_b32 s1, s11, 64
	v_xor_b32_e32 v0, v3, v0
	s_sub_i32 s3, s10, 32
	v_add_u32_e32 v28, 0, v0
	v_add_u32_e32 v29, 0, v3
	v_mov_b32_e32 v3, 0
	s_cmp_lt_i32 s3, 1
	v_lshlrev_b32_e32 v22, 6, v20
	v_and_b32_e32 v23, 48, v1
	v_lshrrev_b32_e32 v24, 1, v21
	v_lshlrev_b32_e32 v25, 1, v20
	s_waitcnt vmcnt(0)
	ds_write_b128 v28, v[8:11]
	ds_write_b128 v29, v[12:15] offset:4096
	s_cbranch_scc1 .LBB0_10
	s_lshl_b32 s11, s0, 4
	v_xor_b32_e32 v0, v23, v24
	v_or3_b32 v0, s11, v22, v0
	v_add_u32_e32 v30, 0, v0
	v_xor_b32_e32 v0, 32, v0
	v_add_u32_e32 v31, 0, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b128 v[42:45], v30
	ds_read_b128 v[46:49], v31
	v_lshlrev_b32_e32 v6, 5, v21
	v_lshl_add_u64 v[18:19], v[4:5], 1, s[4:5]
	v_or_b32_e32 v4, 32, v27
	v_lshl_add_u64 v[0:1], v[16:17], 0, v[2:3]
	s_setprio 1
	global_load_dwordx4 v[50:53], v[0:1], off offset:64
	v_add3_u32 v0, 0, v6, v25
	v_add_u32_e32 v32, s1, v0
	ds_read_u16 v2, v32 offset:4096
	ds_read_u16 v3, v32 offset:4224
	ds_read_u16 v5, v32 offset:4352
	ds_read_u16 v6, v32 offset:4480
	ds_read_u16 v7, v32 offset:4608
	ds_read_u16 v8, v32 offset:4736
	ds_read_u16 v9, v32 offset:4864
	ds_read_u16 v10, v32 offset:4992
	ds_read_u16 v11, v32 offset:6144
	ds_read_u16 v12, v32 offset:6272
	ds_read_u16 v13, v32 offset:6400
	ds_read_u16 v14, v32 offset:6528
	ds_read_u16 v15, v32 offset:6656
	ds_read_u16 v33, v32 offset:6784
	ds_read_u16 v40, v32 offset:6912
	ds_read_u16 v41, v32 offset:7040
	s_setprio 0
	v_mul_lo_u32 v0, v4, s9
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[0:1], v[0:1], 1, v[18:19]
	global_load_dwordx4 v[54:57], v[0:1], off
	s_mov_b32 s4, 0x5040100
	s_waitcnt lgkmcnt(12)
	v_perm_b32 v35, v6, v5, s4
	v_perm_b32 v34, v3, v2, s4
	s_waitcnt lgkmcnt(8)
	v_perm_b32 v37, v10, v9, s4
	v_perm_b32 v36, v8, v7, s4
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v39, v14, v13, s4
	v_perm_b32 v38, v12, v11, s4
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v41, v41, v40, s4
	v_perm_b32 v40, v33, v15, s4
	v_mfma_f32_32x32x8_f16 v[0:15], v[34:35], v[42:43], 0
	s_setprio 1
	v_mfma_f32_32x32x8_f16 v[0:15], v[36:37], v[44:45], v[0:15]
	v_mfma_f32_32x32x8_f16 v[0:15], v[38:39], v[46:47], v[0:15]
	v_mfma_f32_32x32x8_f16 v[0:15], v[40:41], v[48:49], v[0:15]
	s_setprio 0
	s_cmp_lt_u32 s3, 33
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b128 v28, v[50:53]
	s_waitcnt vmcnt(0)
	ds_write_b128 v29, v[54:57] offset:4096
	s_cbranch_scc1 .LBB0_11
	s_mov_b32 s5, 32
.LBB0_9:
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b128 v[52:55], v30
	ds_read_b128 v[56:59], v31
	s_add_i32 s5, s5, 32
	v_or_b32_e32 v34, s5, v26
	v_ashrrev_i32_e32 v35, 31, v34
	v_or_b32_e32 v33, s5, v27
	v_lshl_add_u64 v[34:35], v[34:35], 1, v[16:17]
	s_setprio 1
	global_load_dwordx4 v[60:63], v[34:35], off
	ds_read_u16 v36, v32 offset:4096
	ds_read_u16 v37, v32 offset:4224
	ds_read_u16 v38, v32 offset:4352
	ds_read_u16 v39, v32 offset:4480
	ds_read_u16 v40, v32 offset:4608
	ds_read_u16 v41, v32 offset:4736
	ds_read_u16 v42, v32 offset:4864
	ds_read_u16 v43, v32 offset:4992
	ds_read_u16 v44, v32 offset:6144
	ds_read_u16 v45, v32 offset:6272
	ds_read_u16 v46, v32 offset:6400
	ds_read_u16 v47, v32 offset:6528
	ds_read_u16 v48, v32 offset:6656
	ds_read_u16 v49, v32 offset:6784
	ds_read_u16 v50, v32 offset:6912
	ds_read_u16 v51, v32 offset:7040
	s_setprio 0
	v_mul_lo_u32 v34, v33, s9
	v_ashrrev_i32_e32 v35, 31, v34
	v_lshl_add_u64 v[34:35], v[34:35], 1, v[18:19]
	global_load_dwordx4 v[64:67], v[34:35], off
	s_waitcnt lgkmcnt(12)
	v_perm_b32 v35, v39, v38, s4
	v_perm_b32 v34, v37, v36, s4
	s_waitcnt lgkmcnt(8)
	v_perm_b32 v37, v43, v42, s4
	v_perm_b32 v36, v41, v40, s4
	v_mfma_f32_32x32x8_f16 v[0:15], v[34:35], v[52:53], v[0:15]
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v39, v47, v46, s4
	v_perm_b32 v38, v45, v44, s4
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v41, v51, v50, s4
	v_perm_b32 v40, v49, v48, s4
	s_setprio 1
	v_mfma_f32_32x32x8_f16 v[0:15], v[36:37], v[54:55], v[0:15]
	v_mfma_f32_32x32x8_f16 v[0:15], v[38:39], v[56:57], v[0:15]
	v_mfma_f32_32x32x8_f16 v[0:15], v[40:41], v[58:59], v[0:15]
	s_setprio 0
	s_cmp_lt_i32 s5, s3
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b128 v28, v[60:63]
	s_waitcnt vmcnt(0)
	ds_write_b128 v29, v[64:67] offset:4096
	s_cbranch_scc1 .LBB0_9
	s_branch .LBB0_11
.LBB0_10:
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v1, v0
	v_mov_b32_e32 v2, v0
	v_mov_b32_e32 v3, v0
	v_mov_b32_e32 v4, v0
	v_mov_b32_e32 v5, v0
	v_mov_b32_e32 v6, v0
	v_mov_b32_e32 v7, v0
	v_mov_b32_e32 v8, v0
	v_mov_b32_e32 v9, v0
	v_mov_b32_e32 v10, v0
	v_mov_b32_e32 v11, v0
	v_mov_b32_e32 v12, v0
	v_mov_b32_e32 v13, v0
	v_mov_b32_e32 v14, v0
	v_mov_b32_e32 v15, v0
.LBB0_11:
	s_add_i32 s10, s10, 31
	s_cmp_lt_i32 s10, 32
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_13
	v_lshl_add_u32 v16, v21, 5, 0
	v_add3_u32 v18, v16, v25, s1
	ds_read_u16 v16, v18 offset:4480
	ds_read_u16 v17, v18 offset:4352
	ds_read_u16 v19, v18 offset:4224
	ds_read_u16 v25, v18 offset:4096
	s_lshl_b32 s3, s0, 4
	v_xor_b32_e32 v23, v23, v24
	v_or3_b32 v22, s3, v22, v23
	v_add_u32_e32 v23, 0, v22
	s_mov_b32 s3, 0x5040100
	ds_read_b128 v[26:29], v23
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v17, v16, v17, s3
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v16, v19, v25, s3
	ds_read_u16 v19, v18 offset:4992
	ds_read_u16 v23, v18 offset:4864
	ds_read_u16 v24, v18 offset:4736
	ds_read_u16 v25, v18 offset:4608
	s_waitcnt lgkmcnt(4)
	v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[26:27], v[0:15]
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v17, v19, v23, s3
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v16, v24, v25, s3
	ds_read_u16 v19, v18 offset:6528
	ds_read_u16 v23, v18 offset:6400
	ds_read_u16 v24, v18 offset:6272
	ds_read_u16 v25, v18 offset:6144
	v_xad_u32 v22, v22, 32, 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[28:29], v[0:15]
	ds_read_b128 v[26:29], v22
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v17, v19, v23, s3
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v16, v24, v25, s3
	s_waitcnt lgkmcnt(0)
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[26:27], v[0:15]
	ds_read_u16 v16, v18 offset:7040
	ds_read_u16 v17, v18 offset:6912
	ds_read_u16 v19, v18 offset:6784
	ds_read_u16 v18, v18 offset:6656
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v17, v16, v17, s3
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v16, v19, v18, s3
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[28:29], v[0:15]
.LBB0_13:
	s_lshr_b32 s0, s0, 2
	v_or_b32_e32 v17, s0, v20
	v_lshrrev_b32_e32 v16, 3, v21
	s_lshr_b32 s1, s1, 1
	v_or_b32_e32 v17, s8, v17
	v_or_b32_e32 v16, s1, v16
	v_mul_lo_u32 v18, v17, s9
	v_or_b32_e32 v16, s2, v16
	v_ashrrev_i32_e32 v19, 31, v18
	v_lshl_add_u64 v[18:19], v[18:19], 2, s[6:7]
	v_ashrrev_i32_e32 v17, 31, v16
	v_lshl_add_u64 v[16:17], v[16:17], 2, v[18:19]
	global_store_dwordx4 v[16:17], v[0:3], off
	global_store_dwordx4 v[16:17], v[4:7], off offset:32
	global_store_dwordx4 v[16:17], v[8:11], off offset:64
	global_store_dwordx4 v[16:17], v[12:15], off offset:96
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
		.amdhsa_next_free_vgpr 68
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 68
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
    .vgpr_count:     68
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
