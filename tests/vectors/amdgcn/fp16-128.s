; Triton 3.9.0, make.py: ('gemm', 'fp16', {}, (128, 128, 32), {})
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
	s_and_b32 s13, s11, 0xc0
	v_and_b32_e32 v20, 63, v0
	v_or_b32_e32 v21, s13, v20
	s_lshl_b32 s8, s16, 7
	v_lshrrev_b32_e32 v1, 2, v21
	v_or_b32_e32 v8, s8, v1
	v_lshlrev_b32_e32 v1, 3, v0
	v_mul_lo_u32 v2, v8, s10
	v_and_b32_e32 v1, 24, v1
	v_ashrrev_i32_e32 v3, 31, v2
	s_cmp_gt_i32 s10, 0
	v_lshl_add_u64 v[64:65], v[2:3], 1, s[2:3]
	s_cselect_b64 s[0:1], -1, 0
	s_cmp_lt_i32 s10, 1
	v_mov_b32_e32 v7, 0
	v_lshlrev_b32_e32 v6, 1, v1
	s_cbranch_scc1 .LBB0_2
	v_lshl_add_u64 v[2:3], v[64:65], 0, v[6:7]
	global_load_dwordx4 v[2:5], v[2:3], off
	s_branch .LBB0_3
.LBB0_2:
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v3, v2
	v_mov_b32_e32 v4, v2
	v_mov_b32_e32 v5, v2
.LBB0_3:
	v_or_b32_e32 v7, 64, v8
	v_mul_lo_u32 v8, v7, s10
	v_ashrrev_i32_e32 v9, 31, v8
	v_lshl_add_u64 v[66:67], v[8:9], 1, s[2:3]
	s_and_b64 s[2:3], s[0:1], exec
	s_cselect_b32 s2, 1, 0
	s_cmp_lg_u32 s2, 1
	v_mov_b32_e32 v7, 0
	s_cbranch_scc1 .LBB0_5
	v_lshl_add_u64 v[6:7], v[66:67], 0, v[6:7]
	global_load_dwordx4 v[6:9], v[6:7], off
	s_branch .LBB0_6
.LBB0_5:
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v7, v6
	v_mov_b32_e32 v8, v6
	v_mov_b32_e32 v9, v6
.LBB0_6:
	s_lshl_b32 s2, s17, 7
	v_and_b32_e32 v22, 15, v0
	s_and_b64 s[14:15], s[0:1], exec
	v_lshl_or_b32 v18, v22, 3, s2
	v_and_b32_e32 v23, 0xf0, v21
	s_cselect_b32 s3, 1, 0
	v_lshrrev_b32_e32 v14, 3, v23
	s_cmp_lg_u32 s3, 1
	v_ashrrev_i32_e32 v19, 31, v18
	s_cbranch_scc1 .LBB0_9
	v_mul_lo_u32 v10, v14, s9
	v_ashrrev_i32_e32 v11, 31, v10
	v_lshl_add_u64 v[10:11], v[10:11], 1, s[4:5]
	v_lshl_add_u64 v[10:11], v[18:19], 1, v[10:11]
	global_load_dwordx4 v[10:13], v[10:11], off
	s_and_b64 s[0:1], s[0:1], exec
	s_cselect_b32 s0, 1, 0
	s_cmp_lg_u32 s0, 1
	s_cbranch_scc1 .LBB0_10
.LBB0_8:
	v_or_b32_e32 v14, 1, v14
	v_mul_lo_u32 v14, v14, s9
	v_ashrrev_i32_e32 v15, 31, v14
	v_lshl_add_u64 v[14:15], v[14:15], 1, s[4:5]
	v_lshl_add_u64 v[14:15], v[18:19], 1, v[14:15]
	global_load_dwordx4 v[14:17], v[14:15], off
	s_branch .LBB0_11
.LBB0_9:
	v_mov_b32_e32 v10, 0
	v_mov_b32_e32 v11, 0
	v_mov_b32_e32 v12, 0
	v_mov_b32_e32 v13, 0
	s_and_b64 s[0:1], s[0:1], exec
	s_cselect_b32 s0, 1, 0
	s_cmp_lg_u32 s0, 1
	s_cbranch_scc0 .LBB0_8
