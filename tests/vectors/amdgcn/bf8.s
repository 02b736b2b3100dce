; Triton 3.9.0, make.py: ('gemm', 'fp8e5b16', {'MASK': True}, (32, 32, 64), {})
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
	v_lshrrev_b32_e32 v2, 3, v4
	v_lshlrev_b32_e32 v1, 3, v0
	v_or_b32_e32 v2, s11, v2
	v_and_b32_e32 v18, 56, v1
	v_cmp_gt_i32_e32 vcc, s8, v2
	v_mul_lo_u32 v2, v2, s10
	v_ashrrev_i32_e32 v3, 31, v2
	v_cmp_gt_i32_e64 s[0:1], s10, v18
	v_lshl_add_u64 v[20:21], s[2:3], 0, v[2:3]
	s_and_b64 s[2:3], s[0:1], vcc
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, 0
	s_and_saveexec_b64 s[0:1], s[2:3]
	s_cbranch_execz .LBB0_2
	v_mov_b32_e32 v19, v6
	v_lshl_add_u64 v[2:3], v[20:21], 0, v[18:19]
	global_load_dwordx2 v[8:9], v[2:3], off
.LBB0_2:
	s_or_b64 exec, exec, s[0:1]
	s_lshl_b32 s12, s17, 5
	v_and_or_b32 v2, v1, 24, s12
	v_lshrrev_b32_e32 v27, 2, v4
	v_cmp_gt_i32_e64 s[0:1], s9, v2
	v_cmp_gt_i32_e64 s[2:3], s10, v27
	s_and_b64 s[14:15], s[0:1], s[2:3]
	v_ashrrev_i32_e32 v3, 31, v2
	v_mov_b32_e32 v7, 0
	s_and_saveexec_b64 s[2:3], s[14:15]
	s_cbranch_execz .LBB0_4
	v_mul_lo_u32 v6, v27, s9
	v_ashrrev_i32_e32 v7, 31, v6
	v_lshl_add_u64 v[6:7], s[4:5], 0, v[6:7]
	v_lshl_add_u64 v[6:7], v[6:7], 0, v[2:3]
	global_load_dwordx2 v[6:7], v[6:7], off
.LBB0_4:
	s_or_b64 exec, exec, s[2:3]
	v_lshlrev_b32_e32 v5, 3, v4
	v_lshrrev_b32_e32 v4, 1, v4
	v_and_b32_e32 v4, 56, v4
	v_xor_b32_e32 v4, v4, v5
	s_sub_i32 s14, s10, 64
	v_and_b32_e32 v1, 31, v0
	v_and_b32_e32 v26, 32, v0
	v_add_u32_e32 v28, 0, v4
	v_add_u32_e32 v29, 0, v5
	s_cmp_lt_i32 s14, 1
	s_waitcnt vmcnt(0)
	ds_write_b64 v28, v[8:9]
	ds_write_b64 v29, v[6:7] offset:2048
	s_cbranch_scc1 .LBB0_16
	v_or_b32_e32 v4, 64, v18
	v_cmp_gt_i32_e64 s[2:3], s10, v4
	s_and_b64 s[16:17], vcc, s[2:3]
	v_mov_b32_e32 v24, 0
	v_mov_b32_e32 v34, 0
	v_mov_b32_e32 v35, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_7
	v_mov_b32_e32 v19, v24
	v_lshl_add_u64 v[4:5], v[20:21], 0, v[18:19]
	global_load_dwordx2 v[34:35], v[4:5], off offset:64
.LBB0_7:
	s_or_b64 exec, exec, s[2:3]
	v_lshlrev_b32_e32 v4, 2, v0
	v_and_b32_e32 v4, 56, v4
	v_lshrrev_b32_e32 v5, 2, v26
	v_xor_b32_e32 v4, v4, v5
	v_lshl_or_b32 v4, v1, 6, v4
	v_xor_b32_e32 v5, 16, v4
	v_xor_b32_e32 v6, 32, v4
	v_xor_b32_e32 v7, 48, v4
	v_add_u32_e32 v19, 0, v4
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_add_u32_e32 v30, 0, v5
	v_add_u32_e32 v31, 0, v6
	v_add_u32_e32 v32, 0, v7
	ds_read_b64 v[42:43], v19
	ds_read_b64 v[40:41], v30
	ds_read_b64 v[38:39], v31
	ds_read_b64 v[36:37], v32
	v_lshl_add_u64 v[22:23], s[4:5], 0, v[2:3]
	v_or_b32_e32 v2, 64, v27
	v_cmp_gt_i32_e64 s[2:3], s10, v2
	s_and_b64 s[4:5], s[0:1], s[2:3]
	v_mov_b32_e32 v25, 0
	s_and_saveexec_b64 s[2:3], s[4:5]
	s_cbranch_execz .LBB0_9
	v_mul_lo_u32 v2, v2, s9
	v_ashrrev_i32_e32 v3, 31, v2
	v_lshl_add_u64 v[2:3], v[22:23], 0, v[2:3]
	global_load_dwordx2 v[24:25], v[2:3], off
