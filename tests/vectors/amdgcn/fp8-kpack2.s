; Triton 3.9.0, make.py: ('gemm', 'fp8e4b8', {}, (64, 64, 64), {'kpack': 2})
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
	v_and_or_b32 v1, v0, 63, s0
	s_lshl_b32 s8, s16, 6
	v_lshrrev_b32_e32 v27, 2, v1
	v_lshlrev_b32_e32 v2, 4, v0
	v_and_b32_e32 v16, 48, v2
	v_or_b32_e32 v2, s8, v27
	v_mul_lo_u32 v2, v2, s10
	v_ashrrev_i32_e32 v3, 31, v2
	s_cmp_gt_i32 s10, 0
	s_cselect_b64 s[0:1], -1, 0
	s_cmp_lt_i32 s10, 1
	v_lshl_add_u64 v[18:19], s[2:3], 0, v[2:3]
	s_cbranch_scc1 .LBB0_2
	v_mov_b32_e32 v17, 0
	v_lshl_add_u64 v[2:3], v[18:19], 0, v[16:17]
	global_load_dwordx4 v[4:7], v[2:3], off
	s_branch .LBB0_3
.LBB0_2:
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, v4
	v_mov_b32_e32 v6, v4
	v_mov_b32_e32 v7, v4
.LBB0_3:
	s_lshl_b32 s2, s17, 6
	s_and_b64 s[0:1], s[0:1], exec
	v_or_b32_e32 v2, s2, v16
	s_cselect_b32 s0, 1, 0
	s_cmp_lg_u32 s0, 1
	v_ashrrev_i32_e32 v3, 31, v2
	s_cbranch_scc1 .LBB0_5
	v_mul_lo_u32 v8, v27, s9
	v_ashrrev_i32_e32 v9, 31, v8
	v_lshl_add_u64 v[8:9], s[4:5], 0, v[8:9]
	v_lshl_add_u64 v[8:9], v[8:9], 0, v[2:3]
	global_load_dwordx4 v[8:11], v[8:9], off
	s_branch .LBB0_6
.LBB0_5:
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, v8
	v_mov_b32_e32 v10, v8
	v_mov_b32_e32 v11, v8
