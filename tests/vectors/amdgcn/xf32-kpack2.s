; Triton 3.9.0, make.py: ('gemm', 'fp32', {'PRECISION': 'tf32'}, (64, 64, 32), {'kpack': 2})
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
	v_and_or_b32 v8, v0, 63, s0
	s_lshl_b32 s8, s16, 6
	v_lshrrev_b32_e32 v1, 3, v8
	v_or_b32_e32 v4, s8, v1
	v_and_b32_e32 v1, 7, v0
	v_mul_lo_u32 v2, v4, s10
	v_lshlrev_b32_e32 v24, 2, v1
	v_ashrrev_i32_e32 v3, 31, v2
	s_cmp_gt_i32 s10, 0
	v_lshl_add_u64 v[16:17], v[2:3], 2, s[2:3]
	s_cselect_b64 s[0:1], -1, 0
	s_cmp_lt_i32 s10, 1
	v_mov_b32_e32 v3, 0
	v_lshlrev_b32_e32 v2, 2, v24
	s_cbranch_scc1 .LBB0_2
	v_lshl_add_u64 v[6:7], v[16:17], 0, v[2:3]
	global_load_dwordx4 v[10:13], v[6:7], off
	s_branch .LBB0_3
.LBB0_2:
	v_mov_b32_e32 v10, 0
	v_mov_b32_e32 v11, v10
	v_mov_b32_e32 v12, v10
	v_mov_b32_e32 v13, v10
.LBB0_3:
	v_or_b32_e32 v4, 32, v4
	v_mul_lo_u32 v4, v4, s10
	v_ashrrev_i32_e32 v5, 31, v4
	v_lshl_add_u64 v[18:19], v[4:5], 2, s[2:3]
	s_and_b64 s[2:3], s[0:1], exec
	s_cselect_b32 s2, 1, 0
	s_cmp_lg_u32 s2, 1
	v_lshl_add_u64 v[4:5], v[18:19], 0, v[2:3]
	s_cbranch_scc1 .LBB0_5
	global_load_dwordx4 v[32:35], v[4:5], off
	s_branch .LBB0_6
.LBB0_5:
	v_mov_b32_e32 v32, 0
	v_mov_b32_e32 v33, v32
	v_mov_b32_e32 v34, v32
	v_mov_b32_e32 v35, v32
.LBB0_6:
	s_lshl_b32 s2, s17, 6
	v_lshlrev_b32_e32 v3, 2, v0
	s_and_b64 s[12:13], s[0:1], exec
	v_and_or_b32 v6, v3, 60, s2
	v_and_b32_e32 v3, 0xf0, v8
	s_cselect_b32 s3, 1, 0
	v_lshrrev_b32_e32 v28, 3, v3
	s_cmp_lg_u32 s3, 1
	v_ashrrev_i32_e32 v7, 31, v6
	s_cbranch_scc1 .LBB0_8
	v_mul_lo_u32 v14, v28, s9
	v_ashrrev_i32_e32 v15, 31, v14
	v_lshl_add_u64 v[14:15], v[14:15], 2, s[4:5]
	v_lshl_add_u64 v[14:15], v[6:7], 2, v[14:15]
	global_load_dwordx4 v[36:39], v[14:15], off
	s_waitcnt vmcnt(0)
	v_mov_b32_e32 v20, v37
	v_mov_b32_e32 v14, v39
	s_branch .LBB0_9
.LBB0_8:
	v_mov_b32_e32 v36, 0
	v_mov_b32_e32 v20, 0
	v_mov_b32_e32 v38, 0
	v_mov_b32_e32 v14, 0
.LBB0_9:
	s_and_b64 s[0:1], s[0:1], exec
	s_cselect_b32 s0, 1, 0
	s_cmp_lg_u32 s0, 1
	v_or_b32_e32 v30, 1, v28
	s_cbranch_scc1 .LBB0_11
	v_mul_lo_u32 v22, v30, s9
	v_ashrrev_i32_e32 v23, 31, v22
	v_lshl_add_u64 v[22:23], v[22:23], 2, s[4:5]
	v_lshl_add_u64 v[22:23], v[6:7], 2, v[22:23]
	global_load_dwordx4 v[40:43], v[22:23], off
	s_waitcnt vmcnt(0)
	v_mov_b32_e32 v37, v40
	v_mov_b32_e32 v21, v41
	v_mov_b32_e32 v39, v42
	v_mov_b32_e32 v15, v43
	s_branch .LBB0_12