.LBB0_9:
	s_or_b64 exec, exec, s[2:3]
	v_lshl_add_u32 v2, v26, 3, 0
	v_add_u32_e32 v33, v2, v1
	ds_read_u8 v2, v33 offset:2208
	ds_read_u8 v3, v33 offset:2272
	ds_read_u8 v4, v33 offset:2240
	ds_read_u8 v5, v33 offset:2176
	ds_read_u8 v6, v33 offset:2144
	ds_read_u8 v7, v33 offset:2112
	ds_read_u8 v8, v33 offset:2048
	ds_read_u8 v9, v33 offset:2080
	s_mov_b32 s4, 0xc0c0004
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v2, v5, v2, s4
	v_perm_b32 v3, v4, v3, s4
	v_lshl_or_b32 v45, v3, 16, v2
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v2, v7, v6, s4
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v3, v8, v9, s4
	ds_read_u8 v4, v33 offset:2720
	ds_read_u8 v5, v33 offset:2784
	ds_read_u8 v6, v33 offset:2752
	ds_read_u8 v7, v33 offset:2688
	ds_read_u8 v8, v33 offset:2592
	ds_read_u8 v9, v33 offset:2656
	ds_read_u8 v10, v33 offset:2624
	ds_read_u8 v11, v33 offset:2560
	v_lshl_or_b32 v44, v2, 16, v3
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v2, v7, v4, s4
	v_perm_b32 v3, v6, v5, s4
	v_lshl_or_b32 v47, v3, 16, v2
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v46, v11, v8, s4
	v_perm_b32 v48, v10, v9, s4
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[44:45], v[42:43], 0
	v_lshl_or_b32 v46, v48, 16, v46
	ds_read_u8 v49, v33 offset:3232
	ds_read_u8 v50, v33 offset:3296
	ds_read_u8 v51, v33 offset:3264
	ds_read_u8 v52, v33 offset:3200
	ds_read_u8 v53, v33 offset:3104
	ds_read_u8 v54, v33 offset:3168
	ds_read_u8 v55, v33 offset:3136
	ds_read_u8 v56, v33 offset:3072
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v42, v52, v49, s4
	v_perm_b32 v43, v51, v50, s4
	v_lshl_or_b32 v43, v43, 16, v42
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v44, v55, v54, s4
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v42, v56, v53, s4
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[46:47], v[40:41], v[2:17]
	v_lshl_or_b32 v42, v44, 16, v42
	ds_read_u8 v40, v33 offset:3744
	ds_read_u8 v41, v33 offset:3808
	ds_read_u8 v44, v33 offset:3776
	ds_read_u8 v45, v33 offset:3712
	ds_read_u8 v46, v33 offset:3616
	ds_read_u8 v47, v33 offset:3680
	ds_read_u8 v48, v33 offset:3648
	ds_read_u8 v49, v33 offset:3584
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v40, v45, v40, s4
	v_perm_b32 v41, v44, v41, s4
	v_lshl_or_b32 v41, v41, 16, v40
	s_cmpk_lt_u32 s14, 0x41
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[42:43], v[38:39], v[2:17]
	v_perm_b32 v38, v49, v46, s4
	v_perm_b32 v39, v48, v47, s4
	v_lshl_or_b32 v40, v39, 16, v38
	s_barrier
	s_waitcnt vmcnt(0)
	ds_write_b64 v28, v[34:35]
	ds_write_b64 v29, v[24:25] offset:2048
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[40:41], v[36:37], v[2:17]
	s_cbranch_scc1 .LBB0_17
	s_mov_b32 s5, 64
	s_branch .LBB0_12