.LBB0_6:
	v_lshlrev_b32_e32 v12, 1, v0
	s_lshr_b32 s1, s11, 1
	v_lshlrev_b32_e32 v1, 4, v1
	v_and_b32_e32 v12, 48, v12
	v_and_b32_e32 v22, 31, v0
	s_and_b32 s0, s11, 0x80
	v_and_b32_e32 v23, 32, v0
	s_and_b32 s1, s1, 32
	v_xor_b32_e32 v12, v1, v12
	s_sub_i32 s3, s10, 64
	v_add_u32_e32 v28, 0, v12
	v_add_u32_e32 v29, 0, v1
	v_mov_b32_e32 v17, 0
	s_cmp_lt_i32 s3, 1
	v_lshlrev_b32_e32 v24, 6, v22
	v_lshlrev_b32_e32 v25, 3, v0
	v_lshrrev_b32_e32 v26, 1, v23
	s_waitcnt vmcnt(0)
	ds_write_b128 v28, v[4:7]
	ds_write_b128 v29, v[8:11] offset:4096
	s_cbranch_scc1 .LBB0_9
	v_and_b32_e32 v0, 48, v25
	s_lshl_b32 s11, s0, 4
	v_xor_b32_e32 v0, v0, v26
	v_or3_b32 v0, s11, v24, v0
	v_add_u32_e32 v30, 0, v0
	v_xor_b32_e32 v0, 32, v0
	v_add_u32_e32 v31, 0, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b128 v[54:57], v30
	ds_read_b128 v[58:61], v31
	v_lshl_add_u64 v[20:21], s[4:5], 0, v[2:3]
	s_mov_b32 s4, 64
	v_or_b32_e32 v2, 64, v27
	v_lshl_add_u64 v[0:1], v[18:19], 0, v[16:17]
	s_setprio 1
	global_load_dwordx4 v[62:65], v[0:1], off offset:64
	v_lshl_add_u32 v0, v23, 5, s1
	v_add_u32_e32 v17, v0, v22
	ds_read_u8 v3, v17 offset:4288
	ds_read_u8 v4, v17 offset:4544
	ds_read_u8 v5, v17 offset:4480
	ds_read_u8 v6, v17 offset:4416
	ds_read_u8 v7, v17 offset:4352
	ds_read_u8 v8, v17 offset:4224
	ds_read_u8 v9, v17 offset:4160
	ds_read_u8 v10, v17 offset:4096
	ds_read_u8 v11, v17 offset:4800
	ds_read_u8 v12, v17 offset:5056
	ds_read_u8 v13, v17 offset:4992
	ds_read_u8 v14, v17 offset:4928
	ds_read_u8 v15, v17 offset:4864
	ds_read_u8 v34, v17 offset:4736
	ds_read_u8 v36, v17 offset:4672
	ds_read_u8 v37, v17 offset:4608
	ds_read_u8 v38, v17 offset:6336
	ds_read_u8 v39, v17 offset:6592
	ds_read_u8 v40, v17 offset:6528
	ds_read_u8 v41, v17 offset:6464
	ds_read_u8 v42, v17 offset:6400
	ds_read_u8 v43, v17 offset:6272
	ds_read_u8 v44, v17 offset:6208
	ds_read_u8 v45, v17 offset:6144
	ds_read_u8 v46, v17 offset:6848
	ds_read_u8 v47, v17 offset:7104
	ds_read_u8 v48, v17 offset:7040
	ds_read_u8 v49, v17 offset:6976
	ds_read_u8 v50, v17 offset:6912
	ds_read_u8 v51, v17 offset:6784
	ds_read_u8 v52, v17 offset:6720
	ds_read_u8 v53, v17 offset:6656
	s_setprio 0
	v_mul_lo_u32 v0, v2, s9
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[0:1], v[20:21], 0, v[0:1]
	global_load_dwordx4 v[66:69], v[0:1], off
	s_mov_b32 s5, 0xc0c0004
	s_waitcnt lgkmcnt(14)
	v_perm_b32 v0, v7, v6, s5
	v_perm_b32 v1, v5, v4, s5
	v_lshl_or_b32 v33, v1, 16, v0
	v_perm_b32 v0, v10, v9, s5
	v_perm_b32 v1, v8, v3, s5
	v_lshl_or_b32 v32, v1, 16, v0
	v_perm_b32 v0, v15, v14, s5
	v_perm_b32 v1, v13, v12, s5
	v_lshl_or_b32 v35, v1, 16, v0
	v_perm_b32 v0, v37, v36, s5
	v_perm_b32 v1, v34, v11, s5
	v_lshl_or_b32 v34, v1, 16, v0
	s_waitcnt lgkmcnt(11)
	v_perm_b32 v0, v42, v41, s5
	v_perm_b32 v1, v40, v39, s5
	v_lshl_or_b32 v37, v1, 16, v0
	s_waitcnt lgkmcnt(8)
	v_perm_b32 v0, v45, v44, s5
	v_perm_b32 v1, v43, v38, s5
	v_lshl_or_b32 v36, v1, 16, v0
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v0, v50, v49, s5
	v_perm_b32 v1, v48, v47, s5
	v_lshl_or_b32 v39, v1, 16, v0
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v0, v53, v52, s5
	v_perm_b32 v1, v51, v46, s5
	v_lshl_or_b32 v38, v1, 16, v0
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[32:33], v[54:55], 0
	s_setprio 1
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[34:35], v[56:57], v[0:15]
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[36:37], v[58:59], v[0:15]
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[38:39], v[60:61], v[0:15]
	s_setprio 0
	s_cmpk_lt_u32 s3, 0x41
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b128 v28, v[62:65]
	s_waitcnt vmcnt(0)
	ds_write_b128 v29, v[66:69] offset:4096
	s_cbranch_scc1 .LBB0_10
