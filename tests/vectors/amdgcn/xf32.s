; Triton 3.9.0, make.py: ('gemm', 'fp32', {'PRECISION': 'tf32', 'MASK': True}, (32, 32, 32), {})
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
	v_and_or_b32 v4, v0, 63, s0
	s_lshl_b32 s11, s16, 5
	v_lshrrev_b32_e32 v39, 3, v4
	v_lshlrev_b32_e32 v1, 2, v0
	v_and_b32_e32 v40, 28, v1
	v_or_b32_e32 v1, s11, v39
	v_mul_lo_u32 v2, v1, s10
	v_cmp_gt_i32_e32 vcc, s8, v1
	v_ashrrev_i32_e32 v3, 31, v2
	v_cmp_gt_i32_e64 s[0:1], s10, v40
	v_lshl_add_u64 v[18:19], v[2:3], 2, s[2:3]
	s_and_b64 s[2:3], s[0:1], vcc
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v10, 0
	v_mov_b32_e32 v11, 0
	v_mov_b32_e32 v12, 0
	v_mov_b32_e32 v13, 0
	s_and_saveexec_b64 s[0:1], s[2:3]
	s_cbranch_execz .LBB0_2
	v_lshlrev_b32_e32 v2, 2, v40
	v_mov_b32_e32 v3, v6
	v_lshl_add_u64 v[2:3], v[18:19], 0, v[2:3]
	global_load_dwordx4 v[10:13], v[2:3], off
.LBB0_2:
	s_or_b64 exec, exec, s[0:1]
	s_lshl_b32 s12, s17, 5
	v_or_b32_e32 v2, s12, v40
	v_cmp_gt_i32_e64 s[0:1], s9, v2
	v_cmp_gt_i32_e64 s[2:3], s10, v39
	s_and_b64 s[14:15], s[0:1], s[2:3]
	v_ashrrev_i32_e32 v3, 31, v2
	v_mov_b32_e32 v7, 0
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, 0
	s_and_saveexec_b64 s[2:3], s[14:15]
	s_cbranch_execz .LBB0_4
	v_mul_lo_u32 v6, v39, s9
	v_ashrrev_i32_e32 v7, 31, v6
	v_lshl_add_u64 v[6:7], v[6:7], 2, s[4:5]
	v_lshl_add_u64 v[6:7], v[2:3], 2, v[6:7]
	global_load_dwordx4 v[6:9], v[6:7], off
.LBB0_4:
	s_or_b64 exec, exec, s[2:3]
	v_lshlrev_b32_e32 v5, 4, v4
	v_and_b32_e32 v4, 0x78, v4
	v_xor_b32_e32 v4, v5, v4
	v_add_u32_e32 v41, 0, v4
	v_xor_b32_e32 v4, 8, v4
	s_sub_i32 s14, s10, 32
	v_and_b32_e32 v1, 31, v0
	v_and_b32_e32 v38, 32, v0
	v_add_u32_e32 v42, 0, v4
	v_add_u32_e32 v43, 0, v5
	s_cmp_lt_i32 s14, 1
	s_waitcnt vmcnt(0)
	ds_write_b64 v41, v[10:11]
	ds_write_b64 v42, v[12:13]
	ds_write_b128 v43, v[6:9] offset:4096
	s_cbranch_scc1 .LBB0_16
	v_or_b32_e32 v4, 32, v40
	v_cmp_gt_i32_e64 s[2:3], s10, v4
	s_and_b64 s[16:17], vcc, s[2:3]
	v_mov_b32_e32 v56, 0
	v_mov_b32_e32 v60, 0
	v_mov_b32_e32 v61, 0
	v_mov_b32_e32 v62, 0
	v_mov_b32_e32 v63, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_7
	v_lshlrev_b32_e32 v4, 2, v40
	v_mov_b32_e32 v5, v56
	v_lshl_add_u64 v[4:5], v[18:19], 0, v[4:5]
	global_load_dwordx4 v[60:63], v[4:5], off offset:128