.LBB0_11:
	s_or_b64 exec, exec, s[2:3]
	ds_read_u8 v24, v33 offset:2208
	ds_read_u8 v25, v33 offset:2272
	ds_read_u8 v46, v33 offset:2240
	ds_read_u8 v47, v33 offset:2176
	ds_read_u8 v48, v33 offset:2144
	ds_read_u8 v49, v33 offset:2112
	ds_read_u8 v50, v33 offset:2048
	ds_read_u8 v51, v33 offset:2080
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v24, v47, v24, s4
	v_perm_b32 v25, v46, v25, s4
	v_lshl_or_b32 v25, v25, 16, v24
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v24, v49, v48, s4
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v46, v50, v51, s4
	v_lshl_or_b32 v24, v24, 16, v46
	ds_read_u8 v47, v33 offset:2720
	ds_read_u8 v48, v33 offset:2784
	ds_read_u8 v49, v33 offset:2752
	ds_read_u8 v50, v33 offset:2688
	ds_read_u8 v51, v33 offset:2592
	ds_read_u8 v52, v33 offset:2656
	ds_read_u8 v53, v33 offset:2624
	ds_read_u8 v54, v33 offset:2560
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v46, v50, v47, s4
	v_perm_b32 v47, v49, v48, s4
	v_lshl_or_b32 v47, v47, 16, v46
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[24:25], v[44:45], v[2:17]
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v46, v54, v51, s4
	v_perm_b32 v48, v53, v52, s4
	v_lshl_or_b32 v46, v48, 16, v46
	ds_read_u8 v49, v33 offset:3232
	ds_read_u8 v50, v33 offset:3296
	ds_read_u8 v51, v33 offset:3264
	ds_read_u8 v52, v33 offset:3200
	ds_read_u8 v53, v33 offset:3104
	ds_read_u8 v54, v33 offset:3168
	ds_read_u8 v55, v33 offset:3136
	ds_read_u8 v56, v33 offset:3072
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v24, v52, v49, s4
	v_perm_b32 v25, v51, v50, s4
	v_lshl_or_b32 v25, v25, 16, v24
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[46:47], v[42:43], v[2:17]
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v24, v56, v53, s4
	v_perm_b32 v44, v55, v54, s4
	v_lshl_or_b32 v24, v44, 16, v24
	ds_read_u8 v42, v33 offset:3744
	ds_read_u8 v43, v33 offset:3808
	ds_read_u8 v44, v33 offset:3776
	ds_read_u8 v45, v33 offset:3712
	ds_read_u8 v46, v33 offset:3616
	ds_read_u8 v47, v33 offset:3680
	ds_read_u8 v48, v33 offset:3648
	ds_read_u8 v49, v33 offset:3584
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v42, v45, v42, s4
	v_perm_b32 v43, v44, v43, s4
	v_lshl_or_b32 v43, v43, 16, v42
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[24:25], v[40:41], v[2:17]
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v24, v49, v46, s4
	v_perm_b32 v25, v48, v47, s4
	v_lshl_or_b32 v42, v25, 16, v24
	s_cmp_lt_i32 s5, s14
	s_barrier
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[42:43], v[38:39], v[2:17]
	s_waitcnt vmcnt(0)
	ds_write_b64 v28, v[36:37]
	ds_write_b64 v29, v[34:35] offset:2048
	s_cbranch_scc0 .LBB0_17
.LBB0_12:
	s_add_i32 s5, s5, 64
	v_or_b32_e32 v24, s5, v18
	v_cmp_gt_i32_e64 s[2:3], s10, v24
	s_and_b64 s[16:17], vcc, s[2:3]
	v_mov_b32_e32 v34, 0
	v_mov_b32_e32 v36, 0
	v_mov_b32_e32 v37, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_14
	v_ashrrev_i32_e32 v25, 31, v24
	v_lshl_add_u64 v[24:25], v[20:21], 0, v[24:25]
	global_load_dwordx2 v[36:37], v[24:25], off