.LBB0_8:
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b128 v[68:71], v30
	ds_read_b128 v[72:75], v31
	s_add_i32 s4, s4, 64
	v_or_b32_e32 v32, s4, v16
	v_ashrrev_i32_e32 v33, 31, v32
	v_or_b32_e32 v34, s4, v27
	v_lshl_add_u64 v[32:33], v[18:19], 0, v[32:33]
	s_setprio 1
	global_load_dwordx4 v[76:79], v[32:33], off
	ds_read_u8 v35, v17 offset:4288
	ds_read_u8 v36, v17 offset:4544
	ds_read_u8 v37, v17 offset:4480
	ds_read_u8 v38, v17 offset:4416
	ds_read_u8 v39, v17 offset:4352
	ds_read_u8 v40, v17 offset:4224
	ds_read_u8 v41, v17 offset:4160
	ds_read_u8 v42, v17 offset:4096
	ds_read_u8 v43, v17 offset:4800
	ds_read_u8 v44, v17 offset:5056
	ds_read_u8 v45, v17 offset:4992
	ds_read_u8 v46, v17 offset:4928
	ds_read_u8 v47, v17 offset:4864
	ds_read_u8 v48, v17 offset:4736
	ds_read_u8 v49, v17 offset:4672
	ds_read_u8 v50, v17 offset:4608
	ds_read_u8 v51, v17 offset:6336
	ds_read_u8 v52, v17 offset:6592
	ds_read_u8 v53, v17 offset:6528
	ds_read_u8 v54, v17 offset:6464
	ds_read_u8 v55, v17 offset:6400
	ds_read_u8 v56, v17 offset:6272
	ds_read_u8 v57, v17 offset:6208
	ds_read_u8 v58, v17 offset:6144
	ds_read_u8 v59, v17 offset:6848
	ds_read_u8 v60, v17 offset:7104
	ds_read_u8 v61, v17 offset:7040
	ds_read_u8 v62, v17 offset:6976
	ds_read_u8 v63, v17 offset:6912
	ds_read_u8 v64, v17 offset:6784
	ds_read_u8 v65, v17 offset:6720
	ds_read_u8 v66, v17 offset:6656
	s_setprio 0
	v_mul_lo_u32 v32, v34, s9
	v_ashrrev_i32_e32 v33, 31, v32
	v_lshl_add_u64 v[32:33], v[20:21], 0, v[32:33]
	global_load_dwordx4 v[80:83], v[32:33], off
	s_waitcnt lgkmcnt(14)
	v_perm_b32 v32, v39, v38, s5
	v_perm_b32 v33, v37, v36, s5
	v_lshl_or_b32 v33, v33, 16, v32
	v_perm_b32 v32, v42, v41, s5
	v_perm_b32 v34, v40, v35, s5
	v_lshl_or_b32 v32, v34, 16, v32
	v_perm_b32 v34, v47, v46, s5
	v_perm_b32 v35, v45, v44, s5
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[32:33], v[68:69], v[0:15]
	v_lshl_or_b32 v35, v35, 16, v34
	v_perm_b32 v34, v50, v49, s5
	v_perm_b32 v36, v48, v43, s5
	v_lshl_or_b32 v34, v36, 16, v34
	s_waitcnt lgkmcnt(11)
	v_perm_b32 v36, v55, v54, s5
	v_perm_b32 v37, v53, v52, s5
	v_lshl_or_b32 v37, v37, 16, v36
	s_waitcnt lgkmcnt(8)
	v_perm_b32 v36, v58, v57, s5
	v_perm_b32 v38, v56, v51, s5
	v_lshl_or_b32 v36, v38, 16, v36
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v38, v63, v62, s5
	v_perm_b32 v39, v61, v60, s5
	v_lshl_or_b32 v39, v39, 16, v38
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v38, v66, v65, s5
	v_perm_b32 v40, v64, v59, s5
	v_lshl_or_b32 v38, v40, 16, v38
	s_setprio 1
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[34:35], v[70:71], v[0:15]
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[36:37], v[72:73], v[0:15]
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[38:39], v[74:75], v[0:15]
	s_setprio 0
	s_cmp_lt_i32 s4, s3
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b128 v28, v[76:79]
	s_waitcnt vmcnt(0)
	ds_write_b128 v29, v[80:83] offset:4096
	s_cbranch_scc1 .LBB0_8
	s_branch .LBB0_10