.LBB0_7:
	s_or_b64 exec, exec, s[2:3]
	v_lshlrev_b32_e32 v4, 3, v0
	v_and_b32_e32 v4, 0x78, v4
	v_lshrrev_b32_e32 v5, 2, v38
	v_xor_b32_e32 v4, v4, v5
	v_lshl_or_b32 v5, v1, 7, v4
	v_xor_b32_e32 v9, 64, v5
	v_xor_b32_e32 v6, 16, v5
	v_xor_b32_e32 v7, 32, v5
	v_xor_b32_e32 v8, 48, v5
	v_xor_b32_e32 v10, 0x50, v5
	v_xor_b32_e32 v11, 0x60, v5
	v_xor_b32_e32 v12, 0x70, v5
	v_add_u32_e32 v44, 0, v5
	v_add_u32_e32 v48, 0, v9
	v_lshl_add_u64 v[20:21], v[2:3], 2, s[4:5]
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_add_u32_e32 v45, 0, v6
	v_add_u32_e32 v46, 0, v7
	v_add_u32_e32 v47, 0, v8
	ds_read_b64 v[2:3], v44
	ds_read_b64 v[34:35], v45
	ds_read_b64 v[32:33], v46
	ds_read_b64 v[28:29], v47
	v_add_u32_e32 v49, 0, v10
	v_add_u32_e32 v50, 0, v11
	v_add_u32_e32 v51, 0, v12
	ds_read_b64 v[30:31], v48
	ds_read_b64 v[26:27], v49
	ds_read_b64 v[24:25], v50
	ds_read_b64 v[22:23], v51
	v_or_b32_e32 v4, 32, v39
	v_cmp_gt_i32_e64 s[2:3], s10, v4
	s_and_b64 s[4:5], s[0:1], s[2:3]
	v_mov_b32_e32 v57, 0
	v_mov_b32_e32 v58, 0
	v_mov_b32_e32 v59, 0
	s_and_saveexec_b64 s[2:3], s[4:5]
	s_cbranch_execz .LBB0_9
	v_mul_lo_u32 v4, v4, s9
	v_ashrrev_i32_e32 v5, 31, v4
	v_lshl_add_u64 v[4:5], v[4:5], 2, v[20:21]
	global_load_dwordx4 v[56:59], v[4:5], off
.LBB0_9:
	s_or_b64 exec, exec, s[2:3]
	v_lshlrev_b32_e32 v4, 2, v1
	v_lshl_add_u32 v5, v38, 3, 0
	v_add_u32_e32 v64, v5, v4
	v_add_u32_e32 v52, 0x1000, v64
	ds_read2_b32 v[4:5], v52 offset1:32
	s_waitcnt lgkmcnt(8)
	v_max_f32_e32 v55, v3, v3
	v_max_f32_e32 v54, v2, v2
	s_waitcnt lgkmcnt(7)
	v_max_f32_e32 v35, v35, v35
	v_max_f32_e32 v34, v34, v34
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v37, v5, v5
	v_max_f32_e32 v36, v4, v4
	v_add_u32_e32 v53, 0x1400, v64
	v_max_f32_e32 v33, v33, v33
	v_mfma_f32_32x32x4_xf32 v[2:17], v[36:37], v[54:55], 0
	ds_read2_b32 v[36:37], v52 offset0:128 offset1:160
	v_max_f32_e32 v32, v32, v32
	v_max_f32_e32 v29, v29, v29
	v_max_f32_e32 v28, v28, v28
	v_add_u32_e32 v54, 0x1800, v64
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v37, v37, v37
	v_max_f32_e32 v36, v36, v36
	v_max_f32_e32 v31, v31, v31
	v_max_f32_e32 v30, v30, v30
	v_mfma_f32_32x32x4_xf32 v[2:17], v[36:37], v[34:35], v[2:17]
	ds_read2_b32 v[34:35], v53 offset1:32
	v_max_f32_e32 v27, v27, v27
	v_max_f32_e32 v26, v26, v26
	v_add_u32_e32 v55, 0x1c00, v64
	v_max_f32_e32 v25, v25, v25
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v35, v35, v35
	v_max_f32_e32 v34, v34, v34
	v_max_f32_e32 v24, v24, v24
	v_max_f32_e32 v23, v23, v23
	v_mfma_f32_32x32x4_xf32 v[2:17], v[34:35], v[32:33], v[2:17]
	ds_read2_b32 v[32:33], v53 offset0:128 offset1:160
	v_max_f32_e32 v22, v22, v22
	s_cmp_lt_u32 s14, 33
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v33, v33, v33
	v_max_f32_e32 v32, v32, v32
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[32:33], v[28:29], v[2:17]
	ds_read2_b32 v[28:29], v54 offset1:32
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v29, v29, v29
	v_max_f32_e32 v28, v28, v28
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[28:29], v[30:31], v[2:17]
	ds_read2_b32 v[28:29], v54 offset0:128 offset1:160
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v29, v29, v29
	v_max_f32_e32 v28, v28, v28
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[28:29], v[26:27], v[2:17]
	ds_read2_b32 v[26:27], v55 offset1:32
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v27, v27, v27
	v_max_f32_e32 v26, v26, v26
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[26:27], v[24:25], v[2:17]
	ds_read2_b32 v[24:25], v55 offset0:128 offset1:160
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_waitcnt vmcnt(0)
	ds_write_b64 v41, v[60:61]
	ds_write_b64 v42, v[62:63]
	v_max_f32_e32 v25, v25, v25
	v_max_f32_e32 v24, v24, v24
	ds_write_b128 v43, v[56:59] offset:4096
	s_nop 0
	v_mfma_f32_32x32x4_xf32 v[2:17], v[24:25], v[22:23], v[2:17]
	s_cbranch_scc1 .LBB0_17
	s_mov_b32 s4, 32
	s_branch .LBB0_12