.LBB0_11:
	v_mov_b32_e32 v37, 0
	v_mov_b32_e32 v21, v37
	v_mov_b32_e32 v39, v37
	v_mov_b32_e32 v15, v37
.LBB0_12:
	v_lshlrev_b32_e32 v9, 1, v0
	v_lshlrev_b32_e32 v8, 4, v8
	v_and_b32_e32 v25, 0x70, v9
	v_xor_b32_e32 v8, v8, v25
	v_and_b32_e32 v23, 32, v0
	v_and_b32_e32 v22, 31, v0
	v_add_u32_e32 v31, 0, v8
	v_and_b32_e32 v8, 14, v0
	v_bfe_i32 v0, v0, 0, 1
	s_waitcnt vmcnt(0)
	ds_write_b128 v31, v[10:13]
	ds_write_b128 v31, v[32:35] offset:4096
	v_lshlrev_b32_e32 v10, 3, v8
	v_and_b32_e32 v0, 0x240, v0
	v_lshrrev_b32_e32 v3, 1, v3
	v_xor_b32_e32 v0, v0, v10
	v_xor_b32_e32 v0, v0, v3
	v_lshl_or_b32 v0, v8, 9, v0
	v_xor_b32_e32 v3, 16, v0
	s_and_b32 s1, s11, 64
	s_and_b32 s0, s11, 0x80
	v_add_u32_e32 v32, 0, v0
	v_add_u32_e32 v33, 0, v3
	v_xor_b32_e32 v3, 32, v0
	v_xor_b32_e32 v0, 48, v0
	s_sub_i32 s3, s10, 32
	v_add_u32_e32 v34, 0, v3
	v_add_u32_e32 v35, 0, v0
	v_mov_b32_e32 v3, 0
	s_cmp_lt_i32 s3, 1
	v_lshlrev_b32_e32 v25, 7, v22
	v_lshlrev_b32_e32 v26, 4, v1
	v_lshrrev_b32_e32 v27, 1, v23
	v_and_b32_e32 v29, 48, v9
	ds_write_b64 v32, v[36:37] offset:8192
	ds_write_b64 v33, v[20:21] offset:8320
	ds_write_b64 v34, v[38:39] offset:8448
	ds_write_b64 v35, v[14:15] offset:8576
	s_cbranch_scc1 .LBB0_16
	v_lshl_add_u64 v[20:21], v[6:7], 2, s[4:5]
	s_lshl_b32 s4, s0, 5
	v_xor_b32_e32 v0, v26, v27
	v_or3_b32 v0, s4, v0, v25
	v_xor_b32_e32 v1, 32, v0
	v_add_u32_e32 v36, 0, v0
	v_add_u32_e32 v37, 0, v1
	v_xor_b32_e32 v1, 64, v0
	v_xor_b32_e32 v0, 0x60, v0
	v_add_u32_e32 v38, 0, v1
	v_add_u32_e32 v39, 0, v0
	s_cmp_eq_u32 s1, 0
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b128 v[6:9], v36
	ds_read_b128 v[10:13], v37
	ds_read_b128 v[44:47], v38
	ds_read_b128 v[48:51], v39
	s_cselect_b32 s4, 0, 0x1040
	v_or_b32_e32 v0, s4, v27
	v_xor_b32_e32 v0, v29, v0
	v_xor_b32_e32 v0, v0, v26
	v_or_b32_e32 v14, v0, v25
	v_xor_b32_e32 v15, 32, v14
	v_xor_b32_e32 v42, 64, v14
	v_xor_b32_e32 v43, 0x60, v14
	v_lshl_add_u64 v[0:1], v[16:17], 0, v[2:3]
	v_or_b32_e32 v64, 32, v28
	s_setprio 1
	global_load_dwordx4 v[76:79], v[0:1], off offset:128
	global_load_dwordx4 v[80:83], v[4:5], off offset:128
	v_add_u32_e32 v40, 0, v14
	v_add_u32_e32 v42, 0, v42
	v_add_u32_e32 v41, 0, v15
	ds_read_b128 v[0:3], v40 offset:8192
	ds_read_b128 v[52:55], v41 offset:8192
	v_add_u32_e32 v43, 0, v43
	ds_read_b128 v[56:59], v42 offset:8192
	ds_read_b128 v[60:63], v43 offset:8192
	s_setprio 0
	v_mul_lo_u32 v4, v64, s9
	v_add_u32_e32 v14, s9, v4
	v_ashrrev_i32_e32 v5, 31, v4
	v_ashrrev_i32_e32 v15, 31, v14
	v_lshl_add_u64 v[4:5], v[4:5], 2, v[20:21]
	v_lshl_add_u64 v[14:15], v[14:15], 2, v[20:21]
	global_load_dwordx4 v[84:87], v[4:5], off
	global_load_dwordx4 v[88:91], v[14:15], off
	s_waitcnt lgkmcnt(3)
	v_max_f32_e32 v75, v1, v1
	v_max_f32_e32 v74, v0, v0
	v_max_f32_e32 v67, v7, v7
	v_max_f32_e32 v66, v6, v6
	v_max_f32_e32 v65, v9, v9
	v_max_f32_e32 v64, v8, v8
	v_max_f32_e32 v69, v13, v13
	v_max_f32_e32 v68, v12, v12
	v_max_f32_e32 v71, v11, v11
	v_max_f32_e32 v70, v10, v10
	v_max_f32_e32 v73, v3, v3
	v_max_f32_e32 v72, v2, v2
	v_mfma_f32_32x32x4_xf32 v[0:15], v[74:75], v[66:67], 0
	v_max_f32_e32 v47, v47, v47
	v_max_f32_e32 v46, v46, v46
	v_max_f32_e32 v45, v45, v45
	v_max_f32_e32 v44, v44, v44
	v_max_f32_e32 v51, v51, v51
	v_max_f32_e32 v50, v50, v50
	v_max_f32_e32 v49, v49, v49
	v_max_f32_e32 v48, v48, v48
	s_waitcnt lgkmcnt(2)
	v_max_f32_e32 v55, v55, v55
	v_max_f32_e32 v54, v54, v54
	v_max_f32_e32 v53, v53, v53
	v_max_f32_e32 v52, v52, v52
	s_waitcnt lgkmcnt(1)
	v_max_f32_e32 v59, v59, v59
	v_max_f32_e32 v58, v58, v58
	v_max_f32_e32 v57, v57, v57
	v_max_f32_e32 v56, v56, v56
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v63, v63, v63
	v_max_f32_e32 v62, v62, v62
	v_max_f32_e32 v61, v61, v61
	v_max_f32_e32 v60, v60, v60
	s_setprio 1
	v_mfma_f32_32x32x4_xf32 v[0:15], v[72:73], v[64:65], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[52:53], v[70:71], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[54:55], v[68:69], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[56:57], v[44:45], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[58:59], v[46:47], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[60:61], v[48:49], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[62:63], v[50:51], v[0:15]
	s_setprio 0
	s_waitcnt vmcnt(1)
	v_mov_b32_e32 v44, v84
	s_waitcnt vmcnt(0)
	v_mov_b32_e32 v45, v88
	s_barrier
	ds_write_b64 v32, v[44:45] offset:8192
	v_mov_b32_e32 v88, v85
	v_mov_b32_e32 v44, v86
	v_mov_b32_e32 v45, v90
	v_mov_b32_e32 v90, v87
	s_cmp_lt_u32 s3, 33
	ds_write_b128 v31, v[76:79]
	ds_write_b128 v31, v[80:83] offset:4096
	ds_write_b64 v33, v[88:89] offset:8320
	ds_write_b64 v34, v[44:45] offset:8448
	ds_write_b64 v35, v[90:91] offset:8576
	s_cbranch_scc1 .LBB0_17
	s_mov_b32 s4, 32