.LBB0_10:
	v_mov_b32_e32 v14, 0
	v_mov_b32_e32 v15, 0
	v_mov_b32_e32 v16, 0
	v_mov_b32_e32 v17, 0
.LBB0_11:
	v_lshlrev_b32_e32 v21, 4, v21
	v_and_b32_e32 v24, 56, v0
	v_xor_b32_e32 v21, v21, v24
	v_add_u32_e32 v80, 0, v21
	s_waitcnt vmcnt(0)
	ds_write2st64_b64 v80, v[2:3], v[6:7] offset1:8
	v_xor_b32_e32 v2, 8, v21
	v_add_u32_e32 v81, 0, v2
	ds_write2st64_b64 v81, v[4:5], v[8:9] offset1:8
	v_bfe_i32 v5, v0, 0, 1
	v_and_b32_e32 v2, 14, v0
	v_lshrrev_b32_e32 v4, 2, v23
	v_and_b32_e32 v5, 0x220, v5
	v_lshlrev_b32_e32 v3, 2, v2
	v_xor_b32_e32 v4, v5, v4
	v_xor_b32_e32 v4, v4, v3
	v_lshl_or_b32 v2, v2, 9, v4
	v_add_u32_e32 v4, 0, v2
	v_add_u32_e32 v82, 0x2000, v4
	v_xor_b32_e32 v4, 8, v2
	s_and_b32 s0, s11, 0x80
	s_and_b32 s1, s11, 64
	s_mov_b32 s3, 0x5040100
	s_mov_b32 s11, 0x7060302
	v_add_u32_e32 v4, 0, v4
	v_perm_b32 v5, v14, v10, s3
	v_perm_b32 v6, v14, v10, s11
	v_add_u32_e32 v83, 0x2000, v4
	v_xor_b32_e32 v4, 16, v2
	ds_write2_b32 v82, v5, v6 offset1:16
	v_perm_b32 v5, v15, v11, s3
	v_perm_b32 v6, v15, v11, s11
	v_add_u32_e32 v4, 0, v4
	v_xor_b32_e32 v2, 24, v2
	v_and_b32_e32 v74, 31, v0
	v_and_b32_e32 v75, 32, v0
	ds_write2_b32 v83, v5, v6 offset0:32 offset1:48
	v_perm_b32 v5, v16, v12, s3
	v_perm_b32 v6, v16, v12, s11
	v_add_u32_e32 v84, 0x2000, v4
	v_add_u32_e32 v2, 0, v2
	s_sub_i32 s12, s10, 32
	s_mov_b32 s14, 0
	ds_write2_b32 v84, v5, v6 offset0:64 offset1:80
	v_perm_b32 v4, v17, v13, s3
	v_perm_b32 v5, v17, v13, s11
	v_add_u32_e32 v85, 0x2000, v2
	s_cmp_lt_i32 s12, 1
	v_bfe_i32 v79, v0, 4, 1
	v_lshrrev_b32_e32 v76, 2, v75
	v_lshl_or_b32 v77, v74, 6, v3
	v_lshl_or_b32 v78, v22, 6, v3
	ds_write2_b32 v85, v4, v5 offset0:96 offset1:112
	s_cbranch_scc1 .LBB0_14
	s_cmp_eq_u32 s1, 0
	v_lshl_add_u64 v[68:69], v[18:19], 1, s[4:5]
	s_cselect_b32 s4, 0, 0x810
	v_or_b32_e32 v6, s4, v76
	v_add_u32_e32 v9, s13, v20
	v_xor_b32_e32 v0, v77, v76
	v_and_b32_e32 v5, 0x408, v79
	v_xor_b32_e32 v6, v6, v78
	v_lshrrev_b32_e32 v9, 3, v9
	v_lshl_or_b32 v0, s0, 4, v0
	v_xor_b32_e32 v5, v6, v5
	v_and_b32_e32 v9, 62, v9
	v_xor_b32_e32 v2, 16, v0
	v_xor_b32_e32 v3, 32, v0
	v_xor_b32_e32 v4, 48, v0
	v_xor_b32_e32 v6, 16, v5
	v_xor_b32_e32 v7, 32, v5
	v_xor_b32_e32 v8, 48, v5
	v_add_u32_e32 v70, 33, v9
	v_add_u32_e32 v71, 32, v9
	v_mov_b32_e32 v48, 0
	s_lshl_b32 s4, s9, 5
	v_or_b32_e32 v86, 32, v1
	v_add_u32_e32 v87, 0, v0
	v_add_u32_e32 v88, 0, v2
	v_add_u32_e32 v89, 0, v3
	v_add_u32_e32 v90, 0, v4
	v_add_u32_e32 v91, 0, v5
	v_add_u32_e32 v92, 0, v6
	v_add_u32_e32 v93, 0, v7
	v_add_u32_e32 v94, 0, v8
	v_mov_b32_e32 v49, v48
	v_mov_b32_e32 v50, v48
	v_mov_b32_e32 v51, v48
	v_mov_b32_e32 v52, v48
	v_mov_b32_e32 v53, v48
	v_mov_b32_e32 v54, v48
	v_mov_b32_e32 v55, v48
	v_mov_b32_e32 v56, v48
	v_mov_b32_e32 v57, v48
	v_mov_b32_e32 v58, v48
	v_mov_b32_e32 v59, v48
	v_mov_b32_e32 v60, v48
	v_mov_b32_e32 v61, v48
	v_mov_b32_e32 v62, v48
	v_mov_b32_e32 v63, v48
	v_mov_b32_e32 v32, v48
	v_mov_b32_e32 v33, v48
	v_mov_b32_e32 v34, v48
	v_mov_b32_e32 v35, v48
	v_mov_b32_e32 v36, v48
	v_mov_b32_e32 v37, v48
	v_mov_b32_e32 v38, v48
	v_mov_b32_e32 v39, v48
	v_mov_b32_e32 v40, v48
	v_mov_b32_e32 v41, v48
	v_mov_b32_e32 v42, v48
	v_mov_b32_e32 v43, v48
	v_mov_b32_e32 v44, v48
	v_mov_b32_e32 v45, v48
	v_mov_b32_e32 v46, v48
	v_mov_b32_e32 v47, v48
	v_mov_b32_e32 v16, v48
	v_mov_b32_e32 v17, v48
	v_mov_b32_e32 v18, v48
	v_mov_b32_e32 v19, v48
	v_mov_b32_e32 v20, v48
	v_mov_b32_e32 v21, v48
	v_mov_b32_e32 v22, v48
	v_mov_b32_e32 v23, v48
	v_mov_b32_e32 v24, v48
	v_mov_b32_e32 v25, v48
	v_mov_b32_e32 v26, v48
	v_mov_b32_e32 v27, v48
	v_mov_b32_e32 v28, v48
	v_mov_b32_e32 v29, v48
	v_mov_b32_e32 v30, v48
	v_mov_b32_e32 v31, v48
	v_mov_b32_e32 v0, v48
	v_mov_b32_e32 v1, v48
	v_mov_b32_e32 v2, v48
	v_mov_b32_e32 v3, v48
	v_mov_b32_e32 v4, v48
	v_mov_b32_e32 v5, v48
	v_mov_b32_e32 v6, v48
	v_mov_b32_e32 v7, v48
	v_mov_b32_e32 v8, v48
	v_mov_b32_e32 v9, v48
	v_mov_b32_e32 v10, v48
	v_mov_b32_e32 v11, v48
	v_mov_b32_e32 v12, v48
	v_mov_b32_e32 v13, v48
	v_mov_b32_e32 v14, v48
	v_mov_b32_e32 v15, v48
	v_mul_lo_u32 v70, s9, v70
	v_mul_lo_u32 v72, s9, v71
