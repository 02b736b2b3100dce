; Triton 3.9.0, make.py: ('split_k', 'fp16', {'PARTS': 3}, (32, 32, 32), {})
	.amdgcn_target "amdgpu9.42-amd-amdhsa-unknown-gfx942"
	.amdhsa_code_object_version 5
	.text
split_k:
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
	v_and_or_b32 v24, v0, 63, s0
	s_lshl_b32 s14, s16, 5
	v_lshrrev_b32_e32 v1, 3, v24
	v_or_b32_e32 v2, s14, v1
	v_lshlrev_b32_e32 v25, 2, v0
	v_cmp_gt_i32_e32 vcc, s8, v2
	v_mul_lo_u32 v2, v2, s10
	v_and_b32_e32 v27, 28, v25
	s_lshl_b32 s16, s18, 5
	v_ashrrev_i32_e32 v3, 31, v2
	v_lshl_add_u64 v[18:19], v[2:3], 1, s[2:3]
	v_or_b32_e32 v2, s16, v27
	s_cmp_lt_i32 s16, s10
	v_cmp_gt_i32_e64 s[0:1], s10, v2
	s_cselect_b64 s[12:13], -1, 0
	s_and_b64 s[0:1], s[0:1], vcc
	s_and_b64 s[2:3], s[12:13], s[0:1]
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, 0
	s_and_saveexec_b64 s[0:1], s[2:3]
	s_cbranch_execz .LBB0_2
	v_ashrrev_i32_e32 v3, 31, v2
	v_lshl_add_u64 v[2:3], v[2:3], 1, v[18:19]
	global_load_dwordx2 v[8:9], v[2:3], off
.LBB0_2:
	s_or_b64 exec, exec, s[0:1]
	s_lshl_b32 s15, s17, 5
	v_or_b32_e32 v2, s15, v27
	v_or_b32_e32 v4, s16, v1
	v_cmp_gt_i32_e64 s[0:1], s9, v2
	v_cmp_gt_i32_e64 s[2:3], s10, v4
	s_and_b64 s[2:3], s[0:1], s[2:3]
	s_and_b64 s[12:13], s[12:13], s[2:3]
	v_ashrrev_i32_e32 v3, 31, v2
	v_mov_b32_e32 v7, 0
	s_and_saveexec_b64 s[2:3], s[12:13]
	s_cbranch_execz .LBB0_4
	v_mul_lo_u32 v4, v4, s9
	v_ashrrev_i32_e32 v5, 31, v4
	v_lshl_add_u64 v[4:5], v[4:5], 1, s[4:5]
	v_lshl_add_u64 v[4:5], v[2:3], 1, v[4:5]
	global_load_dwordx2 v[6:7], v[4:5], off
.LBB0_4:
	s_or_b64 exec, exec, s[2:3]
	v_lshrrev_b32_e32 v5, 1, v24
	v_lshlrev_b32_e32 v4, 3, v24
	v_and_b32_e32 v5, 56, v5
	v_xor_b32_e32 v5, v5, v4
	s_add_i32 s12, s10, 0xffffffa0
	v_and_b32_e32 v26, 31, v0
	v_add_u32_e32 v28, 0, v5
	v_add_u32_e32 v29, 0, v4
	s_cmp_ge_i32 s16, s12
	s_waitcnt vmcnt(0)
	ds_write_b64 v28, v[8:9]
	ds_write_b64 v29, v[6:7] offset:2048
	s_cbranch_scc1 .LBB0_15
	s_add_i32 s13, s16, 0x60
	v_or_b32_e32 v4, s13, v27
	v_cmp_gt_i32_e64 s[2:3], s10, v4
	s_and_b64 s[18:19], vcc, s[2:3]
	v_mov_b32_e32 v22, 0
	v_mov_b32_e32 v36, 0
	v_mov_b32_e32 v37, 0
	s_and_saveexec_b64 s[2:3], s[18:19]
	s_cbranch_execz .LBB0_7
	v_ashrrev_i32_e32 v5, 31, v4
	v_lshl_add_u64 v[4:5], v[4:5], 1, v[18:19]
	global_load_dwordx2 v[36:37], v[4:5], off