.LBB0_15:
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b128 v[44:47], v36
	ds_read_b128 v[48:51], v37
	ds_read_b128 v[52:55], v38
	ds_read_b128 v[56:59], v39
	s_add_i32 s4, s4, 32
	v_or_b32_e32 v60, s4, v24
	v_ashrrev_i32_e32 v61, 31, v60
	v_lshlrev_b64 v[60:61], 2, v[60:61]
	v_or_b32_e32 v76, s4, v28
	v_or_b32_e32 v77, s4, v30
	v_lshl_add_u64 v[62:63], v[16:17], 0, v[60:61]
	v_lshl_add_u64 v[60:61], v[18:19], 0, v[60:61]
	s_setprio 1
	global_load_dwordx4 v[80:83], v[62:63], off
	global_load_dwordx4 v[84:87], v[60:61], off
	ds_read_b128 v[60:63], v40 offset:8192
	ds_read_b128 v[64:67], v41 offset:8192
	ds_read_b128 v[68:71], v42 offset:8192
	ds_read_b128 v[72:75], v43 offset:8192
	s_setprio 0
	v_mul_lo_u32 v76, v76, s9
	v_mul_lo_u32 v78, v77, s9
	v_ashrrev_i32_e32 v77, 31, v76
	v_ashrrev_i32_e32 v79, 31, v78
	v_lshl_add_u64 v[76:77], v[76:77], 2, v[20:21]
	v_lshl_add_u64 v[78:79], v[78:79], 2, v[20:21]
	global_load_dwordx4 v[88:91], v[76:77], off
	global_load_dwordx4 v[92:95], v[78:79], off
	s_waitcnt lgkmcnt(3)
	v_max_f32_e32 v61, v61, v61
	v_max_f32_e32 v60, v60, v60
	v_max_f32_e32 v45, v45, v45
	v_max_f32_e32 v44, v44, v44
	v_max_f32_e32 v47, v47, v47
	v_max_f32_e32 v46, v46, v46
	v_mfma_f32_32x32x4_xf32 v[0:15], v[60:61], v[44:45], v[0:15]
	v_max_f32_e32 v51, v51, v51
	v_max_f32_e32 v50, v50, v50
	v_max_f32_e32 v49, v49, v49
	v_max_f32_e32 v48, v48, v48
	v_max_f32_e32 v55, v55, v55
	v_max_f32_e32 v54, v54, v54
	v_max_f32_e32 v53, v53, v53
	v_max_f32_e32 v52, v52, v52
	v_max_f32_e32 v59, v59, v59
	v_max_f32_e32 v58, v58, v58
	v_max_f32_e32 v57, v57, v57
	v_max_f32_e32 v56, v56, v56
	v_max_f32_e32 v63, v63, v63
	v_max_f32_e32 v62, v62, v62
	s_waitcnt lgkmcnt(2)
	v_max_f32_e32 v67, v67, v67
	v_max_f32_e32 v66, v66, v66
	v_max_f32_e32 v65, v65, v65
	v_max_f32_e32 v64, v64, v64
	s_waitcnt lgkmcnt(1)
	v_max_f32_e32 v71, v71, v71
	v_max_f32_e32 v70, v70, v70
	v_max_f32_e32 v69, v69, v69
	v_max_f32_e32 v68, v68, v68
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v75, v75, v75
	v_max_f32_e32 v74, v74, v74
	v_max_f32_e32 v73, v73, v73
	v_max_f32_e32 v72, v72, v72
	s_setprio 1
	v_mfma_f32_32x32x4_xf32 v[0:15], v[62:63], v[46:47], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[64:65], v[48:49], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[66:67], v[50:51], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[68:69], v[52:53], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[70:71], v[54:55], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[72:73], v[56:57], v[0:15]
	v_mfma_f32_32x32x4_xf32 v[0:15], v[74:75], v[58:59], v[0:15]
	s_setprio 0
	s_waitcnt vmcnt(1)
	v_mov_b32_e32 v44, v88
	s_waitcnt vmcnt(0)
	v_mov_b32_e32 v45, v92
	s_barrier
	ds_write_b64 v32, v[44:45] offset:8192
	v_mov_b32_e32 v92, v89
	v_mov_b32_e32 v44, v90
	v_mov_b32_e32 v45, v94
	v_mov_b32_e32 v94, v91
	s_cmp_lt_i32 s4, s3
	ds_write_b128 v31, v[80:83]
	ds_write_b128 v31, v[84:87] offset:4096
	ds_write_b64 v33, v[92:93] offset:8320
	ds_write_b64 v34, v[44:45] offset:8448
	ds_write_b64 v35, v[94:95] offset:8576
	s_cbranch_scc1 .LBB0_15
	s_branch .LBB0_17