.LBB0_13:
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read2st64_b64 v[96:99], v87 offset1:8
	ds_read2st64_b64 v[100:103], v88 offset1:8
	ds_read2st64_b64 v[104:107], v89 offset1:8
	ds_read2st64_b64 v[108:111], v90 offset1:8
	v_add_u32_e32 v112, s14, v86
	v_ashrrev_i32_e32 v113, 31, v112
	v_lshlrev_b64 v[112:113], 1, v[112:113]
	s_add_i32 s5, s14, 32
	v_lshl_add_u64 v[120:121], v[64:65], 0, v[112:113]
	v_lshl_add_u64 v[122:123], v[66:67], 0, v[112:113]
	s_setprio 1
	global_load_dwordx4 v[112:115], v[120:121], off
	global_load_dwordx4 v[116:119], v[122:123], off
	ds_read2st64_b64 v[120:123], v91 offset0:16 offset1:24
	ds_read2st64_b64 v[124:127], v92 offset0:16 offset1:24
	ds_read2st64_b64 v[128:131], v93 offset0:16 offset1:24
	ds_read2st64_b64 v[132:135], v94 offset0:16 offset1:24
	s_setprio 0
	v_ashrrev_i32_e32 v73, 31, v72
	v_ashrrev_i32_e32 v71, 31, v70
	v_lshl_add_u64 v[136:137], v[72:73], 1, v[68:69]
	v_lshl_add_u64 v[140:141], v[70:71], 1, v[68:69]
	global_load_dwordx4 v[136:139], v[136:137], off
	s_nop 0
	global_load_dwordx4 v[140:143], v[140:141], off
	s_waitcnt lgkmcnt(3)
	v_mfma_f32_32x32x8_f16 v[48:63], v[120:121], v[96:97], v[48:63]
	s_setprio 1
	s_waitcnt lgkmcnt(1)
	v_mfma_f32_32x32x8_f16 v[32:47], v[130:131], v[96:97], v[32:47]
	v_mfma_f32_32x32x8_f16 v[16:31], v[120:121], v[98:99], v[16:31]
	v_mfma_f32_32x32x8_f16 v[0:15], v[130:131], v[98:99], v[0:15]
	v_mfma_f32_32x32x8_f16 v[48:63], v[124:125], v[100:101], v[48:63]
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x8_f16 v[32:47], v[134:135], v[100:101], v[32:47]
	v_mfma_f32_32x32x8_f16 v[16:31], v[124:125], v[102:103], v[16:31]
	v_mfma_f32_32x32x8_f16 v[0:15], v[134:135], v[102:103], v[0:15]
	v_mfma_f32_32x32x8_f16 v[48:63], v[128:129], v[104:105], v[48:63]
	v_mfma_f32_32x32x8_f16 v[32:47], v[122:123], v[104:105], v[32:47]
	v_mfma_f32_32x32x8_f16 v[16:31], v[128:129], v[106:107], v[16:31]
	v_mfma_f32_32x32x8_f16 v[0:15], v[122:123], v[106:107], v[0:15]
	v_mfma_f32_32x32x8_f16 v[48:63], v[132:133], v[108:109], v[48:63]
	v_mfma_f32_32x32x8_f16 v[32:47], v[126:127], v[108:109], v[32:47]
	v_mfma_f32_32x32x8_f16 v[16:31], v[132:133], v[110:111], v[16:31]
	v_mfma_f32_32x32x8_f16 v[0:15], v[126:127], v[110:111], v[0:15]
	s_setprio 0
	s_waitcnt vmcnt(0)
	v_perm_b32 v71, v140, v136, s3
	v_perm_b32 v73, v140, v136, s11
	s_barrier
	ds_write2_b32 v82, v71, v73 offset1:16
	v_perm_b32 v71, v141, v137, s3
	v_perm_b32 v73, v141, v137, s11
	ds_write2_b32 v83, v71, v73 offset0:32 offset1:48
	v_perm_b32 v71, v142, v138, s3
	v_perm_b32 v73, v142, v138, s11
	ds_write2_b32 v84, v71, v73 offset0:64 offset1:80
	v_perm_b32 v71, v143, v139, s3
	v_perm_b32 v73, v143, v139, s11
	v_add_u32_e32 v70, s4, v70
	v_add_u32_e32 v72, s4, v72
	s_cmp_lt_i32 s5, s12
	s_mov_b32 s14, s5
	ds_write2st64_b64 v80, v[112:113], v[116:117] offset1:8
	ds_write2st64_b64 v81, v[114:115], v[118:119] offset1:8
	ds_write2_b32 v85, v71, v73 offset0:96 offset1:112
	s_cbranch_scc1 .LBB0_13
	s_branch .LBB0_15