.LBB0_7:
	s_or_b64 exec, exec, s[2:3]
	v_and_b32_e32 v4, 32, v0
	v_and_b32_e32 v5, 56, v25
	v_lshrrev_b32_e32 v6, 2, v4
	v_xor_b32_e32 v5, v5, v6
	v_lshl_or_b32 v5, v26, 6, v5
	v_xor_b32_e32 v6, 16, v5
	v_xor_b32_e32 v7, 32, v5
	v_xor_b32_e32 v8, 48, v5
	v_add_u32_e32 v30, 0, v5
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_add_u32_e32 v31, 0, v6
	v_add_u32_e32 v32, 0, v7
	v_add_u32_e32 v33, 0, v8
	ds_read_b64 v[44:45], v30
	ds_read_b64 v[42:43], v31
	ds_read_b64 v[40:41], v32
	ds_read_b64 v[38:39], v33
	v_lshl_add_u64 v[20:21], v[2:3], 1, s[4:5]
	v_or_b32_e32 v2, s13, v1
	v_cmp_gt_i32_e64 s[2:3], s10, v2
	s_and_b64 s[4:5], s[0:1], s[2:3]
	v_mov_b32_e32 v23, 0
	s_and_saveexec_b64 s[2:3], s[4:5]
	s_cbranch_execz .LBB0_9
	v_mul_lo_u32 v2, v2, s9
	v_ashrrev_i32_e32 v3, 31, v2
	v_lshl_add_u64 v[2:3], v[2:3], 1, v[20:21]
	global_load_dwordx2 v[22:23], v[2:3], off
.LBB0_9:
	s_or_b64 exec, exec, s[2:3]
	v_lshlrev_b32_e32 v2, 1, v26
	v_lshl_add_u32 v3, v4, 3, 0
	v_add_u32_e32 v34, v3, v2
	ds_read_u16 v2, v34 offset:2048
	ds_read_u16 v3, v34 offset:2112
	ds_read_u16 v4, v34 offset:2176
	ds_read_u16 v5, v34 offset:2240
	ds_read_u16 v35, v34 offset:2560
	ds_read_u16 v48, v34 offset:2624
	ds_read_u16 v49, v34 offset:2688
	ds_read_u16 v50, v34 offset:2752
	s_mov_b32 s4, 0x5040100
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v47, v5, v4, s4
	v_perm_b32 v46, v3, v2, s4
	s_cmp_ge_i32 s13, s12
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[2:17], v[46:47], v[44:45], 0
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v45, v50, v49, s4
	v_perm_b32 v44, v48, v35, s4
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[2:17], v[44:45], v[42:43], v[2:17]
	ds_read_u16 v35, v34 offset:3072
	ds_read_u16 v42, v34 offset:3136
	ds_read_u16 v43, v34 offset:3200
	ds_read_u16 v44, v34 offset:3264
	ds_read_u16 v45, v34 offset:3584
	ds_read_u16 v46, v34 offset:3648
	ds_read_u16 v47, v34 offset:3712
	ds_read_u16 v48, v34 offset:3776
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v43, v44, v43, s4
	v_perm_b32 v42, v42, v35, s4
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_waitcnt vmcnt(0)
	ds_write_b64 v28, v[36:37]
	v_mfma_f32_32x32x8_f16 v[2:17], v[42:43], v[40:41], v[2:17]
	v_perm_b32 v41, v48, v47, s4
	v_perm_b32 v40, v46, v45, s4
	ds_write_b64 v29, v[22:23] offset:2048
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[2:17], v[40:41], v[38:39], v[2:17]
	s_cbranch_scc0 .LBB0_11
	s_branch .LBB0_16