.LBB0_11:
	s_or_b64 exec, exec, s[2:3]
	ds_read2_b32 v[56:57], v52 offset1:32
	s_waitcnt lgkmcnt(8)
	v_max_f32_e32 v37, v37, v37
	v_max_f32_e32 v36, v36, v36
	s_waitcnt lgkmcnt(7)
	v_max_f32_e32 v35, v35, v35
	v_max_f32_e32 v34, v34, v34
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v57, v57, v57
	v_max_f32_e32 v56, v56, v56
	v_max_f32_e32 v33, v33, v33
	v_max_f32_e32 v32, v32, v32
	v_max_f32_e32 v31, v31, v31
	v_mfma_f32_32x32x4_xf32 v[2:17], v[56:57], v[36:37], v[2:17]
	ds_read2_b32 v[36:37], v52 offset0:128 offset1:160
	v_max_f32_e32 v30, v30, v30
	v_max_f32_e32 v29, v29, v29
	v_max_f32_e32 v28, v28, v28
	v_max_f32_e32 v27, v27, v27
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v37, v37, v37
	v_max_f32_e32 v36, v36, v36
	v_max_f32_e32 v26, v26, v26
	v_max_f32_e32 v25, v25, v25
	v_mfma_f32_32x32x4_xf32 v[2:17], v[36:37], v[34:35], v[2:17]
	ds_read2_b32 v[34:35], v53 offset1:32
	v_max_f32_e32 v24, v24, v24
	v_max_f32_e32 v23, v23, v23
	v_max_f32_e32 v22, v22, v22
	s_cmp_lt_i32 s4, s14
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v35, v35, v35
	v_max_f32_e32 v34, v34, v34
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[34:35], v[32:33], v[2:17]
	ds_read2_b32 v[32:33], v53 offset0:128 offset1:160
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v33, v33, v33
	v_max_f32_e32 v32, v32, v32
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[32:33], v[30:31], v[2:17]
	ds_read2_b32 v[30:31], v54 offset1:32
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v31, v31, v31
	v_max_f32_e32 v30, v30, v30
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[30:31], v[28:29], v[2:17]
	ds_read2_b32 v[28:29], v54 offset0:128 offset1:160
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v29, v29, v29
	v_max_f32_e32 v28, v28, v28
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[28:29], v[26:27], v[2:17]
	ds_read2_b32 v[26:27], v55 offset1:32
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v27, v27, v27
	v_max_f32_e32 v26, v26, v26
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[26:27], v[24:25], v[2:17]
	ds_read2_b32 v[24:25], v55 offset0:128 offset1:160
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_waitcnt vmcnt(0)
	ds_write_b64 v41, v[62:63]
	ds_write_b64 v42, v[64:65]
	v_max_f32_e32 v25, v25, v25
	v_max_f32_e32 v24, v24, v24
	ds_write_b128 v43, v[58:61] offset:4096
	s_nop 0
	v_mfma_f32_32x32x4_xf32 v[2:17], v[24:25], v[22:23], v[2:17]
	s_cbranch_scc0 .LBB0_17