.LBB0_14:
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
	v_mov_b32_e32 v31, v15
	v_mov_b32_e32 v30, v15
	v_mov_b32_e32 v29, v15
	v_mov_b32_e32 v28, v15
	v_mov_b32_e32 v27, v15
	v_mov_b32_e32 v26, v15
	v_mov_b32_e32 v25, v15
	v_mov_b32_e32 v24, v15
	v_mov_b32_e32 v23, v15
	v_mov_b32_e32 v22, v15
	v_mov_b32_e32 v21, v15
	v_mov_b32_e32 v20, v15
	v_mov_b32_e32 v19, v15
	v_mov_b32_e32 v18, v15
	v_mov_b32_e32 v17, v15
	v_mov_b32_e32 v16, v15
	v_mov_b32_e32 v47, v15
	v_mov_b32_e32 v46, v15
	v_mov_b32_e32 v45, v15
	v_mov_b32_e32 v44, v15
	v_mov_b32_e32 v43, v15
	v_mov_b32_e32 v42, v15
	v_mov_b32_e32 v41, v15
	v_mov_b32_e32 v40, v15
	v_mov_b32_e32 v39, v15
	v_mov_b32_e32 v38, v15
	v_mov_b32_e32 v37, v15
	v_mov_b32_e32 v36, v15
	v_mov_b32_e32 v35, v15
	v_mov_b32_e32 v34, v15
	v_mov_b32_e32 v33, v15
	v_mov_b32_e32 v32, v15
	v_mov_b32_e32 v63, v15
	v_mov_b32_e32 v62, v15
	v_mov_b32_e32 v61, v15
	v_mov_b32_e32 v60, v15
	v_mov_b32_e32 v59, v15
	v_mov_b32_e32 v58, v15
	v_mov_b32_e32 v57, v15
	v_mov_b32_e32 v56, v15
	v_mov_b32_e32 v55, v15
	v_mov_b32_e32 v54, v15
	v_mov_b32_e32 v53, v15
	v_mov_b32_e32 v52, v15
	v_mov_b32_e32 v51, v15
	v_mov_b32_e32 v50, v15
	v_mov_b32_e32 v49, v15
	v_mov_b32_e32 v48, v15