.LBB0_10:
	s_or_b64 exec, exec, s[2:3]
	ds_read_u16 v22, v34 offset:2048
	ds_read_u16 v35, v34 offset:2112
	ds_read_u16 v23, v34 offset:2176
	ds_read_u16 v48, v34 offset:2240
	ds_read_u16 v49, v34 offset:2560
	ds_read_u16 v50, v34 offset:2624
	ds_read_u16 v51, v34 offset:2688
	ds_read_u16 v52, v34 offset:2752
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v23, v48, v23, s4
	v_perm_b32 v22, v35, v22, s4
	s_cmp_lt_i32 s13, s12
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[2:17], v[22:23], v[46:47], v[2:17]
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v23, v52, v51, s4
	v_perm_b32 v22, v50, v49, s4
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[2:17], v[22:23], v[44:45], v[2:17]
	ds_read_u16 v22, v34 offset:3072
	ds_read_u16 v35, v34 offset:3136
	ds_read_u16 v23, v34 offset:3200
	ds_read_u16 v44, v34 offset:3264
	ds_read_u16 v45, v34 offset:3584
	ds_read_u16 v46, v34 offset:3648
	ds_read_u16 v47, v34 offset:3712
	ds_read_u16 v48, v34 offset:3776
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v23, v44, v23, s4
	v_perm_b32 v22, v35, v22, s4
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_waitcnt vmcnt(0)
	ds_write_b64 v28, v[38:39]
	v_mfma_f32_32x32x8_f16 v[2:17], v[22:23], v[42:43], v[2:17]
	v_perm_b32 v23, v48, v47, s4
	v_perm_b32 v22, v46, v45, s4
	ds_write_b64 v29, v[36:37] offset:2048
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[2:17], v[22:23], v[40:41], v[2:17]
	s_cbranch_scc0 .LBB0_16
.LBB0_11:
	s_addk_i32 s13, 0x60
	v_or_b32_e32 v22, s13, v27
	v_cmp_gt_i32_e64 s[2:3], s10, v22
	s_and_b64 s[18:19], vcc, s[2:3]
	v_mov_b32_e32 v36, 0
	v_mov_b32_e32 v38, 0
	v_mov_b32_e32 v39, 0
	s_and_saveexec_b64 s[2:3], s[18:19]
	s_cbranch_execz .LBB0_13
	v_ashrrev_i32_e32 v23, 31, v22
	v_lshl_add_u64 v[22:23], v[22:23], 1, v[18:19]
	global_load_dwordx2 v[38:39], v[22:23], off
.LBB0_13:
	s_or_b64 exec, exec, s[2:3]
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b64 v[46:47], v30
	ds_read_b64 v[44:45], v31
	ds_read_b64 v[42:43], v32
	ds_read_b64 v[40:41], v33
	v_or_b32_e32 v22, s13, v1
	v_cmp_gt_i32_e64 s[2:3], s10, v22
	s_and_b64 s[18:19], s[0:1], s[2:3]
	v_mov_b32_e32 v37, 0
	s_and_saveexec_b64 s[2:3], s[18:19]
	s_cbranch_execz .LBB0_10
	v_mul_lo_u32 v22, v22, s9
	v_ashrrev_i32_e32 v23, 31, v22
	v_lshl_add_u64 v[22:23], v[22:23], 1, v[20:21]
	global_load_dwordx2 v[36:37], v[22:23], off
	s_branch .LBB0_10