.LBB0_16:
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
.LBB0_17:
	s_add_i32 s10, s10, 31
	s_cmp_lt_i32 s10, 32
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_19
	s_cmp_eq_u32 s1, 0
	s_cselect_b32 s3, 0, 0x1040
	v_or_b32_e32 v16, s3, v27
	v_xor_b32_e32 v16, v29, v16
	v_xor_b32_e32 v16, v16, v26
	v_or_b32_e32 v28, v16, v25
	v_add_u32_e32 v16, 0, v28
	ds_read_b128 v[16:19], v16 offset:8192
	s_lshl_b32 s3, s0, 5
	v_xor_b32_e32 v20, v26, v27
	v_or3_b32 v32, s3, v20, v25
	v_add_u32_e32 v20, 0, v32
	ds_read_b128 v[24:27], v20
	s_waitcnt lgkmcnt(1)
	v_max_f32_e32 v17, v17, v17
	v_max_f32_e32 v16, v16, v16
	v_xad_u32 v29, v32, 32, 0
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v21, v25, v25
	v_max_f32_e32 v20, v24, v24
	v_max_f32_e32 v25, v27, v27
	v_max_f32_e32 v24, v26, v26
	v_mfma_f32_32x32x4_xf32 v[0:15], v[16:17], v[20:21], v[0:15]
	v_max_f32_e32 v21, v19, v19
	v_max_f32_e32 v20, v18, v18
	v_xad_u32 v16, v28, 32, 0
	ds_read_b128 v[16:19], v16 offset:8192
	v_mfma_f32_32x32x4_xf32 v[0:15], v[20:21], v[24:25], v[0:15]
	ds_read_b128 v[24:27], v29
	s_waitcnt lgkmcnt(1)
	v_max_f32_e32 v17, v17, v17
	v_max_f32_e32 v16, v16, v16
	v_xad_u32 v29, v32, 64, 0
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v21, v25, v25
	v_max_f32_e32 v20, v24, v24
	v_max_f32_e32 v25, v27, v27
	v_max_f32_e32 v24, v26, v26
	v_mfma_f32_32x32x4_xf32 v[0:15], v[16:17], v[20:21], v[0:15]
	v_max_f32_e32 v21, v19, v19
	v_max_f32_e32 v20, v18, v18
	v_xad_u32 v16, v28, 64, 0
	ds_read_b128 v[16:19], v16 offset:8192
	v_mfma_f32_32x32x4_xf32 v[0:15], v[20:21], v[24:25], v[0:15]
	v_xor_b32_e32 v20, 0x60, v28
	ds_read_b128 v[24:27], v29
	v_add_u32_e32 v28, 0, v20
	ds_read_b128 v[28:31], v28 offset:8192
	s_waitcnt lgkmcnt(2)
	v_max_f32_e32 v17, v17, v17
	v_max_f32_e32 v16, v16, v16
	s_waitcnt lgkmcnt(1)
	v_max_f32_e32 v21, v25, v25
	v_max_f32_e32 v20, v24, v24
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[0:15], v[16:17], v[20:21], v[0:15]
	v_max_f32_e32 v17, v19, v19
	v_max_f32_e32 v16, v18, v18
	v_xor_b32_e32 v18, 0x60, v32
	v_add_u32_e32 v20, 0, v18
	v_max_f32_e32 v19, v27, v27
	v_max_f32_e32 v18, v26, v26
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v21, v29, v29
	v_mfma_f32_32x32x4_xf32 v[0:15], v[16:17], v[18:19], v[0:15]
	ds_read_b128 v[16:19], v20
	v_max_f32_e32 v20, v28, v28
	s_waitcnt lgkmcnt(0)
	v_max_f32_e32 v17, v17, v17
	v_max_f32_e32 v16, v16, v16
	v_max_f32_e32 v19, v19, v19
	v_max_f32_e32 v18, v18, v18
	v_mfma_f32_32x32x4_xf32 v[0:15], v[20:21], v[16:17], v[0:15]
	v_max_f32_e32 v17, v31, v31
	v_max_f32_e32 v16, v30, v30
	s_nop 1
	v_mfma_f32_32x32x4_xf32 v[0:15], v[16:17], v[18:19], v[0:15]
.LBB0_19:
	s_lshr_b32 s0, s0, 2
	v_or_b32_e32 v17, s0, v22
	v_lshrrev_b32_e32 v16, 3, v23
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
		.amdhsa_next_free_vgpr 96
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 96
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
    .vgpr_count:     96
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