.LBB0_12:
	s_add_i32 s4, s4, 32
	v_or_b32_e32 v22, s4, v40
	v_cmp_gt_i32_e64 s[2:3], s10, v22
	s_and_b64 s[16:17], vcc, s[2:3]
	v_mov_b32_e32 v58, 0
	v_mov_b32_e32 v62, 0
	v_mov_b32_e32 v63, 0
	v_mov_b32_e32 v64, 0
	v_mov_b32_e32 v65, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_14
	v_ashrrev_i32_e32 v23, 31, v22
	v_lshl_add_u64 v[22:23], v[22:23], 2, v[18:19]
	global_load_dwordx4 v[62:65], v[22:23], off
.LBB0_14:
	s_or_b64 exec, exec, s[2:3]
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b64 v[36:37], v44
	ds_read_b64 v[34:35], v45
	ds_read_b64 v[32:33], v46
	ds_read_b64 v[30:31], v47
	ds_read_b64 v[28:29], v48
	ds_read_b64 v[26:27], v49
	ds_read_b64 v[24:25], v50
	ds_read_b64 v[22:23], v51
	v_or_b32_e32 v56, s4, v39
	v_cmp_gt_i32_e64 s[2:3], s10, v56
	s_and_b64 s[16:17], s[0:1], s[2:3]
	v_mov_b32_e32 v59, 0
	v_mov_b32_e32 v60, 0
	v_mov_b32_e32 v61, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_11
	v_mul_lo_u32 v56, v56, s9
	v_ashrrev_i32_e32 v57, 31, v56
	v_lshl_add_u64 v[56:57], v[56:57], 2, v[20:21]
	global_load_dwordx4 v[58:61], v[56:57], off
	s_branch .LBB0_11
.LBB0_16:
	v_mov_b32_e32 v17, 0
	v_mov_b32_e32 v16, v17
	v_mov_b32_e32 v15, v17
	v_mov_b32_e32 v14, v17
	v_mov_b32_e32 v13, v17
	v_mov_b32_e32 v12, v17
	v_mov_b32_e32 v11, v17
	v_mov_b32_e32 v10, v17
	v_mov_b32_e32 v9, v17
	v_mov_b32_e32 v8, v17
	v_mov_b32_e32 v7, v17
	v_mov_b32_e32 v6, v17
	v_mov_b32_e32 v5, v17
	v_mov_b32_e32 v4, v17
	v_mov_b32_e32 v3, v17
	v_mov_b32_e32 v2, v17