.LBB0_9:
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
.LBB0_10:
	s_add_i32 s10, s10, 63
	s_cmp_lt_i32 s10, 64
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_12
	v_lshlrev_b32_e32 v16, 5, v23
	v_add3_u32 v20, s1, v16, v22
	v_and_b32_e32 v16, 48, v25
	s_lshl_b32 s3, s0, 4
	v_xor_b32_e32 v16, v16, v26
	v_or3_b32 v16, s3, v24, v16
	v_xad_u32 v17, v16, 32, 0
	v_add_u32_e32 v16, 0, v16
	ds_read_b128 v[32:35], v17
	ds_read_b128 v[36:39], v16
	ds_read_u8 v16, v20 offset:4416
	ds_read_u8 v17, v20 offset:4544
	ds_read_u8 v18, v20 offset:4480
	ds_read_u8 v19, v20 offset:4352
	ds_read_u8 v21, v20 offset:4160
	ds_read_u8 v24, v20 offset:4288
	ds_read_u8 v25, v20 offset:4224
	ds_read_u8 v26, v20 offset:4096
	s_mov_b32 s3, 0xc0c0004
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v16, v19, v16, s3
	v_perm_b32 v17, v18, v17, s3
	v_lshl_or_b32 v17, v17, 16, v16
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v16, v26, v21, s3
	v_perm_b32 v18, v25, v24, s3
	v_lshl_or_b32 v16, v18, 16, v16
	ds_read_u8 v19, v20 offset:4928
	ds_read_u8 v21, v20 offset:5056
	ds_read_u8 v24, v20 offset:4992
	ds_read_u8 v25, v20 offset:4864
	ds_read_u8 v26, v20 offset:4672
	ds_read_u8 v27, v20 offset:4800
	ds_read_u8 v28, v20 offset:4736
	ds_read_u8 v29, v20 offset:4608
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[16:17], v[36:37], v[0:15]
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v18, v25, v19, s3
	v_perm_b32 v19, v24, v21, s3
	v_lshl_or_b32 v19, v19, 16, v18
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v18, v29, v26, s3
	v_perm_b32 v21, v28, v27, s3
	v_lshl_or_b32 v18, v21, 16, v18
	ds_read_u8 v24, v20 offset:6464
	ds_read_u8 v25, v20 offset:6592
	ds_read_u8 v26, v20 offset:6528
	ds_read_u8 v27, v20 offset:6400
	ds_read_u8 v28, v20 offset:6208
	ds_read_u8 v29, v20 offset:6336
	ds_read_u8 v30, v20 offset:6272
	ds_read_u8 v31, v20 offset:6144
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[18:19], v[38:39], v[0:15]
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v16, v27, v24, s3
	v_perm_b32 v17, v26, v25, s3
	v_lshl_or_b32 v17, v17, 16, v16
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v16, v31, v28, s3
	v_perm_b32 v21, v30, v29, s3
	v_lshl_or_b32 v16, v21, 16, v16
	ds_read_u8 v18, v20 offset:6976
	ds_read_u8 v19, v20 offset:7104
	ds_read_u8 v21, v20 offset:7040
	ds_read_u8 v24, v20 offset:6912
	ds_read_u8 v25, v20 offset:6720
	ds_read_u8 v26, v20 offset:6848
	ds_read_u8 v27, v20 offset:6784
	ds_read_u8 v20, v20 offset:6656
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[16:17], v[32:33], v[0:15]
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v18, v24, v18, s3
	v_perm_b32 v19, v21, v19, s3
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v16, v20, v25, s3
	v_perm_b32 v17, v27, v26, s3
	v_lshl_or_b32 v19, v19, 16, v18
	v_lshl_or_b32 v18, v17, 16, v16
	s_nop 1
	v_mfma_f32_32x32x16_fp8_fp8 v[0:15], v[18:19], v[34:35], v[0:15]
.LBB0_12:
	s_lshr_b32 s0, s0, 2
	v_or_b32_e32 v17, s0, v22
	v_lshrrev_b32_e32 v16, 3, v23
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
		.amdhsa_next_free_vgpr 84
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 84
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
    .vgpr_count:     84
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
