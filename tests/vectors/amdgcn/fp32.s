; Triton 3.9.0, make.py: ('gemm', 'fp32', {'MASK': True}, (32, 32, 32), {})
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
	v_and_b32_e32 v39, 63, v0
	s_and_b32 s0, s13, 0xc0
	v_or_b32_e32 v1, s0, v39
	s_lshl_b32 s11, s16, 5
	v_lshrrev_b32_e32 v40, 3, v1
	v_lshlrev_b32_e32 v38, 2, v0
	v_or_b32_e32 v2, s11, v40
	v_and_b32_e32 v41, 28, v38
	v_cmp_gt_i32_e32 vcc, s8, v2
	v_mul_lo_u32 v2, v2, s10
	v_ashrrev_i32_e32 v3, 31, v2
	v_cmp_gt_i32_e64 s[0:1], s10, v41
	v_lshl_add_u64 v[16:17], v[2:3], 2, s[2:3]
	s_and_b64 s[2:3], s[0:1], vcc
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, 0
	v_mov_b32_e32 v10, 0
	v_mov_b32_e32 v11, 0
	s_and_saveexec_b64 s[0:1], s[2:3]
	s_cbranch_execz .LBB0_2
	v_lshlrev_b32_e32 v2, 2, v41
	v_mov_b32_e32 v3, v4
	v_lshl_add_u64 v[2:3], v[16:17], 0, v[2:3]
	global_load_dwordx4 v[8:11], v[2:3], off
.LBB0_2:
	s_or_b64 exec, exec, s[0:1]
	s_lshl_b32 s12, s17, 5
	v_or_b32_e32 v2, s12, v41
	v_cmp_gt_i32_e64 s[0:1], s9, v2
	v_cmp_gt_i32_e64 s[2:3], s10, v40
	s_and_b64 s[14:15], s[0:1], s[2:3]
	v_ashrrev_i32_e32 v3, 31, v2
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v7, 0
	s_and_saveexec_b64 s[2:3], s[14:15]
	s_cbranch_execz .LBB0_4
	v_mul_lo_u32 v4, v40, s9
	v_ashrrev_i32_e32 v5, 31, v4
	v_lshl_add_u64 v[4:5], v[4:5], 2, s[4:5]
	v_lshl_add_u64 v[4:5], v[2:3], 2, v[4:5]
	global_load_dwordx4 v[4:7], v[4:5], off
.LBB0_4:
	s_or_b64 exec, exec, s[2:3]
	v_and_b32_e32 v36, 31, v0
	v_lshrrev_b32_e32 v0, 3, v0
	v_and_b32_e32 v37, 4, v0
	v_lshlrev_b32_e32 v0, 4, v1
	v_lshrrev_b32_e32 v1, 1, v1
	v_and_b32_e32 v1, 60, v1
	v_xor_b32_e32 v1, v1, v0
	v_add_u32_e32 v42, 0, v1
	s_waitcnt vmcnt(0)
	ds_write_b32 v42, v8
	v_xor_b32_e32 v8, 4, v1
	v_add_u32_e32 v43, 0, v8
	v_xor_b32_e32 v8, 8, v1
	v_xor_b32_e32 v1, 12, v1
	s_sub_i32 s14, s10, 32
	v_add_u32_e32 v44, 0, v8
	v_add_u32_e32 v45, 0, v1
	v_add_u32_e32 v46, 0, v0
	s_cmp_lt_i32 s14, 1
	ds_write_b32 v43, v9
	ds_write_b32 v44, v10
	ds_write_b32 v45, v11
	ds_write_b128 v46, v[4:7] offset:4096
	s_cbranch_scc1 .LBB0_16
	v_or_b32_e32 v0, 32, v41
	v_cmp_gt_i32_e64 s[2:3], s10, v0
	s_and_b64 s[16:17], vcc, s[2:3]
	v_mov_b32_e32 v56, 0
	v_mov_b32_e32 v60, 0
	v_mov_b32_e32 v61, 0
	v_mov_b32_e32 v62, 0
	v_mov_b32_e32 v63, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_7
	v_lshlrev_b32_e32 v0, 2, v41
	v_mov_b32_e32 v1, v56
	v_lshl_add_u64 v[0:1], v[16:17], 0, v[0:1]
	global_load_dwordx4 v[60:63], v[0:1], off offset:128