.LBB0_17:
	s_lshr_b32 s2, s13, 6
	s_add_i32 s10, s10, 31
	s_cmp_lt_i32 s10, 32
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_19
	v_lshlrev_b32_e32 v18, 3, v38
	v_lshlrev_b32_e32 v19, 2, v1
	v_add3_u32 v30, 0, v18, v19
	v_add_u32_e32 v28, 0x1000, v30
	ds_read2_b32 v[18:19], v28 offset1:32
	v_lshlrev_b32_e32 v0, 3, v0
	v_and_b32_e32 v0, 0x78, v0
	v_lshrrev_b32_e32 v20, 2, v38
	v_xor_b32_e32 v0, v0, v20
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v19, v19, v19
	v_max_f32_e32 v18, v18, v18
	v_lshl_or_b32 v0, v1, 7, v0
	v_xad_u32 v22, v0, 48, 0
	v_xad_u32 v24, v0, 32, 0
	v_xad_u32 v26, v0, 16, 0
	v_add_u32_e32 v20, 0, v0
	ds_read_b64 v[20:21], v20
	ds_read_b64 v[22:23], v22
	ds_read_b64 v[24:25], v24
	ds_read_b64 v[26:27], v26
	ds_read2_b32 v[28:29], v28 offset0:128 offset1:160
	s_waitcnt lgkmcnt(4)
	v_max_f32_e32 v21, v21, v21
	v_max_f32_e32 v20, v20, v20
	v_add_u32_e32 v31, 0x1800, v30
	s_waitcnt lgkmcnt(1)
	v_max_f32_e32 v27, v27, v27
	v_mfma_f32_32x32x4_xf32 v[2:17], v[18:19], v[20:21], v[2:17]
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v19, v29, v29
	v_max_f32_e32 v18, v28, v28
	v_add_u32_e32 v28, 0x1400, v30
	ds_read2_b32 v[20:21], v28 offset1:32
	v_max_f32_e32 v26, v26, v26
	v_max_f32_e32 v25, v25, v25
	v_max_f32_e32 v24, v24, v24
	v_mfma_f32_32x32x4_xf32 v[2:17], v[18:19], v[26:27], v[2:17]
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v21, v21, v21
	v_max_f32_e32 v20, v20, v20
	ds_read2_b32 v[26:27], v31 offset1:32
	ds_read2_b32 v[28:29], v28 offset0:128 offset1:160
	v_max_f32_e32 v23, v23, v23
	v_max_f32_e32 v22, v22, v22
	ds_read2_b32 v[18:19], v31 offset0:128 offset1:160
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v19, v19, v19
	v_mfma_f32_32x32x4_xf32 v[2:17], v[20:21], v[24:25], v[2:17]
	v_max_f32_e32 v21, v29, v29
	v_max_f32_e32 v20, v28, v28
	v_xad_u32 v25, v0, 64, 0
	v_xor_b32_e32 v24, 0x60, v0
	v_add_u32_e32 v24, 0, v24
	v_max_f32_e32 v18, v18, v18
	v_mfma_f32_32x32x4_xf32 v[2:17], v[20:21], v[22:23], v[2:17]
	ds_read_b64 v[20:21], v25
	v_max_f32_e32 v23, v27, v27
	v_max_f32_e32 v22, v26, v26
	v_xor_b32_e32 v25, 0x50, v0
	v_add_u32_e32 v25, 0, v25
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v21, v21, v21
	v_max_f32_e32 v20, v20, v20
	v_add_u32_e32 v26, 0x1c00, v30
	v_xor_b32_e32 v0, 0x70, v0
	v_mfma_f32_32x32x4_xf32 v[2:17], v[22:23], v[20:21], v[2:17]
	ds_read_b64 v[20:21], v24
	ds_read_b64 v[22:23], v25
	ds_read2_b32 v[24:25], v26 offset1:32
	v_add_u32_e32 v0, 0, v0
	s_waitcnt lgkmcnt(2)
	v_max_f32_e32 v21, v21, v21
	s_waitcnt lgkmcnt(1)
	v_max_f32_e32 v23, v23, v23
	v_max_f32_e32 v22, v22, v22
	v_max_f32_e32 v20, v20, v20
	s_nop 0
	v_mfma_f32_32x32x4_xf32 v[2:17], v[18:19], v[22:23], v[2:17]
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v23, v25, v25
	v_max_f32_e32 v22, v24, v24
	ds_read2_b32 v[18:19], v26 offset0:128 offset1:160
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v19, v19, v19
	v_mfma_f32_32x32x4_xf32 v[2:17], v[22:23], v[20:21], v[2:17]
	ds_read_b64 v[20:21], v0
	v_max_f32_e32 v18, v18, v18
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v21, v21, v21
	v_max_f32_e32 v20, v20, v20
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[2:17], v[18:19], v[20:21], v[2:17]
.LBB0_19:
	v_lshrrev_b32_e32 v0, 3, v38
	v_or_b32_e32 v1, s11, v1
	v_or_b32_e32 v18, s12, v0
	v_cmp_gt_i32_e32 vcc, s8, v1
	v_cmp_gt_i32_e64 s[0:1], s9, v18
	s_and_b64 s[0:1], vcc, s[0:1]
	v_mul_lo_u32 v0, s9, v1
	v_ashrrev_i32_e32 v1, 31, v0
	s_cmp_eq_u32 s2, 0
	v_lshl_add_u64 v[0:1], v[0:1], 2, s[6:7]
	v_ashrrev_i32_e32 v19, 31, v18
	s_cselect_b64 s[2:3], -1, 0
	v_lshl_add_u64 v[0:1], v[18:19], 2, v[0:1]
	s_and_b64 s[4:5], s[0:1], s[2:3]
	s_and_saveexec_b64 s[0:1], s[4:5]
	s_cbranch_execz .LBB0_21
	global_store_dwordx4 v[0:1], v[2:5], off
	global_store_dwordx4 v[0:1], v[6:9], off offset:32
.LBB0_21:
	s_or_b64 exec, exec, s[0:1]
	v_or_b32_e32 v2, 16, v18
	v_cmp_gt_i32_e64 s[0:1], s9, v2
	s_and_b64 s[0:1], vcc, s[0:1]
	s_and_b64 s[0:1], s[0:1], s[2:3]
	s_and_saveexec_b64 s[2:3], s[0:1]
	s_cbranch_execz .LBB0_23
	global_store_dwordx4 v[0:1], v[10:13], off offset:64
	global_store_dwordx4 v[0:1], v[14:17], off offset:96
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
		.amdhsa_next_free_vgpr 66
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 68
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
    .vgpr_count:     66
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