.LBB0_15:
	s_add_i32 s10, s10, 31
	s_cmp_lt_i32 s10, 32
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc1 .LBB0_17
	s_cmp_eq_u32 s1, 0
	s_cselect_b32 s3, 0, 0x810
	v_or_b32_e32 v65, s3, v76
	v_and_b32_e32 v64, 0x408, v79
	v_xor_b32_e32 v65, v65, v78
	v_xor_b32_e32 v72, v65, v64
	v_add_u32_e32 v64, 0, v72
	v_xor_b32_e32 v68, v77, v76
	v_xad_u32 v76, v72, 32, 0
	ds_read2st64_b64 v[64:67], v64 offset0:16 offset1:24
	ds_read2st64_b64 v[76:79], v76 offset0:16 offset1:24
	v_lshl_or_b32 v73, s0, 4, v68
	v_add_u32_e32 v68, 0, v73
	ds_read2st64_b64 v[68:71], v68 offset1:8
	v_xad_u32 v80, v72, 16, 0
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x8_f16 v[48:63], v[64:65], v[68:69], v[48:63]
	ds_read2st64_b64 v[80:83], v80 offset0:16 offset1:24
	v_mfma_f32_32x32x8_f16 v[32:47], v[78:79], v[68:69], v[32:47]
	v_xad_u32 v68, v73, 16, 0
	ds_read2st64_b64 v[84:87], v68 offset1:8
	v_xad_u32 v68, v73, 32, 0
	ds_read2st64_b64 v[88:91], v68 offset1:8
	v_xad_u32 v68, v72, 48, 0
	ds_read2st64_b64 v[92:95], v68 offset0:16 offset1:24
	v_xad_u32 v68, v73, 48, 0
	v_mfma_f32_32x32x8_f16 v[16:31], v[64:65], v[70:71], v[16:31]
	ds_read2st64_b64 v[96:99], v68 offset1:8
	v_mfma_f32_32x32x8_f16 v[0:15], v[78:79], v[70:71], v[0:15]
	s_waitcnt lgkmcnt(3)
	v_mfma_f32_32x32x8_f16 v[48:63], v[80:81], v[84:85], v[48:63]
	s_waitcnt lgkmcnt(1)
	v_mfma_f32_32x32x8_f16 v[32:47], v[94:95], v[84:85], v[32:47]
	v_mfma_f32_32x32x8_f16 v[16:31], v[80:81], v[86:87], v[16:31]
	v_mfma_f32_32x32x8_f16 v[0:15], v[94:95], v[86:87], v[0:15]
	v_mfma_f32_32x32x8_f16 v[48:63], v[76:77], v[88:89], v[48:63]
	v_mfma_f32_32x32x8_f16 v[32:47], v[66:67], v[88:89], v[32:47]
	v_mfma_f32_32x32x8_f16 v[16:31], v[76:77], v[90:91], v[16:31]
	v_mfma_f32_32x32x8_f16 v[0:15], v[66:67], v[90:91], v[0:15]
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x8_f16 v[48:63], v[92:93], v[96:97], v[48:63]
	v_mfma_f32_32x32x8_f16 v[32:47], v[82:83], v[96:97], v[32:47]
	v_mfma_f32_32x32x8_f16 v[16:31], v[92:93], v[98:99], v[16:31]
	v_mfma_f32_32x32x8_f16 v[0:15], v[82:83], v[98:99], v[0:15]