.LBB0_7:
	s_or_b64 exec, exec, s[2:3]
	v_and_b32_e32 v0, 60, v38
	v_xor_b32_e32 v0, v0, v37
	v_lshl_or_b32 v1, v36, 7, v0
	v_xor_b32_e32 v4, 8, v1
	v_xor_b32_e32 v5, 16, v1
	v_xor_b32_e32 v6, 24, v1
	v_xor_b32_e32 v7, 32, v1
	v_xor_b32_e32 v8, 40, v1
	v_xor_b32_e32 v9, 48, v1
	v_xor_b32_e32 v10, 56, v1
	v_add_u32_e32 v47, 0, v1
	v_add_u32_e32 v48, 0, v4
	v_add_u32_e32 v49, 0, v5
	v_add_u32_e32 v50, 0, v6
	v_add_u32_e32 v51, 0, v7
	v_add_u32_e32 v52, 0, v8
	v_add_u32_e32 v53, 0, v9
	v_add_u32_e32 v54, 0, v10
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read2_b32 v[22:23], v47 offset1:16
	ds_read2_b32 v[24:25], v48 offset1:16
	ds_read2_b32 v[26:27], v49 offset1:16
	ds_read2_b32 v[28:29], v50 offset1:16
	ds_read2_b32 v[30:31], v51 offset1:16
	ds_read2_b32 v[32:33], v52 offset1:16
	ds_read2_b32 v[34:35], v53 offset1:16
	ds_read2_b32 v[20:21], v54 offset1:16
	v_or_b32_e32 v0, 32, v40
	v_cmp_gt_i32_e64 s[2:3], s10, v0
	v_lshl_add_u64 v[18:19], v[2:3], 2, s[4:5]
	s_and_b64 s[4:5], s[0:1], s[2:3]
	v_mov_b32_e32 v57, 0
	v_mov_b32_e32 v58, 0
	v_mov_b32_e32 v59, 0
	s_and_saveexec_b64 s[2:3], s[4:5]
	s_cbranch_execz .LBB0_9
	v_mul_lo_u32 v0, v0, s9
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[0:1], v[0:1], 2, v[18:19]
	global_load_dwordx4 v[56:59], v[0:1], off
.LBB0_9:
	s_or_b64 exec, exec, s[2:3]
	v_lshlrev_b32_e32 v0, 2, v39
	v_add_u32_e32 v55, 0, v0
	ds_read2st64_b32 v[64:65], v55 offset0:16 offset1:17
	ds_read2st64_b32 v[66:67], v55 offset0:18 offset1:19
	ds_read2st64_b32 v[68:69], v55 offset0:20 offset1:21
	ds_read2st64_b32 v[70:71], v55 offset0:22 offset1:23
	s_cmp_lt_u32 s14, 33
	s_waitcnt lgkmcnt(3)
	v_mfma_f32_32x32x2_f32 v[0:15], v64, v22, 0
	v_mfma_f32_32x32x2_f32 v[0:15], v65, v24, v[0:15]
	s_waitcnt lgkmcnt(2)
	v_mfma_f32_32x32x2_f32 v[0:15], v66, v26, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v67, v28, v[0:15]
	s_waitcnt lgkmcnt(1)
	v_mfma_f32_32x32x2_f32 v[0:15], v68, v30, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v69, v32, v[0:15]
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v70, v34, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v71, v20, v[0:15]
	ds_read2st64_b32 v[64:65], v55 offset0:24 offset1:25
	ds_read2st64_b32 v[66:67], v55 offset0:26 offset1:27
	ds_read2st64_b32 v[68:69], v55 offset0:28 offset1:29
	ds_read2st64_b32 v[70:71], v55 offset0:30 offset1:31
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_waitcnt vmcnt(0)
	ds_write_b32 v42, v60
	ds_write_b32 v43, v61
	ds_write_b32 v44, v62
	ds_write_b32 v45, v63
	ds_write_b128 v46, v[56:59] offset:4096
	v_mfma_f32_32x32x2_f32 v[0:15], v64, v23, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v65, v25, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v66, v27, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v67, v29, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v68, v31, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v69, v33, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v70, v35, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v71, v21, v[0:15]
	s_cbranch_scc1 .LBB0_17
	s_mov_b32 s4, 32
	s_branch .LBB0_12