.LBB0_15:
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
.LBB0_16:
	s_sub_i32 s0, s10, s16
	s_addk_i32 s0, 0x5f
	s_cmpk_lt_i32 s0, 0x60
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_18
	v_and_b32_e32 v18, 32, v0
	v_lshlrev_b32_e32 v19, 3, v18
	v_lshlrev_b32_e32 v20, 1, v26
	v_add3_u32 v22, 0, v19, v20
	ds_read_u16 v19, v22 offset:2240
	ds_read_u16 v20, v22 offset:2176
	ds_read_u16 v21, v22 offset:2112
	ds_read_u16 v23, v22 offset:2048
	v_and_b32_e32 v27, 56, v25
	v_lshrrev_b32_e32 v18, 2, v18
	v_xor_b32_e32 v18, v27, v18
	v_lshl_or_b32 v27, v26, 6, v18
	v_add_u32_e32 v18, 0, v27
	s_mov_b32 s0, 0x5040100
	v_xad_u32 v29, v27, 16, 0
	ds_read_b64 v[30:31], v18
	ds_read_b64 v[32:33], v29
	s_waitcnt lgkmcnt(4)
	v_perm_b32 v19, v19, v20, s0
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v18, v21, v23, s0
	ds_read_u16 v20, v22 offset:2752
	ds_read_u16 v21, v22 offset:2688
	ds_read_u16 v23, v22 offset:2624
	ds_read_u16 v28, v22 offset:2560
	s_waitcnt lgkmcnt(5)
	v_mfma_f32_32x32x8_f16 v[2:17], v[18:19], v[30:31], v[2:17]
	s_waitcnt lgkmcnt(2)
	v_perm_b32 v21, v20, v21, s0
	s_waitcnt lgkmcnt(0)
	v_perm_b32 v20, v23, v28, s0
	ds_read_u16 v18, v22 offset:3264
	ds_read_u16 v19, v22 offset:3200
	ds_read_u16 v23, v22 offset:3136
	ds_read_u16 v28, v22 offset:3072
	v_xad_u32 v29, v27, 32, 0
	ds_read_b64 v[30:31], v29
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v19, v18, v19, s0
	v_xad_u32 v27, v27, 48, 0
	v_mfma_f32_32x32x8_f16 v[2:17], v[20:21], v[32:33], v[2:17]
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v18, v23, v28, s0
	ds_read_u16 v20, v22 offset:3776
	ds_read_u16 v21, v22 offset:3712
	ds_read_u16 v23, v22 offset:3648
	ds_read_u16 v22, v22 offset:3584
	ds_read_b64 v[28:29], v27
	s_waitcnt lgkmcnt(5)
	v_mfma_f32_32x32x8_f16 v[2:17], v[18:19], v[30:31], v[2:17]
	s_waitcnt lgkmcnt(3)
	v_perm_b32 v19, v20, v21, s0
	s_waitcnt lgkmcnt(1)
	v_perm_b32 v18, v23, v22, s0
	s_waitcnt lgkmcnt(0)
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[2:17], v[18:19], v[28:29], v[2:17]
.LBB0_18:
	v_lshrrev_b32_e32 v18, 5, v24
	v_lshlrev_b32_e32 v22, 1, v0
	v_or_b32_e32 v18, s14, v18
	v_or_b32_e32 v20, s15, v26
	v_lshlrev_b32_e32 v19, 7, v0
	v_and_b32_e32 v23, 0x70, v22
	v_and_b32_e32 v26, 4, v0
	v_bfe_i32 v0, v0, 2, 1
	v_cmp_gt_i32_e64 s[0:1], s8, v18
	v_cmp_gt_i32_e32 vcc, s9, v20
	v_and_b32_e32 v0, 0x240, v0
	v_and_or_b32 v23, v25, 12, v23
	s_and_b64 s[2:3], vcc, s[0:1]
	v_xor_b32_e32 v0, v23, v0
	s_movk_i32 s0, 0xd80
	v_and_or_b32 v0, v19, s0, v0
	v_add_u32_e32 v19, 0, v0
	s_barrier
	ds_write_b32 v19, v2
	v_xad_u32 v2, v0, 4, 0
	ds_write_b32 v2, v3
	v_xad_u32 v2, v0, 8, 0
	ds_write_b32 v2, v4
	v_xad_u32 v2, v0, 12, 0
	ds_write_b32 v2, v5
	v_xad_u32 v2, v0, 16, 0
	ds_write_b32 v2, v6
	v_xad_u32 v2, v0, 20, 0
	ds_write_b32 v2, v7
	v_xad_u32 v2, v0, 24, 0
	ds_write_b32 v2, v8
	v_xad_u32 v2, v0, 28, 0
	ds_write_b32 v2, v9
	v_xad_u32 v2, v0, 32, 0
	ds_write_b32 v2, v10
	v_xad_u32 v2, v0, 36, 0
	ds_write_b32 v2, v11
	v_xad_u32 v2, v0, 40, 0
	ds_write_b32 v2, v12
	v_xad_u32 v2, v0, 44, 0
	ds_write_b32 v2, v13
	v_xad_u32 v2, v0, 48, 0
	ds_write_b32 v2, v14
	v_xad_u32 v2, v0, 52, 0
	ds_write_b32 v2, v15
	v_xad_u32 v2, v0, 56, 0
	v_xad_u32 v0, v0, 60, 0
	v_lshlrev_b32_e32 v3, 4, v26
	s_bfe_i32 s0, s11, 0x10007
	ds_write_b32 v2, v16
	ds_write_b32 v0, v17
	v_lshlrev_b32_e32 v0, 2, v24
	v_and_b32_e32 v2, 48, v22
	s_and_b32 s0, s0, 0x240
	s_movk_i32 s1, 0x18c
	v_and_or_b32 v1, v1, 12, v3
	v_and_or_b32 v0, v0, s1, v2
	v_xor_b32_e32 v1, s0, v1
	v_xor_b32_e32 v0, v1, v0
	v_add_u32_e32 v1, 0, v0
	v_xad_u32 v3, v0, 16, 0
	v_xad_u32 v4, v0, 32, 0
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_xad_u32 v0, v0, 48, 0
	ds_read_b32 v2, v1
	ds_read_b32 v5, v3 offset:1024
	ds_read_b32 v3, v4 offset:2048
	ds_read_b32 v4, v0 offset:3072
	v_ashrrev_i32_e32 v21, 31, v20
	v_lshlrev_b64 v[0:1], 2, v[20:21]
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_and_saveexec_b64 s[0:1], s[2:3]
	s_cbranch_execz .LBB0_20
	v_or_b32_e32 v6, 8, v18
	v_mul_lo_u32 v8, v18, s9
	v_mul_lo_u32 v6, v6, s9
	v_ashrrev_i32_e32 v9, 31, v8
	v_ashrrev_i32_e32 v7, 31, v6
	v_lshl_add_u64 v[8:9], v[8:9], 2, s[6:7]
	v_lshl_add_u64 v[6:7], v[6:7], 2, s[6:7]
	v_lshl_add_u64 v[8:9], v[8:9], 0, v[0:1]
	v_lshl_add_u64 v[6:7], v[6:7], 0, v[0:1]
	buffer_wbl2 sc1
	s_waitcnt vmcnt(0)
	global_atomic_add_f32 v[8:9], v2, off
	global_atomic_add_f32 v[6:7], v5, off