.LBB0_17:
	s_lshr_b32 s0, s0, 2
	v_lshrrev_b32_e32 v64, 3, v75
	s_lshr_b32 s1, s1, 1
	v_or_b32_e32 v65, s0, v74
	v_or_b32_e32 v64, s1, v64
	v_or_b32_e32 v65, s8, v65
	v_or_b32_e32 v64, s2, v64
	v_or_b32_e32 v67, 64, v65
	v_mul_lo_u32 v66, v65, s9
	v_mul_lo_u32 v68, v67, s9
	v_ashrrev_i32_e32 v67, 31, v66
	v_ashrrev_i32_e32 v65, 31, v64
	v_lshl_add_u64 v[66:67], v[66:67], 2, s[6:7]
	v_ashrrev_i32_e32 v69, 31, v68
	v_lshlrev_b64 v[64:65], 2, v[64:65]
	v_lshl_add_u64 v[68:69], v[68:69], 2, s[6:7]
	v_lshl_add_u64 v[66:67], v[66:67], 0, v[64:65]
	v_lshl_add_u64 v[64:65], v[68:69], 0, v[64:65]
	global_store_dwordx4 v[66:67], v[48:51], off
	global_store_dwordx4 v[66:67], v[52:55], off offset:32
	global_store_dwordx4 v[66:67], v[56:59], off offset:64
	global_store_dwordx4 v[66:67], v[60:63], off offset:96
	global_store_dwordx4 v[66:67], v[32:35], off offset:256
	global_store_dwordx4 v[66:67], v[36:39], off offset:288
	global_store_dwordx4 v[66:67], v[40:43], off offset:320
	global_store_dwordx4 v[66:67], v[44:47], off offset:352
	global_store_dwordx4 v[64:65], v[16:19], off
	global_store_dwordx4 v[64:65], v[20:23], off offset:32
	global_store_dwordx4 v[64:65], v[24:27], off offset:64
	global_store_dwordx4 v[64:65], v[28:31], off offset:96
	global_store_dwordx4 v[64:65], v[0:3], off offset:256
	global_store_dwordx4 v[64:65], v[4:7], off offset:288
	global_store_dwordx4 v[64:65], v[8:11], off offset:320
	global_store_dwordx4 v[64:65], v[12:15], off offset:352
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
		.amdhsa_next_free_vgpr 144
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 144
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
    .vgpr_count:     144
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