.LBB0_11:
	s_or_b64 exec, exec, s[2:3]
	ds_read2st64_b32 v[56:57], v55 offset0:16 offset1:17
	ds_read2st64_b32 v[66:67], v55 offset0:18 offset1:19
	ds_read2st64_b32 v[68:69], v55 offset0:20 offset1:21
	ds_read2st64_b32 v[70:71], v55 offset0:22 offset1:23
	s_cmp_lt_i32 s4, s14
	s_waitcnt lgkmcnt(3)
	v_mfma_f32_32x32x2_f32 v[0:15], v56, v34, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v57, v32, v[0:15]
	s_waitcnt lgkmcnt(2)
	v_mfma_f32_32x32x2_f32 v[0:15], v66, v30, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v67, v28, v[0:15]
	s_waitcnt lgkmcnt(1)
	v_mfma_f32_32x32x2_f32 v[0:15], v68, v26, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v69, v24, v[0:15]
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v70, v22, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v71, v20, v[0:15]
	ds_read2st64_b32 v[56:57], v55 offset0:24 offset1:25
	ds_read2st64_b32 v[66:67], v55 offset0:26 offset1:27
	ds_read2st64_b32 v[68:69], v55 offset0:28 offset1:29
	ds_read2st64_b32 v[70:71], v55 offset0:30 offset1:31
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_waitcnt vmcnt(0)
	ds_write_b32 v42, v62
	ds_write_b32 v43, v63
	ds_write_b32 v44, v64
	ds_write_b32 v45, v65
	ds_write_b128 v46, v[58:61] offset:4096
	v_mfma_f32_32x32x2_f32 v[0:15], v56, v35, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v57, v33, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v66, v31, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v67, v29, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v68, v27, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v69, v25, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v70, v23, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v71, v21, v[0:15]
	s_cbranch_scc0 .LBB0_17
.LBB0_12:
	s_add_i32 s4, s4, 32
	v_or_b32_e32 v20, s4, v41
	v_cmp_gt_i32_e64 s[2:3], s10, v20
	s_and_b64 s[16:17], vcc, s[2:3]
	v_mov_b32_e32 v58, 0
	v_mov_b32_e32 v62, 0
	v_mov_b32_e32 v63, 0
	v_mov_b32_e32 v64, 0
	v_mov_b32_e32 v65, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_14
	v_ashrrev_i32_e32 v21, 31, v20
	v_lshl_add_u64 v[20:21], v[20:21], 2, v[16:17]
	global_load_dwordx4 v[62:65], v[20:21], off