.LBB0_20:
	s_or_b64 exec, exec, s[0:1]
	v_or_b32_e32 v2, 16, v18
	v_cmp_gt_i32_e64 s[0:1], s8, v2
	s_and_b64 s[2:3], vcc, s[0:1]
	s_and_saveexec_b64 s[0:1], s[2:3]
	s_cbranch_execz .LBB0_22
	v_or_b32_e32 v5, 24, v18
	v_mul_lo_u32 v6, v2, s9
	v_mul_lo_u32 v8, v5, s9
	v_ashrrev_i32_e32 v7, 31, v6
	v_lshl_add_u64 v[6:7], v[6:7], 2, s[6:7]
	v_ashrrev_i32_e32 v9, 31, v8
	v_lshl_add_u64 v[8:9], v[8:9], 2, s[6:7]
	v_lshl_add_u64 v[6:7], v[6:7], 0, v[0:1]
	v_lshl_add_u64 v[0:1], v[8:9], 0, v[0:1]
	global_atomic_add_f32 v[6:7], v3, off
	global_atomic_add_f32 v[0:1], v4, off
	s_waitcnt vmcnt(0)
	buffer_inv sc1
.LBB0_22:
	s_or_b64 exec, exec, s[0:1]
	s_barrier
	s_endpgm
.Ltmp2:
.Lfunc_end0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel split_k
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
		.amdhsa_system_sgpr_workgroup_id_z 1
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 53
		.amdhsa_next_free_sgpr 20
		.amdhsa_accum_offset 56
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
    .name:           split_k
    .private_segment_fixed_size: 0
    .sgpr_count:     26
    .sgpr_spill_count: 0
    .symbol:         split_k.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     53
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