.LBB0_14:
	s_or_b64 exec, exec, s[2:3]
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b64 v[44:45], v19
	ds_read_b64 v[42:43], v30
	ds_read_b64 v[40:41], v31
	ds_read_b64 v[38:39], v32
	v_or_b32_e32 v24, s5, v27
	v_cmp_gt_i32_e64 s[2:3], s10, v24
	s_and_b64 s[16:17], s[0:1], s[2:3]
	v_mov_b32_e32 v35, 0
	s_and_saveexec_b64 s[2:3], s[16:17]
	s_cbranch_execz .LBB0_11
	v_mul_lo_u32 v24, v24, s9
	v_ashrrev_i32_e32 v25, 31, v24
	v_lshl_add_u64 v[24:25], v[22:23], 0, v[24:25]
	global_load_dwordx2 v[34:35], v[24:25], off
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
	s_add_i32 s10, s10, 63
	s_cmp_lt_i32 s10, 64
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_19
	v_lshlrev_b32_e32 v18, 3, v26
	v_lshlrev_b32_e32 v0, 2, v0
	v_add3_u32 v22, 0, v18, v1
	v_and_b32_e32 v0, 56, v0
	v_lshrrev_b32_e32 v18, 2, v26
	v_xor_b32_e32 v0, v0, v18
	v_lshl_or_b32 v0, v1, 6, v0
	v_xad_u32 v18, v0, 48, 0
	v_xad_u32 v19, v0, 32, 0
	v_xad_u32 v20, v0, 16, 0
	v_add_u32_e32 v0, 0, v0
	ds_read_b64 v[32:33], v18
	ds_read_b64 v[34:35], v19
	ds_read_b64 v[36:37], v20
	ds_read_b64 v[38:39], v0
	ds_read_u8 v0, v22 offset:2208
	ds_read_u8 v18, v22 offset:2272
	ds_read_u8 v19, v22 offset:2240
	ds_read_u8 v20, v22 offset:2176
	ds_read_u8 v21, v22 offset:2144
	ds_read_u8 v23, v22 offset:2112
	ds_read_u8 v24, v22 offset:2048
	ds_read_u8 v25, v22 offset:2080
	s_mov_b32 s0, 0xc0c0004
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v0, v20, v0, s0
	v_perm_b32 v18, v19, v18, s0
	v_lshl_or_b32 v19, v18, 16, v0
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v0, v23, v21, s0
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v18, v24, v25, s0
	v_lshl_or_b32 v18, v0, 16, v18
	ds_read_u8 v20, v22 offset:2720
	ds_read_u8 v21, v22 offset:2784
	ds_read_u8 v23, v22 offset:2752
	ds_read_u8 v24, v22 offset:2688
	ds_read_u8 v25, v22 offset:2592
	ds_read_u8 v27, v22 offset:2656
	ds_read_u8 v28, v22 offset:2624
	ds_read_u8 v29, v22 offset:2560
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[18:19], v[38:39], v[2:17]
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v0, v24, v20, s0
	v_perm_b32 v20, v23, v21, s0
	v_lshl_or_b32 v21, v20, 16, v0
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v0, v29, v25, s0
	v_perm_b32 v20, v28, v27, s0
	v_lshl_or_b32 v20, v20, 16, v0
	ds_read_u8 v23, v22 offset:3232
	ds_read_u8 v24, v22 offset:3296
	ds_read_u8 v25, v22 offset:3264
	ds_read_u8 v27, v22 offset:3200
	ds_read_u8 v28, v22 offset:3104
	ds_read_u8 v29, v22 offset:3168
	ds_read_u8 v30, v22 offset:3136
	ds_read_u8 v31, v22 offset:3072
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[20:21], v[36:37], v[2:17]
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v0, v27, v23, s0
	v_perm_b32 v18, v25, v24, s0
	v_lshl_or_b32 v19, v18, 16, v0
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v0, v31, v28, s0
	v_perm_b32 v18, v30, v29, s0
	v_lshl_or_b32 v18, v18, 16, v0
	ds_read_u8 v0, v22 offset:3744
	ds_read_u8 v20, v22 offset:3808
	ds_read_u8 v21, v22 offset:3776
	ds_read_u8 v23, v22 offset:3712
	ds_read_u8 v24, v22 offset:3616
	ds_read_u8 v25, v22 offset:3680
	ds_read_u8 v27, v22 offset:3648
	ds_read_u8 v22, v22 offset:3584
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[18:19], v[34:35], v[2:17]
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v0, v23, v0, s0
	v_perm_b32 v20, v21, v20, s0
	v_lshl_or_b32 v21, v20, 16, v0
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v0, v22, v24, s0
	v_perm_b32 v18, v27, v25, s0
	v_lshl_or_b32 v20, v18, 16, v0
	s_nop 1
	v_mfma_f32_32x32x16_bf8_bf8 v[2:17], v[20:21], v[32:33], v[2:17]
.LBB0_19:
	v_lshrrev_b32_e32 v0, 3, v26
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
		.amdhsa_next_free_vgpr 57
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 60
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
    .vgpr_count:     57
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