.LBB0_14:
	s_or_b64 exec, exec, s[2:3]
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read2_b32 v[34:35], v47 offset1:16
	ds_read2_b32 v[32:33], v48 offset1:16
	ds_read2_b32 v[30:31], v49 offset1:16
	ds_read2_b32 v[28:29], v50 offset1:16
	ds_read2_b32 v[26:27], v51 offset1:16
	ds_read2_b32 v[24:25], v52 offset1:16
	ds_read2_b32 v[22:23], v53 offset1:16
	ds_read2_b32 v[20:21], v54 offset1:16
	v_or_b32_e32 v56, s4, v40
	v_cmp_gt_i32_e64 s[2:3], s10, v56
	s_and_b64 s[16:17], s[0:1], s[2:3]
	v_mov_b32_e32 v59, 0
	v_mov_b32_e32 v60, 0
	v_mov_b32_e32 v61, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_11
	v_mul_lo_u32 v56, v56, s9
	v_ashrrev_i32_e32 v57, 31, v56
	v_lshl_add_u64 v[56:57], v[56:57], 2, v[18:19]
	global_load_dwordx4 v[58:61], v[56:57], off
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
	v_lshl_add_u32 v34, v39, 2, 0
	ds_read2st64_b32 v[16:17], v34 offset0:16 offset1:17
	v_and_b32_e32 v18, 60, v38
	v_xor_b32_e32 v18, v18, v37
	v_lshl_or_b32 v32, v36, 7, v18
	v_add_u32_e32 v18, 0, v32
	ds_read2_b32 v[18:19], v18 offset1:16
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v16, v18, v[0:15]
	v_xad_u32 v16, v32, 8, 0
	ds_read2_b32 v[20:21], v16 offset1:16
	v_xad_u32 v18, v32, 16, 0
	ds_read2_b32 v[22:23], v18 offset1:16
	v_xad_u32 v18, v32, 32, 0
	ds_read2_b32 v[26:27], v18 offset1:16
	v_xad_u32 v18, v32, 48, 0
	ds_read2_b32 v[30:31], v18 offset1:16
	s_waitcnt lgkmcnt(3)
	v_mfma_f32_32x32x2_f32 v[0:15], v17, v20, v[0:15]
	ds_read2st64_b32 v[16:17], v34 offset0:18 offset1:19
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v16, v22, v[0:15]
	v_xad_u32 v16, v32, 24, 0
	ds_read2_b32 v[24:25], v16 offset1:16
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v17, v24, v[0:15]
	ds_read2st64_b32 v[16:17], v34 offset0:20 offset1:21
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v16, v26, v[0:15]
	v_xad_u32 v16, v32, 40, 0
	ds_read2_b32 v[28:29], v16 offset1:16
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v17, v28, v[0:15]
	ds_read2st64_b32 v[16:17], v34 offset0:22 offset1:23
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v16, v30, v[0:15]
	v_xad_u32 v16, v32, 56, 0
	ds_read2_b32 v[32:33], v16 offset1:16
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v17, v32, v[0:15]
	ds_read2st64_b32 v[16:17], v34 offset0:24 offset1:25
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v16, v19, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v17, v21, v[0:15]
	ds_read2st64_b32 v[16:17], v34 offset0:26 offset1:27
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v16, v23, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v17, v25, v[0:15]
	ds_read2st64_b32 v[16:17], v34 offset0:28 offset1:29
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v16, v27, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v17, v29, v[0:15]
	ds_read2st64_b32 v[16:17], v34 offset0:30 offset1:31
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x2_f32 v[0:15], v16, v31, v[0:15]
	v_mfma_f32_32x32x2_f32 v[0:15], v17, v33, v[0:15]
.LBB0_19:
	v_or_b32_e32 v16, s11, v36
	v_or_b32_e32 v18, s12, v37
	v_cmp_gt_i32_e32 vcc, s8, v16
	v_cmp_gt_i32_e64 s[0:1], s9, v18
	s_and_b64 s[0:1], vcc, s[0:1]
	v_mul_lo_u32 v16, s9, v16
	v_ashrrev_i32_e32 v17, 31, v16
	s_cmp_eq_u32 s2, 0
	v_lshl_add_u64 v[16:17], v[16:17], 2, s[6:7]
	v_ashrrev_i32_e32 v19, 31, v18
	s_cselect_b64 s[2:3], -1, 0
	v_lshl_add_u64 v[16:17], v[18:19], 2, v[16:17]
	s_and_b64 s[4:5], s[0:1], s[2:3]
	s_and_saveexec_b64 s[0:1], s[4:5]
	s_cbranch_execz .LBB0_21
	s_nop 2
	global_store_dwordx4 v[16:17], v[0:3], off
	global_store_dwordx4 v[16:17], v[4:7], off offset:32
.LBB0_21:
	s_or_b64 exec, exec, s[0:1]
	s_nop 1
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
