; Triton 3.9.0, make.py: ('gemm', 'fp32', {'PRECISION': 'bf16x6'}, (32, 32, 32), {})
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
	v_readfirstlane_b32 s33, v0
	v_and_b32_e32 v1, 63, v0
	s_and_b32 s12, s33, 0xc0
	v_or_b32_e32 v6, s12, v1
	s_lshl_b32 s8, s16, 5
	v_lshrrev_b32_e32 v7, 3, v6
	v_or_b32_e32 v2, s8, v7
	v_mul_lo_u32 v2, v2, s10
	v_and_b32_e32 v5, 7, v0
	v_ashrrev_i32_e32 v3, 31, v2
	s_cmp_gt_i32 s10, 0
	v_lshlrev_b32_e32 v4, 2, v5
	v_lshl_add_u64 v[32:33], v[2:3], 2, s[2:3]
	s_cselect_b64 s[0:1], -1, 0
	s_cmp_lt_i32 s10, 1
	v_mov_b32_e32 v3, 0
	s_cbranch_scc1 .LBB0_2
	v_lshlrev_b32_e32 v2, 2, v4
	v_lshl_add_u64 v[2:3], v[32:33], 0, v[2:3]
	global_load_dwordx4 v[8:11], v[2:3], off
	s_branch .LBB0_3
.LBB0_2:
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, v8
	v_mov_b32_e32 v10, v8
	v_mov_b32_e32 v11, v8
.LBB0_3:
	s_lshl_b32 s11, s17, 5
	s_and_b64 s[0:1], s[0:1], exec
	v_or_b32_e32 v2, s11, v4
	s_cselect_b32 s0, 1, 0
	s_cmp_lg_u32 s0, 1
	v_ashrrev_i32_e32 v3, 31, v2
	s_cbranch_scc1 .LBB0_5
	v_mul_lo_u32 v12, v7, s9
	v_ashrrev_i32_e32 v13, 31, v12
	v_lshl_add_u64 v[12:13], v[12:13], 2, s[4:5]
	v_lshl_add_u64 v[12:13], v[2:3], 2, v[12:13]
	global_load_dwordx4 v[12:15], v[12:13], off
	s_branch .LBB0_6
.LBB0_5:
	v_mov_b32_e32 v12, 0
	v_mov_b32_e32 v13, v12
	v_mov_b32_e32 v14, v12
	v_mov_b32_e32 v15, v12
.LBB0_6:
	v_and_b32_e32 v86, 31, v0
	v_and_b32_e32 v87, 32, v0
	v_lshlrev_b32_e32 v0, 1, v0
	v_lshlrev_b32_e32 v6, 4, v6
	v_and_b32_e32 v0, 0x70, v0
	v_xor_b32_e32 v0, v6, v0
	v_add_u32_e32 v94, 0, v0
	v_lshlrev_b32_e32 v0, 4, v5
	v_lshrrev_b32_e32 v5, 1, v87
	v_xor_b32_e32 v0, v0, v5
	s_sub_i32 s70, s10, 32
	v_lshl_or_b32 v0, v86, 7, v0
	v_add_u32_e32 v95, 0, v6
	s_cmp_gt_i32 s70, 0
	v_xor_b32_e32 v91, 32, v0
	v_xor_b32_e32 v90, 64, v0
	v_lshlrev_b32_e32 v88, 2, v86
	v_lshlrev_b32_e32 v89, 4, v87
	s_waitcnt vmcnt(0)
	ds_write_b128 v94, v[8:11]
	ds_write_b128 v95, v[12:15] offset:4096
	s_cbranch_scc1 .LBB0_8
	v_xor_b32_e32 v92, 0x60, v0
	s_mov_b64 s[0:1], 0
	s_branch .LBB0_9
.LBB0_8:
	s_mov_b64 s[0:1], -1
.LBB0_9:
	s_and_b64 s[0:1], s[0:1], exec
	s_cselect_b32 s0, 1, 0
	s_cmp_lg_u32 s0, 1
	v_add_u32_e32 v93, 0, v0
	s_cbranch_scc1 .LBB0_12
	v_add_u32_e32 v1, s12, v1
	v_xor_b32_e32 v92, 0x60, v0
	v_add_u32_e32 v0, 0, v89
	v_lshrrev_b32_e32 v1, 3, v1
	v_add_u32_e32 v1, 32, v1
	v_mov_b32_e32 v18, 0
	v_add_u32_e32 v0, v0, v88
	v_lshl_add_u64 v[34:35], v[2:3], 2, s[4:5]
	s_mov_b32 s74, 0
	v_mul_lo_u32 v36, s9, v1
	s_lshl_b32 s71, s9, 5
	v_or_b32_e32 v96, 32, v4
	v_add_u32_e32 v97, 0, v91
	v_add_u32_e32 v98, 0, v90
	v_add_u32_e32 v99, 0, v92
	s_movk_i32 s72, 0x7fff
	v_mov_b32_e32 v100, 0x7fff
	s_mov_b32 s73, 0x5040100
	v_add_u32_e32 v101, 0x1000, v0
	v_add_u32_e32 v102, 0x1400, v0
	v_add_u32_e32 v103, 0x1800, v0
	v_add_u32_e32 v104, 0x1c00, v0
	v_mov_b32_e32 v105, 1
	v_mov_b32_e32 v19, v18
	v_mov_b32_e32 v30, v18
	v_mov_b32_e32 v31, v18
	v_mov_b32_e32 v28, v18
	v_mov_b32_e32 v29, v18
	v_mov_b32_e32 v26, v18
	v_mov_b32_e32 v27, v18
	v_mov_b32_e32 v20, v18
	v_mov_b32_e32 v21, v18
	v_mov_b32_e32 v16, v18
	v_mov_b32_e32 v17, v18
	v_mov_b32_e32 v22, v18
	v_mov_b32_e32 v23, v18
	v_mov_b32_e32 v24, v18
	v_mov_b32_e32 v25, v18
.LBB0_11:
	s_nop 0
	v_add_u32_e32 v0, s74, v96
	v_ashrrev_i32_e32 v1, 31, v0
	v_lshl_add_u64 v[0:1], v[0:1], 2, v[32:33]
	global_load_dwordx4 v[112:115], v[0:1], off
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read2_b32 v[46:47], v101 offset1:32
	ds_read2_b32 v[48:49], v101 offset0:64 offset1:96
	ds_read_b128 v[0:3], v93
	ds_read_b128 v[12:15], v97
	ds_read_b128 v[8:11], v98
	ds_read_b128 v[4:7], v99
	ds_read2_b32 v[56:57], v102 offset1:32
	ds_read2_b32 v[54:55], v102 offset0:64 offset1:96
	ds_read2_b32 v[50:51], v103 offset1:32
	ds_read2_b32 v[52:53], v103 offset0:64 offset1:96
	s_waitcnt lgkmcnt(6)
	v_and_b32_sdwa v42, v13, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v43, v12, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v44, v15, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v38, v1, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v39, v0, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v40, v3, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v41, v2, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v45, v14, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	s_waitcnt lgkmcnt(5)
	v_and_b32_sdwa v58, v9, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v60, v11, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v66, v1, v38, s72
	v_add3_u32 v38, v0, v39, s72
	v_add3_u32 v67, v3, v40, s72
	v_add3_u32 v40, v2, v41, s72
	v_cmp_o_f32_e32 vcc, v1, v1
	v_cmp_o_f32_e64 s[0:1], v2, v2
	v_cmp_o_f32_e64 s[2:3], v3, v3
	v_cmp_o_f32_e64 s[4:5], v0, v0
	v_and_b32_sdwa v59, v8, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v61, v10, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	s_waitcnt lgkmcnt(4)
	v_and_b32_sdwa v64, v7, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v65, v6, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v68, v13, v42, s72
	v_add3_u32 v42, v12, v43, s72
	v_add3_u32 v69, v15, v44, s72
	v_add3_u32 v44, v14, v45, s72
	v_add3_u32 v70, v9, v58, s72
	v_add3_u32 v71, v11, v60, s72
	v_lshrrev_b32_e32 v38, 16, v38
	v_lshrrev_b32_e32 v39, 16, v66
	v_lshrrev_b32_e32 v40, 16, v40
	v_lshrrev_b32_e32 v41, 16, v67
	v_cmp_o_f32_e64 s[34:35], v13, v13
	v_cmp_o_f32_e64 s[36:37], v14, v14
	v_cmp_o_f32_e64 s[12:13], v15, v15
	v_cmp_o_f32_e64 s[14:15], v12, v12
	v_and_b32_sdwa v62, v5, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v63, v4, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v58, v8, v59, s72
	v_add3_u32 v60, v10, v61, s72
	v_add3_u32 v73, v7, v64, s72
	v_add3_u32 v64, v6, v65, s72
	v_lshrrev_b32_e32 v42, 16, v42
	v_lshrrev_b32_e32 v43, 16, v68
	v_lshrrev_b32_e32 v44, 16, v44
	v_lshrrev_b32_e32 v45, 16, v69
	v_lshrrev_b32_e32 v59, 16, v70
	v_lshrrev_b32_e32 v61, 16, v71
	v_cndmask_b32_e64 v66, v100, v38, s[4:5]
	v_cndmask_b32_e32 v67, v100, v39, vcc
	v_cndmask_b32_e64 v70, v100, v40, s[0:1]
	v_cndmask_b32_e64 v71, v100, v41, s[2:3]
	v_cmp_o_f32_e64 s[16:17], v9, v9
	v_cmp_o_f32_e64 s[18:19], v10, v10
	v_cmp_o_f32_e64 s[20:21], v11, v11
	v_cmp_o_f32_e64 s[22:23], v8, v8
	v_cmp_o_f32_e64 s[26:27], v6, v6
	v_cmp_o_f32_e64 s[28:29], v7, v7
	v_add3_u32 v72, v5, v62, s72
	v_add3_u32 v62, v4, v63, s72
	v_lshrrev_b32_e32 v58, 16, v58
	v_lshrrev_b32_e32 v60, 16, v60
	v_lshrrev_b32_e32 v64, 16, v64
	v_lshrrev_b32_e32 v65, 16, v73
	v_cndmask_b32_e64 v42, v100, v42, s[14:15]
	v_cndmask_b32_e64 v43, v100, v43, s[34:35]
	v_cndmask_b32_e64 v44, v100, v44, s[36:37]
	v_cndmask_b32_e64 v45, v100, v45, s[12:13]
	v_lshlrev_b32_e32 v39, 16, v67
	v_lshlrev_b32_e32 v38, 16, v66
	v_lshlrev_b32_e32 v41, 16, v71
	v_lshlrev_b32_e32 v40, 16, v70
	v_cmp_o_f32_e64 s[24:25], v5, v5
	v_cmp_o_f32_e64 s[30:31], v4, v4
	v_lshrrev_b32_e32 v62, 16, v62
	v_lshrrev_b32_e32 v63, 16, v72
	v_cndmask_b32_e64 v72, v100, v58, s[22:23]
	v_cndmask_b32_e64 v73, v100, v59, s[16:17]
	v_cndmask_b32_e64 v74, v100, v60, s[18:19]
	v_cndmask_b32_e64 v75, v100, v61, s[20:21]
	v_cndmask_b32_e64 v76, v100, v64, s[26:27]
	v_cndmask_b32_e64 v77, v100, v65, s[28:29]
	v_pk_add_f32 v[64:65], v[0:1], v[38:39] neg_lo:[0,1] neg_hi:[0,1]
	v_pk_add_f32 v[60:61], v[2:3], v[40:41] neg_lo:[0,1] neg_hi:[0,1]
	v_lshlrev_b32_e32 v1, 16, v43
	v_lshlrev_b32_e32 v0, 16, v42
	v_lshlrev_b32_e32 v3, 16, v45
	v_lshlrev_b32_e32 v2, 16, v44
	v_cndmask_b32_e64 v62, v100, v62, s[30:31]
	v_cndmask_b32_e64 v63, v100, v63, s[24:25]
	v_pk_add_f32 v[58:59], v[12:13], v[0:1] neg_lo:[0,1] neg_hi:[0,1]
	v_pk_add_f32 v[14:15], v[14:15], v[2:3] neg_lo:[0,1] neg_hi:[0,1]
	v_lshlrev_b32_e32 v1, 16, v73
	v_lshlrev_b32_e32 v0, 16, v72
	v_lshlrev_b32_e32 v3, 16, v75
	v_lshlrev_b32_e32 v2, 16, v74
	v_pk_add_f32 v[12:13], v[8:9], v[0:1] neg_lo:[0,1] neg_hi:[0,1]
	v_pk_add_f32 v[8:9], v[10:11], v[2:3] neg_lo:[0,1] neg_hi:[0,1]
	v_lshlrev_b32_e32 v1, 16, v63
	v_lshlrev_b32_e32 v0, 16, v62
	v_lshlrev_b32_e32 v11, 16, v77
	v_lshlrev_b32_e32 v10, 16, v76
	v_and_b32_sdwa v37, v47, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_pk_add_f32 v[2:3], v[4:5], v[0:1] neg_lo:[0,1] neg_hi:[0,1]
	v_pk_add_f32 v[0:1], v[6:7], v[10:11] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v6, v46, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v7, v47, v37, s72
	v_add3_u32 v6, v46, v6, s72
	v_cmp_o_f32_e64 s[2:3], v47, v47
	v_cmp_o_f32_e64 s[4:5], v46, v46
	v_lshrrev_b32_e32 v6, 16, v6
	v_lshrrev_b32_e32 v7, 16, v7
	v_perm_b32 v40, v43, v42, s73
	v_perm_b32 v42, v73, v72, s73
	v_cndmask_b32_e64 v37, v100, v6, s[4:5]
	v_cndmask_b32_e64 v72, v100, v7, s[2:3]
	v_and_b32_sdwa v10, v49, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v11, v48, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_lshlrev_b32_e32 v7, 16, v72
	v_lshlrev_b32_e32 v6, 16, v37
	v_perm_b32 v41, v45, v44, s73
	v_perm_b32 v44, v63, v62, s73
	v_pk_add_f32 v[62:63], v[46:47], v[6:7] neg_lo:[0,1] neg_hi:[0,1]
	v_add3_u32 v6, v49, v10, s72
	v_add3_u32 v7, v48, v11, s72
	v_cmp_o_f32_e32 vcc, v49, v49
	v_cmp_o_f32_e64 s[0:1], v48, v48
	v_lshrrev_b32_e32 v7, 16, v7
	v_lshrrev_b32_e32 v6, 16, v6
	v_perm_b32 v38, v67, v66, s73
	s_waitcnt lgkmcnt(3)
	v_and_b32_sdwa v66, v57, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v67, v56, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e64 v10, v100, v7, s[0:1]
	v_cndmask_b32_e32 v6, v100, v6, vcc
	v_perm_b32 v47, v6, v10, s73
	v_lshlrev_b32_e32 v7, 16, v6
	v_lshlrev_b32_e32 v6, 16, v10
	v_add3_u32 v10, v57, v66, s72
	v_add3_u32 v11, v56, v67, s72
	v_cmp_o_f32_e64 s[16:17], v57, v57
	v_cmp_o_f32_e64 s[18:19], v56, v56
	v_lshrrev_b32_e32 v11, 16, v11
	v_lshrrev_b32_e32 v10, 16, v10
	v_cndmask_b32_e64 v66, v100, v11, s[18:19]
	v_cndmask_b32_e64 v67, v100, v10, s[16:17]
	v_perm_b32 v39, v71, v70, s73
	s_waitcnt lgkmcnt(2)
	v_and_b32_sdwa v70, v55, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v71, v54, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_perm_b32 v46, v72, v37, s73
	v_pk_add_f32 v[72:73], v[48:49], v[6:7] neg_lo:[0,1] neg_hi:[0,1]
	v_lshlrev_b32_e32 v7, 16, v67
	v_lshlrev_b32_e32 v6, 16, v66
	v_perm_b32 v43, v75, v74, s73
	s_waitcnt lgkmcnt(1)
	v_and_b32_sdwa v74, v51, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v37, v50, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_pk_add_f32 v[10:11], v[56:57], v[6:7] neg_lo:[0,1] neg_hi:[0,1]
	v_add3_u32 v6, v55, v70, s72
	v_add3_u32 v7, v54, v71, s72
	v_cmp_o_f32_e64 s[12:13], v55, v55
	v_cmp_o_f32_e64 s[14:15], v54, v54
	v_lshrrev_b32_e32 v7, 16, v7
	v_lshrrev_b32_e32 v6, 16, v6
	v_perm_b32 v48, v67, v66, s73
	v_add3_u32 v66, v51, v74, s72
	v_add3_u32 v37, v50, v37, s72
	v_cmp_o_f32_e32 vcc, v51, v51
	v_cmp_o_f32_e64 s[0:1], v50, v50
	v_cndmask_b32_e64 v57, v100, v7, s[14:15]
	v_cndmask_b32_e64 v6, v100, v6, s[12:13]
	v_lshrrev_b32_e32 v37, 16, v37
	v_lshrrev_b32_e32 v66, 16, v66
	ds_read2_b32 v[4:5], v104 offset1:32
	ds_read2_b32 v[68:69], v104 offset0:64 offset1:96
	v_perm_b32 v49, v6, v57, s73
	v_lshlrev_b32_e32 v7, 16, v6
	v_lshlrev_b32_e32 v6, 16, v57
	v_cndmask_b32_e64 v37, v100, v37, s[0:1]
	v_cndmask_b32_e32 v70, v100, v66, vcc
	s_waitcnt lgkmcnt(2)
	v_and_b32_sdwa v56, v53, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_pk_add_f32 v[66:67], v[54:55], v[6:7] neg_lo:[0,1] neg_hi:[0,1]
	v_lshlrev_b32_e32 v7, 16, v70
	v_lshlrev_b32_e32 v6, 16, v37
	v_pk_add_f32 v[6:7], v[50:51], v[6:7] neg_lo:[0,1] neg_hi:[0,1]
	v_add3_u32 v50, v53, v56, s72
	v_and_b32_sdwa v57, v52, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[2:3], v53, v53
	v_lshrrev_b32_e32 v50, 16, v50
	s_waitcnt lgkmcnt(1)
	v_and_b32_sdwa v71, v5, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v51, v52, v57, s72
	v_cndmask_b32_e64 v55, v100, v50, s[2:3]
	v_perm_b32 v50, v70, v37, s73
	v_and_b32_sdwa v37, v4, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[4:5], v52, v52
	v_lshrrev_b32_e32 v51, 16, v51
	v_add3_u32 v56, v5, v71, s72
	v_add3_u32 v37, v4, v37, s72
	v_cndmask_b32_e64 v54, v100, v51, s[4:5]
	v_cmp_o_f32_e32 vcc, v5, v5
	v_cmp_o_f32_e64 s[0:1], v4, v4
	v_lshrrev_b32_e32 v37, 16, v37
	v_lshrrev_b32_e32 v56, 16, v56
	v_perm_b32 v51, v55, v54, s73
	v_lshlrev_b32_e32 v55, 16, v55
	v_lshlrev_b32_e32 v54, 16, v54
	v_cndmask_b32_e64 v37, v100, v37, s[0:1]
	v_cndmask_b32_e32 v56, v100, v56, vcc
	v_pk_add_f32 v[70:71], v[52:53], v[54:55] neg_lo:[0,1] neg_hi:[0,1]
	v_lshlrev_b32_e32 v53, 16, v56
	v_lshlrev_b32_e32 v52, 16, v37
	v_pk_add_f32 v[4:5], v[4:5], v[52:53] neg_lo:[0,1] neg_hi:[0,1]
	s_waitcnt lgkmcnt(0)
	v_and_b32_sdwa v52, v69, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v53, v68, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v52, v69, v52, s72
	v_add3_u32 v53, v68, v53, s72
	v_cmp_o_f32_e32 vcc, v69, v69
	v_cmp_o_f32_e64 s[0:1], v68, v68
	v_lshrrev_b32_e32 v53, 16, v53
	v_lshrrev_b32_e32 v52, 16, v52
	v_cndmask_b32_e64 v54, v100, v53, s[0:1]
	v_cndmask_b32_e32 v55, v100, v52, vcc
	v_perm_b32 v53, v55, v54, s73
	v_lshlrev_b32_e32 v55, 16, v55
	v_lshlrev_b32_e32 v54, 16, v54
	v_perm_b32 v52, v56, v37, s73
	v_pk_add_f32 v[74:75], v[68:69], v[54:55] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v37, v65, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v54, v64, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v37, v65, v37, s72
	v_add3_u32 v54, v64, v54, s72
	v_cmp_o_f32_e32 vcc, v65, v65
	v_cmp_o_f32_e64 s[0:1], v64, v64
	v_lshrrev_b32_e32 v54, 16, v54
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e64 v56, v100, v54, s[0:1]
	v_cndmask_b32_e32 v37, v100, v37, vcc
	v_lshlrev_b32_e32 v55, 16, v37
	v_lshlrev_b32_e32 v54, 16, v56
	v_pk_add_f32 v[68:69], v[64:65], v[54:55] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v54, v61, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v55, v60, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v54, v61, v54, s72
	v_add3_u32 v55, v60, v55, s72
	v_cmp_o_f32_e32 vcc, v61, v61
	v_cmp_o_f32_e64 s[0:1], v60, v60
	v_lshrrev_b32_e32 v55, 16, v55
	v_lshrrev_b32_e32 v54, 16, v54
	v_cndmask_b32_e64 v64, v100, v55, s[0:1]
	v_cndmask_b32_e32 v57, v100, v54, vcc
	v_perm_b32 v54, v37, v56, s73
	v_perm_b32 v55, v57, v64, s73
	v_lshlrev_b32_e32 v57, 16, v57
	v_lshlrev_b32_e32 v56, 16, v64
	v_pk_add_f32 v[78:79], v[60:61], v[56:57] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v37, v59, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v56, v58, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v37, v59, v37, s72
	v_add3_u32 v56, v58, v56, s72
	v_cmp_o_f32_e32 vcc, v59, v59
	v_cmp_o_f32_e64 s[0:1], v58, v58
	v_lshrrev_b32_e32 v56, 16, v56
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e64 v60, v100, v56, s[0:1]
	v_cndmask_b32_e32 v37, v100, v37, vcc
	v_lshlrev_b32_e32 v57, 16, v37
	v_lshlrev_b32_e32 v56, 16, v60
	v_perm_b32 v45, v77, v76, s73
	v_pk_add_f32 v[76:77], v[58:59], v[56:57] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v56, v15, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v57, v14, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v56, v15, v56, s72
	v_add3_u32 v57, v14, v57, s72
	v_cmp_o_f32_e32 vcc, v15, v15
	v_cmp_o_f32_e64 s[0:1], v14, v14
	v_lshrrev_b32_e32 v57, 16, v57
	v_lshrrev_b32_e32 v56, 16, v56
	v_cndmask_b32_e64 v58, v100, v57, s[0:1]
	v_cndmask_b32_e32 v59, v100, v56, vcc
	v_perm_b32 v57, v59, v58, s73
	v_lshlrev_b32_e32 v59, 16, v59
	v_lshlrev_b32_e32 v58, 16, v58
	v_perm_b32 v56, v37, v60, s73
	v_pk_add_f32 v[14:15], v[14:15], v[58:59] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v37, v13, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v58, v12, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v37, v13, v37, s72
	v_add3_u32 v58, v12, v58, s72
	v_cmp_o_f32_e32 vcc, v13, v13
	v_cmp_o_f32_e64 s[0:1], v12, v12
	v_lshrrev_b32_e32 v58, 16, v58
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e64 v60, v100, v58, s[0:1]
	v_cndmask_b32_e32 v37, v100, v37, vcc
	v_lshlrev_b32_e32 v59, 16, v37
	v_lshlrev_b32_e32 v58, 16, v60
	v_pk_add_f32 v[12:13], v[12:13], v[58:59] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v58, v9, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v59, v8, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v58, v9, v58, s72
	v_add3_u32 v59, v8, v59, s72
	v_cmp_o_f32_e32 vcc, v9, v9
	v_cmp_o_f32_e64 s[0:1], v8, v8
	v_lshrrev_b32_e32 v59, 16, v59
	v_lshrrev_b32_e32 v58, 16, v58
	v_cndmask_b32_e64 v64, v100, v59, s[0:1]
	v_cndmask_b32_e32 v61, v100, v58, vcc
	v_perm_b32 v58, v37, v60, s73
	v_perm_b32 v59, v61, v64, s73
	v_lshlrev_b32_e32 v61, 16, v61
	v_lshlrev_b32_e32 v60, 16, v64
	v_pk_add_f32 v[8:9], v[8:9], v[60:61] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v37, v3, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v60, v2, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v37, v3, v37, s72
	v_add3_u32 v60, v2, v60, s72
	v_cmp_o_f32_e32 vcc, v3, v3
	v_cmp_o_f32_e64 s[0:1], v2, v2
	v_lshrrev_b32_e32 v60, 16, v60
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e64 v64, v100, v60, s[0:1]
	v_cndmask_b32_e32 v37, v100, v37, vcc
	v_lshlrev_b32_e32 v61, 16, v37
	v_lshlrev_b32_e32 v60, 16, v64
	v_pk_add_f32 v[2:3], v[2:3], v[60:61] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v60, v1, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v61, v0, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v60, v1, v60, s72
	v_add3_u32 v61, v0, v61, s72
	v_cmp_o_f32_e32 vcc, v1, v1
	v_cmp_o_f32_e64 s[0:1], v0, v0
	v_lshrrev_b32_e32 v61, 16, v61
	v_lshrrev_b32_e32 v60, 16, v60
	v_cndmask_b32_e64 v80, v100, v61, s[0:1]
	v_cndmask_b32_e32 v65, v100, v60, vcc
	v_perm_b32 v60, v37, v64, s73
	v_perm_b32 v61, v65, v80, s73
	v_lshlrev_b32_e32 v65, 16, v65
	v_lshlrev_b32_e32 v64, 16, v80
	v_pk_add_f32 v[0:1], v[0:1], v[64:65] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v37, v63, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v64, v62, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v37, v63, v37, s72
	v_add3_u32 v64, v62, v64, s72
	v_cmp_o_f32_e32 vcc, v63, v63
	v_cmp_o_f32_e64 s[0:1], v62, v62
	v_lshrrev_b32_e32 v64, 16, v64
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e64 v82, v100, v64, s[0:1]
	v_cndmask_b32_e32 v37, v100, v37, vcc
	v_lshlrev_b32_e32 v65, 16, v37
	v_lshlrev_b32_e32 v64, 16, v82
	v_pk_add_f32 v[80:81], v[62:63], v[64:65] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v62, v73, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v63, v72, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v62, v73, v62, s72
	v_add3_u32 v63, v72, v63, s72
	v_cmp_o_f32_e32 vcc, v73, v73
	v_cmp_o_f32_e64 s[0:1], v72, v72
	v_lshrrev_b32_e32 v63, 16, v63
	v_lshrrev_b32_e32 v62, 16, v62
	v_cndmask_b32_e64 v64, v100, v63, s[0:1]
	v_cndmask_b32_e32 v65, v100, v62, vcc
	v_perm_b32 v63, v65, v64, s73
	v_lshlrev_b32_e32 v65, 16, v65
	v_lshlrev_b32_e32 v64, 16, v64
	v_perm_b32 v62, v37, v82, s73
	v_pk_add_f32 v[72:73], v[72:73], v[64:65] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v37, v11, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v64, v10, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v37, v11, v37, s72
	v_add3_u32 v64, v10, v64, s72
	v_cmp_o_f32_e32 vcc, v11, v11
	v_cmp_o_f32_e64 s[0:1], v10, v10
	v_lshrrev_b32_e32 v64, 16, v64
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e64 v82, v100, v64, s[0:1]
	v_cndmask_b32_e32 v37, v100, v37, vcc
	v_lshlrev_b32_e32 v65, 16, v37
	v_lshlrev_b32_e32 v64, 16, v82
	v_pk_add_f32 v[10:11], v[10:11], v[64:65] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v64, v67, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v65, v66, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v64, v67, v64, s72
	v_add3_u32 v65, v66, v65, s72
	v_cmp_o_f32_e32 vcc, v67, v67
	v_cmp_o_f32_e64 s[0:1], v66, v66
	v_lshrrev_b32_e32 v65, 16, v65
	v_lshrrev_b32_e32 v64, 16, v64
	v_cndmask_b32_e64 v84, v100, v65, s[0:1]
	v_cndmask_b32_e32 v83, v100, v64, vcc
	v_perm_b32 v64, v37, v82, s73
	v_perm_b32 v65, v83, v84, s73
	v_lshlrev_b32_e32 v83, 16, v83
	v_lshlrev_b32_e32 v82, 16, v84
	v_pk_add_f32 v[82:83], v[66:67], v[82:83] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v37, v7, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v66, v6, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v37, v7, v37, s72
	v_add3_u32 v66, v6, v66, s72
	v_cmp_o_f32_e32 vcc, v7, v7
	v_cmp_o_f32_e64 s[0:1], v6, v6
	v_lshrrev_b32_e32 v66, 16, v66
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e64 v84, v100, v66, s[0:1]
	v_cndmask_b32_e32 v37, v100, v37, vcc
	v_lshlrev_b32_e32 v67, 16, v37
	v_lshlrev_b32_e32 v66, 16, v84
	v_pk_add_f32 v[6:7], v[6:7], v[66:67] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v66, v71, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v67, v70, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v66, v71, v66, s72
	v_add3_u32 v67, v70, v67, s72
	v_cmp_o_f32_e32 vcc, v71, v71
	v_cmp_o_f32_e64 s[0:1], v70, v70
	v_lshrrev_b32_e32 v67, 16, v67
	v_lshrrev_b32_e32 v66, 16, v66
	v_cndmask_b32_e64 v106, v100, v67, s[0:1]
	v_cndmask_b32_e32 v85, v100, v66, vcc
	v_perm_b32 v66, v37, v84, s73
	v_perm_b32 v67, v85, v106, s73
	v_lshlrev_b32_e32 v85, 16, v85
	v_lshlrev_b32_e32 v84, 16, v106
	v_pk_add_f32 v[84:85], v[70:71], v[84:85] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v37, v5, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v70, v4, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v37, v5, v37, s72
	v_add3_u32 v70, v4, v70, s72
	v_cmp_o_f32_e32 vcc, v5, v5
	v_cmp_o_f32_e64 s[0:1], v4, v4
	v_lshrrev_b32_e32 v70, 16, v70
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e64 v106, v100, v70, s[0:1]
	v_cndmask_b32_e32 v37, v100, v37, vcc
	v_lshlrev_b32_e32 v71, 16, v37
	v_lshlrev_b32_e32 v70, 16, v106
	v_pk_add_f32 v[4:5], v[4:5], v[70:71] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v70, v75, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v70, v75, v70, s72
	v_cmp_o_f32_e32 vcc, v75, v75
	v_lshrrev_b32_e32 v70, 16, v70
	v_cmp_o_f32_e64 s[44:45], v15, v15
	v_cndmask_b32_e32 v107, v100, v70, vcc
	v_perm_b32 v70, v37, v106, s73
	v_and_b32_sdwa v37, v79, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v118, v79, v37, s72
	v_and_b32_sdwa v37, v78, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v119, v78, v37, s72
	v_and_b32_sdwa v37, v15, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v120, v15, v37, s72
	v_and_b32_sdwa v15, v14, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[42:43], v14, v14
	v_add3_u32 v121, v14, v15, s72
	v_and_b32_sdwa v14, v9, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[40:41], v9, v9
	v_add3_u32 v122, v9, v14, s72
	v_and_b32_sdwa v9, v8, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[38:39], v8, v8
	v_add3_u32 v123, v8, v9, s72
	v_and_b32_sdwa v8, v1, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v71, v74, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[36:37], v1, v1
	v_add3_u32 v124, v1, v8, s72
	v_and_b32_sdwa v1, v0, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v71, v74, v71, s72
	v_cmp_o_f32_e64 s[34:35], v0, v0
	v_add3_u32 v125, v0, v1, s72
	v_and_b32_sdwa v0, v81, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[0:1], v74, v74
	v_lshrrev_b32_e32 v71, 16, v71
	v_add3_u32 v109, v81, v0, s72
	v_and_b32_sdwa v0, v80, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e64 v108, v100, v71, s[0:1]
	v_add3_u32 v111, v80, v0, s72
	v_and_b32_sdwa v0, v73, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_perm_b32 v71, v107, v108, s73
	v_lshlrev_b32_e32 v106, 16, v108
	v_add3_u32 v108, v73, v0, s72
	v_and_b32_sdwa v0, v72, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_lshlrev_b32_e32 v107, 16, v107
	v_add3_u32 v110, v72, v0, s72
	v_and_b32_sdwa v0, v11, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_pk_add_f32 v[116:117], v[74:75], v[106:107] neg_lo:[0,1] neg_hi:[0,1]
	v_add3_u32 v106, v11, v0, s72
	v_and_b32_sdwa v0, v10, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v107, v10, v0, s72
	v_and_b32_sdwa v0, v83, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[26:27], v81, v81
	v_add3_u32 v81, v83, v0, s72
	v_and_b32_sdwa v0, v82, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[20:21], v82, v82
	v_add3_u32 v82, v82, v0, s72
	v_and_b32_sdwa v0, v7, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[50:51], v78, v78
	v_add3_u32 v78, v7, v0, s72
	v_and_b32_sdwa v0, v6, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[24:25], v80, v80
	v_add3_u32 v80, v6, v0, s72
	v_and_b32_sdwa v0, v85, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v75, v85, v0, s72
	v_and_b32_sdwa v0, v84, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[52:53], v79, v79
	v_add3_u32 v79, v84, v0, s72
	v_and_b32_sdwa v0, v5, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[28:29], v72, v72
	v_add3_u32 v72, v5, v0, s72
	v_and_b32_sdwa v0, v4, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[4:5], v4, v4
	v_add3_u32 v74, v4, v0, s72
	v_and_b32_sdwa v4, v77, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[58:59], v77, v77
	v_add3_u32 v77, v77, v4, s72
	v_and_b32_sdwa v4, v76, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v0, v117, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[60:61], v76, v76
	v_add3_u32 v76, v76, v4, s72
	v_and_b32_sdwa v4, v13, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[22:23], v83, v83
	v_add3_u32 v37, v117, v0, s72
	v_and_b32_sdwa v0, v116, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v83, v13, v4, s72
	v_and_b32_sdwa v4, v12, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[30:31], v73, v73
	v_cmp_o_f32_e64 s[12:13], v84, v84
	v_add3_u32 v73, v116, v0, s72
	v_and_b32_sdwa v0, v69, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v1, v68, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v84, v12, v4, s72
	v_and_b32_sdwa v4, v3, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[14:15], v85, v85
	v_add3_u32 v0, v69, v0, s72
	v_add3_u32 v1, v68, v1, s72
	v_cmp_o_f32_e64 s[46:47], v3, v3
	v_add3_u32 v85, v3, v4, s72
	v_and_b32_sdwa v3, v2, v105 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e64 s[2:3], v116, v116
	v_cmp_o_f32_e64 s[62:63], v69, v69
	v_cmp_o_f32_e64 s[64:65], v68, v68
	v_cmp_o_f32_e64 s[48:49], v2, v2
	v_add3_u32 v116, v2, v3, s72
	v_lshrrev_b32_e32 v2, 16, v119
	v_lshrrev_b32_e32 v3, 16, v118
	v_lshrrev_b32_e32 v1, 16, v1
	v_lshrrev_b32_e32 v0, 16, v0
	v_cndmask_b32_e64 v1, v100, v1, s[64:65]
	v_cndmask_b32_e64 v0, v100, v0, s[62:63]
	v_cndmask_b32_e64 v2, v100, v2, s[50:51]
	v_cndmask_b32_e64 v3, v100, v3, s[52:53]
	v_cmp_o_f32_e64 s[16:17], v10, v10
	v_cmp_o_f32_e64 s[18:19], v11, v11
	v_cmp_o_f32_e64 s[66:67], v6, v6
	v_cmp_o_f32_e64 s[68:69], v7, v7
	v_cmp_o_f32_e64 s[0:1], v5, v5
	v_cmp_o_f32_e64 s[54:55], v13, v13
	v_cmp_o_f32_e64 s[56:57], v12, v12
	v_perm_b32 v69, v3, v2, s73
	v_perm_b32 v68, v0, v1, s73
	v_mfma_f32_32x32x8_bf16 v[0:15], v[62:63], v[54:55], 0
	v_lshrrev_b32_e32 v76, 16, v76
	v_lshrrev_b32_e32 v77, 16, v77
	v_cndmask_b32_e64 v76, v100, v76, s[60:61]
	v_cndmask_b32_e64 v77, v100, v77, s[58:59]
	v_lshrrev_b32_e32 v75, 16, v75
	v_cndmask_b32_e64 v75, v100, v75, s[14:15]
	v_cmp_o_f32_e32 vcc, v117, v117
	v_mfma_f32_32x32x8_bf16 v[0:15], v[64:65], v[56:57], v[0:15]
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e32 v37, v100, v37, vcc
	s_add_i32 s74, s74, 32
	s_cmp_lt_i32 s74, s70
	v_mfma_f32_32x32x8_bf16 v[0:15], v[66:67], v[58:59], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[70:71], v[60:61], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[46:47], v[68:69], v[0:15]
	v_lshrrev_b32_e32 v68, 16, v121
	v_lshrrev_b32_e32 v69, 16, v120
	v_cndmask_b32_e64 v68, v100, v68, s[42:43]
	v_cndmask_b32_e64 v69, v100, v69, s[44:45]
	v_perm_b32 v69, v69, v68, s73
	v_perm_b32 v68, v77, v76, s73
	v_lshrrev_b32_e32 v76, 16, v84
	v_lshrrev_b32_e32 v77, 16, v83
	v_mfma_f32_32x32x8_bf16 v[0:15], v[48:49], v[68:69], v[0:15]
	v_lshrrev_b32_e32 v68, 16, v123
	v_lshrrev_b32_e32 v69, 16, v122
	v_cndmask_b32_e64 v76, v100, v76, s[56:57]
	v_cndmask_b32_e64 v77, v100, v77, s[54:55]
	v_cndmask_b32_e64 v68, v100, v68, s[38:39]
	v_cndmask_b32_e64 v69, v100, v69, s[40:41]
	v_perm_b32 v69, v69, v68, s73
	v_perm_b32 v68, v77, v76, s73
	v_lshrrev_b32_e32 v76, 16, v116
	v_lshrrev_b32_e32 v77, 16, v85
	v_mfma_f32_32x32x8_bf16 v[0:15], v[50:51], v[68:69], v[0:15]
	v_lshrrev_b32_e32 v68, 16, v125
	v_lshrrev_b32_e32 v69, 16, v124
	v_cndmask_b32_e64 v76, v100, v76, s[48:49]
	v_cndmask_b32_e64 v77, v100, v77, s[46:47]
	v_cndmask_b32_e64 v68, v100, v68, s[34:35]
	v_cndmask_b32_e64 v69, v100, v69, s[36:37]
	v_perm_b32 v69, v69, v68, s73
	v_perm_b32 v68, v77, v76, s73
	v_lshrrev_b32_e32 v76, 16, v110
	v_lshrrev_b32_e32 v77, 16, v108
	v_mfma_f32_32x32x8_bf16 v[0:15], v[52:53], v[68:69], v[0:15]
	v_lshrrev_b32_e32 v68, 16, v111
	v_lshrrev_b32_e32 v69, 16, v109
	v_cndmask_b32_e64 v68, v100, v68, s[24:25]
	v_cndmask_b32_e64 v83, v100, v69, s[26:27]
	v_cndmask_b32_e64 v69, v100, v76, s[28:29]
	v_cndmask_b32_e64 v76, v100, v77, s[30:31]
	v_perm_b32 v69, v76, v69, s73
	v_perm_b32 v68, v83, v68, s73
	v_lshrrev_b32_e32 v76, 16, v82
	v_lshrrev_b32_e32 v77, 16, v81
	v_mfma_f32_32x32x8_bf16 v[0:15], v[68:69], v[38:39], v[0:15]
	v_lshrrev_b32_e32 v68, 16, v107
	v_lshrrev_b32_e32 v69, 16, v106
	v_cndmask_b32_e64 v68, v100, v68, s[16:17]
	v_cndmask_b32_e64 v81, v100, v69, s[18:19]
	v_cndmask_b32_e64 v69, v100, v76, s[20:21]
	v_cndmask_b32_e64 v76, v100, v77, s[22:23]
	v_perm_b32 v69, v76, v69, s73
	v_perm_b32 v68, v81, v68, s73
	v_lshrrev_b32_e32 v76, 16, v79
	s_nop 0
	v_mfma_f32_32x32x8_bf16 v[0:15], v[68:69], v[40:41], v[0:15]
	v_lshrrev_b32_e32 v68, 16, v80
	v_lshrrev_b32_e32 v69, 16, v78
	v_cndmask_b32_e64 v68, v100, v68, s[66:67]
	v_cndmask_b32_e64 v77, v100, v69, s[68:69]
	v_cndmask_b32_e64 v69, v100, v76, s[12:13]
	v_perm_b32 v69, v75, v69, s73
	v_perm_b32 v68, v77, v68, s73
	s_nop 1
	v_mfma_f32_32x32x8_bf16 v[0:15], v[68:69], v[42:43], v[0:15]
	v_lshrrev_b32_e32 v68, 16, v74
	v_lshrrev_b32_e32 v69, 16, v72
	v_lshrrev_b32_e32 v72, 16, v73
	v_cndmask_b32_e64 v68, v100, v68, s[4:5]
	v_cndmask_b32_e64 v73, v100, v69, s[0:1]
	v_cndmask_b32_e64 v69, v100, v72, s[2:3]
	v_perm_b32 v69, v37, v69, s73
	v_perm_b32 v68, v73, v68, s73
	v_ashrrev_i32_e32 v37, 31, v36
	s_nop 0
	v_mfma_f32_32x32x8_bf16 v[0:15], v[68:69], v[44:45], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[46:47], v[54:55], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[48:49], v[56:57], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[50:51], v[58:59], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[52:53], v[60:61], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[62:63], v[38:39], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[64:65], v[40:41], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[66:67], v[42:43], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[70:71], v[44:45], v[0:15]
	s_nop 10
	v_cmp_o_f32_e32 vcc, v1, v1
	v_cmp_o_f32_e64 s[0:1], v0, v0
	v_cmp_o_f32_e64 s[2:3], v2, v2
	v_cmp_o_f32_e64 s[4:5], v3, v3
	v_cmp_o_f32_e64 s[12:13], v4, v4
	v_cmp_o_f32_e64 s[14:15], v5, v5
	v_cmp_o_f32_e64 s[16:17], v6, v6
	v_cmp_o_f32_e64 s[18:19], v7, v7
	v_cmp_o_f32_e64 s[20:21], v8, v8
	v_cmp_o_f32_e64 s[22:23], v9, v9
	v_cmp_o_f32_e64 s[24:25], v10, v10
	v_cmp_o_f32_e64 s[26:27], v11, v11
	v_cmp_o_f32_e64 s[28:29], v12, v12
	v_cmp_o_f32_e64 s[30:31], v13, v13
	v_cmp_o_f32_e64 s[34:35], v14, v14
	v_cmp_o_f32_e64 s[36:37], v15, v15
	v_cndmask_b32_e64 v0, 0, v0, s[0:1]
	v_cndmask_b32_e32 v1, 0, v1, vcc
	v_cndmask_b32_e64 v2, 0, v2, s[2:3]
	v_cndmask_b32_e64 v3, 0, v3, s[4:5]
	v_cndmask_b32_e64 v4, 0, v4, s[12:13]
	v_cndmask_b32_e64 v5, 0, v5, s[14:15]
	v_cndmask_b32_e64 v6, 0, v6, s[16:17]
	v_cndmask_b32_e64 v7, 0, v7, s[18:19]
	v_cndmask_b32_e64 v8, 0, v8, s[20:21]
	v_cndmask_b32_e64 v9, 0, v9, s[22:23]
	v_cndmask_b32_e64 v10, 0, v10, s[24:25]
	v_cndmask_b32_e64 v11, 0, v11, s[26:27]
	v_cndmask_b32_e64 v12, 0, v12, s[28:29]
	v_cndmask_b32_e64 v13, 0, v13, s[30:31]
	v_cndmask_b32_e64 v14, 0, v14, s[34:35]
	v_cndmask_b32_e64 v15, 0, v15, s[36:37]
	s_nop 1
	v_mfma_f32_32x32x8_bf16 v[0:15], v[46:47], v[38:39], v[0:15]
	v_lshl_add_u64 v[38:39], v[36:37], 2, v[34:35]
	v_add_u32_e32 v36, s71, v36
	v_mfma_f32_32x32x8_bf16 v[0:15], v[48:49], v[40:41], v[0:15]
	global_load_dwordx4 v[38:41], v[38:39], off
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b128 v94, v[112:115]
	s_waitcnt vmcnt(0)
	ds_write_b128 v95, v[38:41] offset:4096
	v_mfma_f32_32x32x8_bf16 v[0:15], v[50:51], v[42:43], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[52:53], v[44:45], v[0:15]
	s_nop 10
	v_pk_add_f32 v[24:25], v[24:25], v[0:1]
	v_pk_add_f32 v[22:23], v[22:23], v[2:3]
	v_pk_add_f32 v[16:17], v[16:17], v[4:5]
	v_pk_add_f32 v[20:21], v[20:21], v[6:7]
	v_pk_add_f32 v[26:27], v[26:27], v[8:9]
	v_pk_add_f32 v[28:29], v[28:29], v[10:11]
	v_pk_add_f32 v[30:31], v[30:31], v[12:13]
	v_pk_add_f32 v[18:19], v[18:19], v[14:15]
	s_cbranch_scc1 .LBB0_11
	s_branch .LBB0_13
.LBB0_12:
	v_mov_b32_e32 v25, 0
	v_mov_b32_e32 v24, 0
	v_mov_b32_e32 v23, 0
	v_mov_b32_e32 v22, 0
	v_mov_b32_e32 v17, 0
	v_mov_b32_e32 v16, 0
	v_mov_b32_e32 v21, 0
	v_mov_b32_e32 v20, 0
	v_mov_b32_e32 v27, 0
	v_mov_b32_e32 v26, 0
	v_mov_b32_e32 v29, 0
	v_mov_b32_e32 v28, 0
	v_mov_b32_e32 v31, 0
	v_mov_b32_e32 v30, 0
	v_mov_b32_e32 v19, 0
	v_mov_b32_e32 v18, 0
.LBB0_13:
	v_add_u32_e32 v0, 0, v91
	v_add_u32_e32 v1, 0, v90
	v_add_u32_e32 v12, 0, v92
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b128 v[4:7], v0
	ds_read_b128 v[8:11], v1
	ds_read_b128 v[0:3], v93
	ds_read_b128 v[12:15], v12
	v_add3_u32 v32, 0, v89, v88
	v_add_u32_e32 v33, 0x1000, v32
	ds_read2_b32 v[54:55], v33 offset1:32
	ds_read2_b32 v[56:57], v33 offset0:64 offset1:96
	v_add_u32_e32 v33, 0x1400, v32
	ds_read2_b32 v[52:53], v33 offset1:32
	ds_read2_b32 v[58:59], v33 offset0:64 offset1:96
	v_add_u32_e32 v33, 0x1800, v32
	v_mov_b32_e32 v65, 1
	ds_read2_b32 v[50:51], v33 offset1:32
	ds_read2_b32 v[60:61], v33 offset0:64 offset1:96
	v_add_u32_e32 v32, 0x1c00, v32
	s_waitcnt lgkmcnt(7)
	v_and_b32_sdwa v33, v0, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	s_movk_i32 s4, 0x7fff
	ds_read2_b32 v[48:49], v32 offset1:32
	ds_read2_b32 v[62:63], v32 offset0:64 offset1:96
	v_and_b32_sdwa v32, v1, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v33, v0, v33, s4
	v_add3_u32 v32, v1, v32, s4
	v_lshrrev_b32_e32 v33, 16, v33
	v_mov_b32_e32 v64, 0x7fff
	v_cmp_o_f32_e32 vcc, v0, v0
	v_lshrrev_b32_e32 v32, 16, v32
	s_mov_b32 s3, 0x5040100
	v_cndmask_b32_e32 v33, v64, v33, vcc
	v_cmp_o_f32_e32 vcc, v1, v1
	v_and_b32_sdwa v34, v2, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v34, v2, v34, s4
	v_cndmask_b32_e32 v32, v64, v32, vcc
	v_perm_b32 v32, v32, v33, s3
	v_and_b32_sdwa v33, v3, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v33, v3, v33, s4
	v_lshrrev_b32_e32 v34, 16, v34
	v_cmp_o_f32_e32 vcc, v2, v2
	v_lshrrev_b32_e32 v33, 16, v33
	v_and_b32_sdwa v35, v4, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v34, v64, v34, vcc
	v_cmp_o_f32_e32 vcc, v3, v3
	v_add3_u32 v35, v4, v35, s4
	v_lshrrev_b32_e32 v35, 16, v35
	v_cndmask_b32_e32 v33, v64, v33, vcc
	v_perm_b32 v33, v33, v34, s3
	v_and_b32_sdwa v34, v5, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v34, v5, v34, s4
	v_cmp_o_f32_e32 vcc, v4, v4
	v_lshrrev_b32_e32 v34, 16, v34
	v_and_b32_sdwa v36, v6, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v35, v64, v35, vcc
	v_cmp_o_f32_e32 vcc, v5, v5
	v_add3_u32 v36, v6, v36, s4
	v_lshrrev_b32_e32 v36, 16, v36
	v_cndmask_b32_e32 v34, v64, v34, vcc
	v_perm_b32 v34, v34, v35, s3
	v_and_b32_sdwa v35, v7, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v35, v7, v35, s4
	v_cmp_o_f32_e32 vcc, v6, v6
	v_lshrrev_b32_e32 v35, 16, v35
	v_and_b32_sdwa v37, v8, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v36, v64, v36, vcc
	v_cmp_o_f32_e32 vcc, v7, v7
	v_add3_u32 v37, v8, v37, s4
	v_lshrrev_b32_e32 v37, 16, v37
	v_cndmask_b32_e32 v35, v64, v35, vcc
	v_perm_b32 v35, v35, v36, s3
	v_and_b32_sdwa v36, v9, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v36, v9, v36, s4
	v_cmp_o_f32_e32 vcc, v8, v8
	v_lshrrev_b32_e32 v36, 16, v36
	v_and_b32_sdwa v38, v10, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v37, v64, v37, vcc
	v_cmp_o_f32_e32 vcc, v9, v9
	v_add3_u32 v38, v10, v38, s4
	v_lshrrev_b32_e32 v38, 16, v38
	v_cndmask_b32_e32 v36, v64, v36, vcc
	v_perm_b32 v36, v36, v37, s3
	v_and_b32_sdwa v37, v11, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v37, v11, v37, s4
	v_cmp_o_f32_e32 vcc, v10, v10
	v_lshrrev_b32_e32 v37, 16, v37
	s_waitcnt lgkmcnt(8)
	v_and_b32_sdwa v39, v12, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v38, v64, v38, vcc
	v_cmp_o_f32_e32 vcc, v11, v11
	v_add3_u32 v39, v12, v39, s4
	v_lshrrev_b32_e32 v39, 16, v39
	v_cndmask_b32_e32 v37, v64, v37, vcc
	v_perm_b32 v37, v37, v38, s3
	v_and_b32_sdwa v38, v13, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v38, v13, v38, s4
	v_cmp_o_f32_e32 vcc, v12, v12
	v_lshrrev_b32_e32 v38, 16, v38
	v_and_b32_sdwa v40, v14, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v39, v64, v39, vcc
	v_cmp_o_f32_e32 vcc, v13, v13
	v_add3_u32 v40, v14, v40, s4
	v_lshrrev_b32_e32 v40, 16, v40
	v_cndmask_b32_e32 v38, v64, v38, vcc
	v_perm_b32 v38, v38, v39, s3
	v_and_b32_sdwa v39, v15, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v39, v15, v39, s4
	v_cmp_o_f32_e32 vcc, v14, v14
	v_lshrrev_b32_e32 v39, 16, v39
	s_waitcnt lgkmcnt(7)
	v_and_b32_sdwa v41, v54, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v40, v64, v40, vcc
	v_cmp_o_f32_e32 vcc, v15, v15
	v_add3_u32 v41, v54, v41, s4
	v_lshrrev_b32_e32 v41, 16, v41
	v_cndmask_b32_e32 v39, v64, v39, vcc
	v_perm_b32 v39, v39, v40, s3
	v_and_b32_sdwa v40, v55, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v40, v55, v40, s4
	v_cmp_o_f32_e32 vcc, v54, v54
	v_lshrrev_b32_e32 v40, 16, v40
	s_waitcnt lgkmcnt(6)
	v_and_b32_sdwa v42, v56, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v41, v64, v41, vcc
	v_cmp_o_f32_e32 vcc, v55, v55
	v_add3_u32 v42, v56, v42, s4
	v_lshrrev_b32_e32 v42, 16, v42
	v_cndmask_b32_e32 v40, v64, v40, vcc
	v_perm_b32 v40, v40, v41, s3
	v_and_b32_sdwa v41, v57, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v41, v57, v41, s4
	v_cmp_o_f32_e32 vcc, v56, v56
	v_lshrrev_b32_e32 v41, 16, v41
	s_waitcnt lgkmcnt(5)
	v_and_b32_sdwa v43, v52, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v42, v64, v42, vcc
	v_cmp_o_f32_e32 vcc, v57, v57
	v_add3_u32 v43, v52, v43, s4
	v_lshrrev_b32_e32 v43, 16, v43
	v_cndmask_b32_e32 v41, v64, v41, vcc
	v_perm_b32 v41, v41, v42, s3
	v_and_b32_sdwa v42, v53, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v42, v53, v42, s4
	v_cmp_o_f32_e32 vcc, v52, v52
	v_lshrrev_b32_e32 v42, 16, v42
	s_waitcnt lgkmcnt(4)
	v_and_b32_sdwa v44, v58, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v43, v64, v43, vcc
	v_cmp_o_f32_e32 vcc, v53, v53
	v_add3_u32 v44, v58, v44, s4
	v_lshrrev_b32_e32 v44, 16, v44
	v_cndmask_b32_e32 v42, v64, v42, vcc
	v_perm_b32 v42, v42, v43, s3
	v_and_b32_sdwa v43, v59, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v43, v59, v43, s4
	v_cmp_o_f32_e32 vcc, v58, v58
	v_lshrrev_b32_e32 v43, 16, v43
	s_waitcnt lgkmcnt(3)
	v_and_b32_sdwa v45, v50, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v44, v64, v44, vcc
	v_cmp_o_f32_e32 vcc, v59, v59
	v_add3_u32 v45, v50, v45, s4
	v_lshrrev_b32_e32 v45, 16, v45
	v_cndmask_b32_e32 v43, v64, v43, vcc
	v_perm_b32 v43, v43, v44, s3
	v_and_b32_sdwa v44, v51, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v44, v51, v44, s4
	v_cmp_o_f32_e32 vcc, v50, v50
	v_lshrrev_b32_e32 v44, 16, v44
	s_waitcnt lgkmcnt(2)
	v_and_b32_sdwa v46, v60, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v45, v64, v45, vcc
	v_cmp_o_f32_e32 vcc, v51, v51
	v_add3_u32 v46, v60, v46, s4
	v_lshrrev_b32_e32 v46, 16, v46
	v_cndmask_b32_e32 v44, v64, v44, vcc
	v_perm_b32 v44, v44, v45, s3
	v_and_b32_sdwa v45, v61, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v45, v61, v45, s4
	v_cmp_o_f32_e32 vcc, v60, v60
	v_lshrrev_b32_e32 v45, 16, v45
	s_waitcnt lgkmcnt(1)
	v_and_b32_sdwa v47, v48, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v46, v64, v46, vcc
	v_cmp_o_f32_e32 vcc, v61, v61
	v_add3_u32 v47, v48, v47, s4
	v_lshrrev_b32_e32 v47, 16, v47
	v_cndmask_b32_e32 v45, v64, v45, vcc
	v_perm_b32 v45, v45, v46, s3
	v_and_b32_sdwa v46, v49, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v46, v49, v46, s4
	v_cmp_o_f32_e32 vcc, v48, v48
	v_lshrrev_b32_e32 v46, 16, v46
	s_waitcnt lgkmcnt(0)
	v_and_b32_sdwa v66, v62, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v47, v64, v47, vcc
	v_cmp_o_f32_e32 vcc, v49, v49
	v_add3_u32 v66, v62, v66, s4
	s_lshr_b32 s2, s33, 6
	v_cndmask_b32_e32 v46, v64, v46, vcc
	v_perm_b32 v46, v46, v47, s3
	v_and_b32_sdwa v47, v63, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cmp_o_f32_e32 vcc, v62, v62
	s_add_i32 s10, s10, 31
	v_add3_u32 v47, v63, v47, s4
	v_cndmask_b32_sdwa v66, v64, v66, vcc dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:WORD_1
	v_cmp_o_f32_e32 vcc, v63, v63
	s_cmp_gt_i32 s10, 31
	s_cselect_b64 s[0:1], -1, 0
	v_cndmask_b32_sdwa v47, v64, v47, vcc dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:WORD_1
	s_cmp_lt_i32 s10, 32
	v_perm_b32 v47, v47, v66, s3
	s_cbranch_scc1 .LBB0_15
	v_and_b32_e32 v67, 0xffff0000, v47
	v_lshlrev_b32_e32 v66, 16, v47
	v_pk_add_f32 v[62:63], v[62:63], v[66:67] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_e32 v69, 0xffff0000, v45
	v_and_b32_sdwa v67, v62, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v66, v63, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v67, v62, v67, s4
	v_add3_u32 v66, v63, v66, s4
	v_lshrrev_b32_e32 v67, 16, v67
	v_cmp_o_f32_e32 vcc, v62, v62
	v_lshrrev_b32_e32 v66, 16, v66
	v_lshlrev_b32_e32 v68, 16, v45
	v_cndmask_b32_e32 v70, v64, v67, vcc
	v_cmp_o_f32_e32 vcc, v63, v63
	v_pk_add_f32 v[60:61], v[60:61], v[68:69] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_e32 v73, 0xffff0000, v43
	v_cndmask_b32_e32 v71, v64, v66, vcc
	v_lshlrev_b32_e32 v67, 16, v71
	v_lshlrev_b32_e32 v66, 16, v70
	v_pk_add_f32 v[62:63], v[62:63], v[66:67] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v69, v60, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v67, v62, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v66, v63, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v67, v62, v67, s4
	v_add3_u32 v66, v63, v66, s4
	v_lshrrev_b32_e32 v67, 16, v67
	v_cmp_o_f32_e32 vcc, v62, v62
	v_lshrrev_b32_e32 v66, 16, v66
	v_and_b32_sdwa v68, v61, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v62, v64, v67, vcc
	v_cmp_o_f32_e32 vcc, v63, v63
	v_and_b32_e32 v67, 0xffff0000, v46
	v_add3_u32 v69, v60, v69, s4
	v_cndmask_b32_e32 v63, v64, v66, vcc
	v_lshlrev_b32_e32 v66, 16, v46
	v_pk_add_f32 v[48:49], v[48:49], v[66:67] neg_lo:[0,1] neg_hi:[0,1]
	v_add3_u32 v68, v61, v68, s4
	v_and_b32_sdwa v67, v48, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v66, v49, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v67, v48, v67, s4
	v_add3_u32 v66, v49, v66, s4
	v_lshrrev_b32_e32 v67, 16, v67
	v_cmp_o_f32_e32 vcc, v48, v48
	v_lshrrev_b32_e32 v66, 16, v66
	v_lshrrev_b32_e32 v69, 16, v69
	v_cndmask_b32_e32 v90, v64, v67, vcc
	v_cmp_o_f32_e32 vcc, v49, v49
	v_lshrrev_b32_e32 v68, 16, v68
	v_lshlrev_b32_e32 v72, 16, v43
	v_cndmask_b32_e32 v91, v64, v66, vcc
	v_cmp_o_f32_e32 vcc, v60, v60
	v_pk_add_f32 v[58:59], v[58:59], v[72:73] neg_lo:[0,1] neg_hi:[0,1]
	v_perm_b32 v71, v71, v70, s3
	v_cndmask_b32_e32 v88, v64, v69, vcc
	v_cmp_o_f32_e32 vcc, v61, v61
	v_and_b32_sdwa v73, v58, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v72, v59, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v89, v64, v68, vcc
	v_lshlrev_b32_e32 v69, 16, v89
	v_lshlrev_b32_e32 v68, 16, v88
	v_pk_add_f32 v[60:61], v[60:61], v[68:69] neg_lo:[0,1] neg_hi:[0,1]
	v_add3_u32 v73, v58, v73, s4
	v_and_b32_sdwa v69, v60, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v68, v61, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v69, v60, v69, s4
	v_add3_u32 v68, v61, v68, s4
	v_lshrrev_b32_e32 v69, 16, v69
	v_cmp_o_f32_e32 vcc, v60, v60
	v_lshrrev_b32_e32 v68, 16, v68
	v_add3_u32 v72, v59, v72, s4
	v_cndmask_b32_e32 v60, v64, v69, vcc
	v_cmp_o_f32_e32 vcc, v61, v61
	v_and_b32_e32 v69, 0xffff0000, v44
	v_lshrrev_b32_e32 v73, 16, v73
	v_cndmask_b32_e32 v61, v64, v68, vcc
	v_lshlrev_b32_e32 v68, 16, v44
	v_pk_add_f32 v[50:51], v[50:51], v[68:69] neg_lo:[0,1] neg_hi:[0,1]
	v_lshrrev_b32_e32 v72, 16, v72
	v_and_b32_sdwa v69, v50, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v68, v51, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v69, v50, v69, s4
	v_add3_u32 v68, v51, v68, s4
	v_lshrrev_b32_e32 v69, 16, v69
	v_cmp_o_f32_e32 vcc, v50, v50
	v_lshrrev_b32_e32 v68, 16, v68
	v_perm_b32 v70, v91, v90, s3
	v_cndmask_b32_e32 v92, v64, v69, vcc
	v_cmp_o_f32_e32 vcc, v51, v51
	v_lshlrev_b32_e32 v67, 16, v91
	v_lshlrev_b32_e32 v66, 16, v90
	v_cndmask_b32_e32 v93, v64, v68, vcc
	v_cmp_o_f32_e32 vcc, v58, v58
	v_lshlrev_b32_e32 v69, 16, v93
	v_lshlrev_b32_e32 v68, 16, v92
	v_cndmask_b32_e32 v82, v64, v73, vcc
	v_cmp_o_f32_e32 vcc, v59, v59
	v_pk_add_f32 v[48:49], v[48:49], v[66:67] neg_lo:[0,1] neg_hi:[0,1]
	v_pk_add_f32 v[50:51], v[50:51], v[68:69] neg_lo:[0,1] neg_hi:[0,1]
	v_cndmask_b32_e32 v83, v64, v72, vcc
	v_lshlrev_b32_e32 v73, 16, v83
	v_lshlrev_b32_e32 v72, 16, v82
	v_pk_add_f32 v[58:59], v[58:59], v[72:73] neg_lo:[0,1] neg_hi:[0,1]
	v_and_b32_sdwa v66, v49, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v73, v58, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v73, v58, v73, s4
	v_and_b32_sdwa v72, v59, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_lshrrev_b32_e32 v73, 16, v73
	v_cmp_o_f32_e32 vcc, v58, v58
	v_add3_u32 v72, v59, v72, s4
	v_lshlrev_b32_e32 v58, 16, v42
	v_cndmask_b32_e32 v94, v64, v73, vcc
	v_cmp_o_f32_e32 vcc, v59, v59
	v_and_b32_e32 v59, 0xffff0000, v42
	v_pk_add_f32 v[52:53], v[52:53], v[58:59] neg_lo:[0,1] neg_hi:[0,1]
	v_lshrrev_b32_e32 v72, 16, v72
	v_and_b32_sdwa v59, v52, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v58, v53, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v59, v52, v59, s4
	v_cndmask_b32_e32 v95, v64, v72, vcc
	v_add3_u32 v58, v53, v58, s4
	v_lshrrev_b32_e32 v59, 16, v59
	v_cmp_o_f32_e32 vcc, v52, v52
	v_lshrrev_b32_e32 v58, 16, v58
	v_and_b32_sdwa v67, v48, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v84, v64, v59, vcc
	v_cmp_o_f32_e32 vcc, v53, v53
	v_and_b32_sdwa v68, v51, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v69, v50, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_cndmask_b32_e32 v85, v64, v58, vcc
	v_lshlrev_b32_e32 v59, 16, v85
	v_lshlrev_b32_e32 v58, 16, v84
	v_pk_add_f32 v[52:53], v[52:53], v[58:59] neg_lo:[0,1] neg_hi:[0,1]
	v_add3_u32 v69, v50, v69, s4
	v_and_b32_sdwa v58, v53, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v59, v52, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v96, v53, v58, s4
	v_add3_u32 v97, v52, v59, s4
	v_and_b32_e32 v59, 0xffff0000, v41
	v_lshlrev_b32_e32 v58, 16, v41
	v_pk_add_f32 v[56:57], v[56:57], v[58:59] neg_lo:[0,1] neg_hi:[0,1]
	v_add3_u32 v68, v51, v68, s4
	v_and_b32_sdwa v59, v56, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v58, v57, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v59, v56, v59, s4
	v_add3_u32 v58, v57, v58, s4
	v_lshrrev_b32_e32 v59, 16, v59
	v_cmp_o_f32_e32 vcc, v56, v56
	v_lshrrev_b32_e32 v58, 16, v58
	v_add3_u32 v67, v48, v67, s4
	v_cndmask_b32_e32 v78, v64, v59, vcc
	v_cmp_o_f32_e32 vcc, v57, v57
	v_add3_u32 v66, v49, v66, s4
	s_nop 0
	v_cndmask_b32_e32 v79, v64, v58, vcc
	v_lshlrev_b32_e32 v59, 16, v79
	v_lshlrev_b32_e32 v58, 16, v78
	v_pk_add_f32 v[56:57], v[56:57], v[58:59] neg_lo:[0,1] neg_hi:[0,1]
	v_perm_b32 v79, v79, v78, s3
	v_and_b32_sdwa v59, v56, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v59, v56, v59, s4
	v_and_b32_sdwa v58, v57, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_lshrrev_b32_e32 v59, 16, v59
	v_cmp_o_f32_e32 vcc, v56, v56
	v_add3_u32 v58, v57, v58, s4
	v_lshlrev_b32_e32 v56, 16, v40
	v_cndmask_b32_e32 v98, v64, v59, vcc
	v_cmp_o_f32_e32 vcc, v57, v57
	v_and_b32_e32 v57, 0xffff0000, v40
	v_pk_add_f32 v[54:55], v[54:55], v[56:57] neg_lo:[0,1] neg_hi:[0,1]
	v_lshrrev_b32_e32 v58, 16, v58
	v_and_b32_sdwa v57, v54, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v56, v55, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v57, v54, v57, s4
	v_cndmask_b32_e32 v99, v64, v58, vcc
	v_add3_u32 v56, v55, v56, s4
	v_lshrrev_b32_e32 v57, 16, v57
	v_cmp_o_f32_e32 vcc, v54, v54
	v_lshrrev_b32_e32 v56, 16, v56
	s_nop 0
	v_cndmask_b32_e32 v80, v64, v57, vcc
	v_cmp_o_f32_e32 vcc, v55, v55
	s_nop 1
	v_cndmask_b32_e32 v81, v64, v56, vcc
	v_lshlrev_b32_e32 v57, 16, v81
	v_lshlrev_b32_e32 v56, 16, v80
	v_pk_add_f32 v[54:55], v[54:55], v[56:57] neg_lo:[0,1] neg_hi:[0,1]
	v_perm_b32 v78, v81, v80, s3
	v_and_b32_sdwa v57, v54, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v56, v55, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v57, v54, v57, s4
	v_add3_u32 v56, v55, v56, s4
	v_lshrrev_b32_e32 v57, 16, v57
	v_cmp_o_f32_e32 vcc, v54, v54
	v_lshrrev_b32_e32 v100, 16, v56
	v_lshlrev_b32_e32 v56, 16, v39
	v_cndmask_b32_e32 v54, v64, v57, vcc
	v_and_b32_e32 v57, 0xffff0000, v39
	v_pk_add_f32 v[14:15], v[14:15], v[56:57] neg_lo:[0,1] neg_hi:[0,1]
	s_nop 0
	v_and_b32_sdwa v57, v14, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v56, v15, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v57, v14, v57, s4
	v_add3_u32 v56, v15, v56, s4
	v_lshrrev_b32_e32 v57, 16, v57
	v_cmp_o_f32_e32 vcc, v14, v14
	v_lshrrev_b32_e32 v56, 16, v56
	s_nop 0
	v_cndmask_b32_e32 v101, v64, v57, vcc
	v_cmp_o_f32_e32 vcc, v15, v15
	s_nop 1
	v_cndmask_b32_e32 v102, v64, v56, vcc
	v_lshlrev_b32_e32 v57, 16, v102
	v_lshlrev_b32_e32 v56, 16, v101
	v_pk_add_f32 v[14:15], v[14:15], v[56:57] neg_lo:[0,1] neg_hi:[0,1]
	v_perm_b32 v91, v102, v101, s3
	v_and_b32_sdwa v57, v14, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v57, v14, v57, s4
	v_and_b32_sdwa v56, v15, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_lshrrev_b32_e32 v57, 16, v57
	v_cmp_o_f32_e32 vcc, v14, v14
	v_add3_u32 v56, v15, v56, s4
	v_lshlrev_b32_e32 v14, 16, v38
	v_cndmask_b32_e32 v103, v64, v57, vcc
	v_cmp_o_f32_e32 vcc, v15, v15
	v_and_b32_e32 v15, 0xffff0000, v38
	v_pk_add_f32 v[12:13], v[12:13], v[14:15] neg_lo:[0,1] neg_hi:[0,1]
	v_lshrrev_b32_e32 v56, 16, v56
	v_and_b32_sdwa v15, v12, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v14, v13, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v15, v12, v15, s4
	v_cndmask_b32_e32 v104, v64, v56, vcc
	v_add3_u32 v14, v13, v14, s4
	v_lshrrev_b32_e32 v15, 16, v15
	v_cmp_o_f32_e32 vcc, v12, v12
	v_lshrrev_b32_e32 v14, 16, v14
	s_nop 0
	v_cndmask_b32_e32 v105, v64, v15, vcc
	v_cmp_o_f32_e32 vcc, v13, v13
	s_nop 1
	v_cndmask_b32_e32 v106, v64, v14, vcc
	v_lshlrev_b32_e32 v15, 16, v106
	v_lshlrev_b32_e32 v14, 16, v105
	v_pk_add_f32 v[56:57], v[12:13], v[14:15] neg_lo:[0,1] neg_hi:[0,1]
	v_perm_b32 v90, v106, v105, s3
	v_and_b32_sdwa v12, v57, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v13, v56, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v107, v57, v12, s4
	v_add3_u32 v12, v56, v13, s4
	v_lshrrev_b32_e32 v108, 16, v12
	v_and_b32_e32 v13, 0xffff0000, v37
	v_lshlrev_b32_e32 v12, 16, v37
	v_pk_add_f32 v[10:11], v[10:11], v[12:13] neg_lo:[0,1] neg_hi:[0,1]
	s_nop 0
	v_and_b32_sdwa v13, v10, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v12, v11, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v13, v10, v13, s4
	v_add3_u32 v12, v11, v12, s4
	v_lshrrev_b32_e32 v13, 16, v13
	v_cmp_o_f32_e32 vcc, v10, v10
	v_lshrrev_b32_e32 v12, 16, v12
	s_nop 0
	v_cndmask_b32_e32 v109, v64, v13, vcc
	v_cmp_o_f32_e32 vcc, v11, v11
	s_nop 1
	v_cndmask_b32_e32 v110, v64, v12, vcc
	v_lshlrev_b32_e32 v13, 16, v110
	v_lshlrev_b32_e32 v12, 16, v109
	v_pk_add_f32 v[10:11], v[10:11], v[12:13] neg_lo:[0,1] neg_hi:[0,1]
	s_nop 0
	v_and_b32_sdwa v13, v10, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v13, v10, v13, s4
	v_and_b32_sdwa v12, v11, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_lshrrev_b32_e32 v13, 16, v13
	v_cmp_o_f32_e32 vcc, v10, v10
	v_add3_u32 v12, v11, v12, s4
	v_lshlrev_b32_e32 v10, 16, v36
	v_cndmask_b32_e32 v111, v64, v13, vcc
	v_cmp_o_f32_e32 vcc, v11, v11
	v_and_b32_e32 v11, 0xffff0000, v36
	v_pk_add_f32 v[8:9], v[8:9], v[10:11] neg_lo:[0,1] neg_hi:[0,1]
	v_lshrrev_b32_e32 v12, 16, v12
	v_and_b32_sdwa v11, v8, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v10, v9, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v11, v8, v11, s4
	v_cndmask_b32_e32 v112, v64, v12, vcc
	v_add3_u32 v10, v9, v10, s4
	v_lshrrev_b32_e32 v11, 16, v11
	v_cmp_o_f32_e32 vcc, v8, v8
	v_lshrrev_b32_e32 v10, 16, v10
	s_nop 0
	v_cndmask_b32_e32 v113, v64, v11, vcc
	v_cmp_o_f32_e32 vcc, v9, v9
	s_nop 1
	v_cndmask_b32_e32 v114, v64, v10, vcc
	v_lshlrev_b32_e32 v11, 16, v114
	v_lshlrev_b32_e32 v10, 16, v113
	v_pk_add_f32 v[58:59], v[8:9], v[10:11] neg_lo:[0,1] neg_hi:[0,1]
	s_nop 0
	v_and_b32_sdwa v8, v59, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v9, v58, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v115, v59, v8, s4
	v_add3_u32 v8, v58, v9, s4
	v_lshrrev_b32_e32 v116, 16, v8
	v_and_b32_e32 v9, 0xffff0000, v35
	v_lshlrev_b32_e32 v8, 16, v35
	v_pk_add_f32 v[6:7], v[6:7], v[8:9] neg_lo:[0,1] neg_hi:[0,1]
	s_nop 0
	v_and_b32_sdwa v9, v6, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v8, v7, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v9, v6, v9, s4
	v_add3_u32 v8, v7, v8, s4
	v_lshrrev_b32_e32 v9, 16, v9
	v_cmp_o_f32_e32 vcc, v6, v6
	v_lshrrev_b32_e32 v8, 16, v8
	s_nop 0
	v_cndmask_b32_e32 v117, v64, v9, vcc
	v_cmp_o_f32_e32 vcc, v7, v7
	s_nop 1
	v_cndmask_b32_e32 v118, v64, v8, vcc
	v_lshlrev_b32_e32 v9, 16, v118
	v_lshlrev_b32_e32 v8, 16, v117
	v_pk_add_f32 v[6:7], v[6:7], v[8:9] neg_lo:[0,1] neg_hi:[0,1]
	s_nop 0
	v_and_b32_sdwa v9, v6, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v9, v6, v9, s4
	v_and_b32_sdwa v8, v7, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_lshrrev_b32_e32 v9, 16, v9
	v_cmp_o_f32_e32 vcc, v6, v6
	v_add3_u32 v8, v7, v8, s4
	v_lshlrev_b32_e32 v6, 16, v34
	v_cndmask_b32_e32 v119, v64, v9, vcc
	v_cmp_o_f32_e32 vcc, v7, v7
	v_and_b32_e32 v7, 0xffff0000, v34
	v_pk_add_f32 v[4:5], v[4:5], v[6:7] neg_lo:[0,1] neg_hi:[0,1]
	v_lshrrev_b32_e32 v8, 16, v8
	v_and_b32_sdwa v7, v4, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v6, v5, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v7, v4, v7, s4
	v_cndmask_b32_e32 v120, v64, v8, vcc
	v_add3_u32 v6, v5, v6, s4
	v_lshrrev_b32_e32 v7, 16, v7
	v_cmp_o_f32_e32 vcc, v4, v4
	v_lshrrev_b32_e32 v6, 16, v6
	s_nop 0
	v_cndmask_b32_e32 v121, v64, v7, vcc
	v_cmp_o_f32_e32 vcc, v5, v5
	s_nop 1
	v_cndmask_b32_e32 v122, v64, v6, vcc
	v_lshlrev_b32_e32 v7, 16, v122
	v_lshlrev_b32_e32 v6, 16, v121
	v_pk_add_f32 v[72:73], v[4:5], v[6:7] neg_lo:[0,1] neg_hi:[0,1]
	s_nop 0
	v_and_b32_sdwa v4, v73, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v5, v72, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v123, v73, v4, s4
	v_add3_u32 v4, v72, v5, s4
	v_lshrrev_b32_e32 v124, 16, v4
	v_and_b32_e32 v5, 0xffff0000, v33
	v_lshlrev_b32_e32 v4, 16, v33
	v_pk_add_f32 v[2:3], v[2:3], v[4:5] neg_lo:[0,1] neg_hi:[0,1]
	s_nop 0
	v_and_b32_sdwa v5, v2, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v4, v3, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v5, v2, v5, s4
	v_add3_u32 v4, v3, v4, s4
	v_lshrrev_b32_e32 v5, 16, v5
	v_cmp_o_f32_e32 vcc, v2, v2
	v_lshrrev_b32_e32 v4, 16, v4
	s_nop 0
	v_cndmask_b32_e32 v6, v64, v5, vcc
	v_cmp_o_f32_e32 vcc, v3, v3
	s_nop 1
	v_cndmask_b32_e32 v7, v64, v4, vcc
	v_lshlrev_b32_e32 v5, 16, v7
	v_lshlrev_b32_e32 v4, 16, v6
	v_pk_add_f32 v[74:75], v[2:3], v[4:5] neg_lo:[0,1] neg_hi:[0,1]
	v_perm_b32 v81, v7, v6, s3
	v_and_b32_sdwa v3, v74, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v2, v75, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v3, v74, v3, s4
	v_add3_u32 v2, v75, v2, s4
	v_lshrrev_b32_e32 v3, 16, v3
	v_cmp_o_f32_e32 vcc, v74, v74
	v_lshrrev_b32_e32 v125, 16, v2
	v_lshlrev_b32_e32 v2, 16, v32
	v_cndmask_b32_e32 v126, v64, v3, vcc
	v_and_b32_e32 v3, 0xffff0000, v32
	v_pk_add_f32 v[76:77], v[0:1], v[2:3] neg_lo:[0,1] neg_hi:[0,1]
	v_perm_b32 v74, v85, v84, s3
	v_and_b32_sdwa v1, v76, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v0, v77, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v1, v76, v1, s4
	v_add3_u32 v0, v77, v0, s4
	v_lshrrev_b32_e32 v1, 16, v1
	v_cmp_o_f32_e32 vcc, v76, v76
	v_lshrrev_b32_e32 v0, 16, v0
	v_perm_b32 v85, v118, v117, s3
	v_cndmask_b32_e32 v127, v64, v1, vcc
	v_cmp_o_f32_e32 vcc, v77, v77
	v_perm_b32 v84, v122, v121, s3
	s_nop 0
	v_cndmask_b32_e32 v128, v64, v0, vcc
	v_perm_b32 v80, v128, v127, s3
	v_cmp_o_f32_e32 vcc, v75, v75
	v_perm_b32 v75, v83, v82, s3
	v_mfma_f32_32x32x8_bf16 v[0:15], v[78:79], v[80:81], 0
	v_lshlrev_b32_e32 v83, 16, v128
	v_lshlrev_b32_e32 v82, 16, v127
	v_add_f32_e64 v76, v76, -v82
	v_add_f32_e64 v77, v77, -v83
	v_perm_b32 v83, v89, v88, s3
	v_perm_b32 v82, v93, v92, s3
	v_perm_b32 v89, v110, v109, s3
	v_perm_b32 v88, v114, v113, s3
	v_mfma_f32_32x32x8_bf16 v[0:15], v[74:75], v[84:85], v[0:15]
	v_and_b32_sdwa v92, v77, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_and_b32_sdwa v65, v76, v65 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD
	v_add3_u32 v65, v76, v65, s4
	v_cndmask_b32_e32 v125, v64, v125, vcc
	v_add3_u32 v92, v77, v92, s4
	v_lshrrev_b32_e32 v65, 16, v65
	v_cmp_o_f32_e32 vcc, v76, v76
	v_mfma_f32_32x32x8_bf16 v[0:15], v[82:83], v[88:89], v[0:15]
	v_lshrrev_b32_e32 v92, 16, v92
	v_cndmask_b32_e32 v65, v64, v65, vcc
	v_cmp_o_f32_e32 vcc, v77, v77
	v_perm_b32 v77, v125, v126, s3
	s_nop 0
	v_cndmask_b32_e32 v76, v64, v92, vcc
	v_perm_b32 v76, v76, v65, s3
	v_mfma_f32_32x32x8_bf16 v[0:15], v[70:71], v[90:91], v[0:15]
	v_cmp_o_f32_e32 vcc, v72, v72
	v_lshrrev_b32_e32 v65, 16, v123
	s_nop 0
	v_cndmask_b32_e32 v72, v64, v124, vcc
	v_cmp_o_f32_e32 vcc, v73, v73
	v_perm_b32 v73, v120, v119, s3
	v_mfma_f32_32x32x8_bf16 v[0:15], v[40:41], v[76:77], v[0:15]
	v_cndmask_b32_e32 v65, v64, v65, vcc
	v_perm_b32 v72, v65, v72, s3
	v_cmp_o_f32_e32 vcc, v58, v58
	v_lshrrev_b32_e32 v65, 16, v115
	s_nop 0
	v_cndmask_b32_e32 v58, v64, v116, vcc
	v_cmp_o_f32_e32 vcc, v59, v59
	v_mfma_f32_32x32x8_bf16 v[0:15], v[42:43], v[72:73], v[0:15]
	v_perm_b32 v59, v112, v111, s3
	v_cndmask_b32_e32 v65, v64, v65, vcc
	v_perm_b32 v58, v65, v58, s3
	v_cmp_o_f32_e32 vcc, v56, v56
	s_nop 1
	v_cndmask_b32_e32 v56, v64, v108, vcc
	v_mfma_f32_32x32x8_bf16 v[0:15], v[44:45], v[58:59], v[0:15]
	v_lshrrev_b32_e32 v58, 16, v107
	v_cmp_o_f32_e32 vcc, v57, v57
	v_perm_b32 v57, v104, v103, s3
	s_nop 0
	v_cndmask_b32_e32 v58, v64, v58, vcc
	v_perm_b32 v56, v58, v56, s3
	v_cmp_o_f32_e32 vcc, v55, v55
	v_perm_b32 v55, v99, v98, s3
	v_mfma_f32_32x32x8_bf16 v[0:15], v[46:47], v[56:57], v[0:15]
	v_cndmask_b32_e32 v56, v64, v100, vcc
	v_perm_b32 v54, v56, v54, s3
	v_lshrrev_b32_e32 v56, 16, v97
	v_cmp_o_f32_e32 vcc, v52, v52
	v_lshrrev_b32_e32 v57, 16, v96
	s_nop 0
	v_cndmask_b32_e32 v52, v64, v56, vcc
	v_mfma_f32_32x32x8_bf16 v[0:15], v[54:55], v[32:33], v[0:15]
	v_cmp_o_f32_e32 vcc, v53, v53
	v_perm_b32 v53, v95, v94, s3
	v_lshrrev_b32_e32 v55, 16, v68
	v_cndmask_b32_e32 v54, v64, v57, vcc
	v_perm_b32 v52, v54, v52, s3
	v_lshrrev_b32_e32 v54, 16, v69
	v_cmp_o_f32_e32 vcc, v50, v50
	v_mfma_f32_32x32x8_bf16 v[0:15], v[52:53], v[34:35], v[0:15]
	s_nop 0
	v_cndmask_b32_e32 v50, v64, v54, vcc
	v_cmp_o_f32_e32 vcc, v51, v51
	v_perm_b32 v51, v61, v60, s3
	v_lshrrev_b32_e32 v53, 16, v66
	v_cndmask_b32_e32 v52, v64, v55, vcc
	v_perm_b32 v50, v52, v50, s3
	v_lshrrev_b32_e32 v52, 16, v67
	v_cmp_o_f32_e32 vcc, v48, v48
	v_mfma_f32_32x32x8_bf16 v[0:15], v[50:51], v[36:37], v[0:15]
	s_nop 0
	v_cndmask_b32_e32 v48, v64, v52, vcc
	v_cmp_o_f32_e32 vcc, v49, v49
	v_perm_b32 v49, v63, v62, s3
	s_nop 0
	v_cndmask_b32_e32 v50, v64, v53, vcc
	v_perm_b32 v48, v50, v48, s3
	s_nop 1
	v_mfma_f32_32x32x8_bf16 v[0:15], v[48:49], v[38:39], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[40:41], v[80:81], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[42:43], v[84:85], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[44:45], v[88:89], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[46:47], v[90:91], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[78:79], v[32:33], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[74:75], v[34:35], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[82:83], v[36:37], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[70:71], v[38:39], v[0:15]
	s_branch .LBB0_16
.LBB0_15:
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
.LBB0_16:
	s_nop 9
	v_cmp_o_f32_e32 vcc, v1, v1
	s_and_b64 s[4:5], s[0:1], exec
	s_cselect_b32 s3, 1, 0
	v_cndmask_b32_e32 v1, 0, v1, vcc
	v_cmp_o_f32_e32 vcc, v0, v0
	s_cmp_lg_u32 s3, 1
	s_nop 0
	v_cndmask_b32_e32 v0, 0, v0, vcc
	v_cmp_o_f32_e32 vcc, v3, v3
	s_nop 1
	v_cndmask_b32_e32 v3, 0, v3, vcc
	v_cmp_o_f32_e32 vcc, v2, v2
	s_nop 1
	v_cndmask_b32_e32 v2, 0, v2, vcc
	v_cmp_o_f32_e32 vcc, v5, v5
	s_nop 1
	v_cndmask_b32_e32 v5, 0, v5, vcc
	v_cmp_o_f32_e32 vcc, v4, v4
	s_nop 1
	v_cndmask_b32_e32 v4, 0, v4, vcc
	v_cmp_o_f32_e32 vcc, v7, v7
	s_nop 1
	v_cndmask_b32_e32 v7, 0, v7, vcc
	v_cmp_o_f32_e32 vcc, v6, v6
	s_nop 1
	v_cndmask_b32_e32 v6, 0, v6, vcc
	v_cmp_o_f32_e32 vcc, v9, v9
	s_nop 1
	v_cndmask_b32_e32 v9, 0, v9, vcc
	v_cmp_o_f32_e32 vcc, v8, v8
	s_nop 1
	v_cndmask_b32_e32 v8, 0, v8, vcc
	v_cmp_o_f32_e32 vcc, v11, v11
	s_nop 1
	v_cndmask_b32_e32 v11, 0, v11, vcc
	v_cmp_o_f32_e32 vcc, v10, v10
	s_nop 1
	v_cndmask_b32_e32 v10, 0, v10, vcc
	v_cmp_o_f32_e32 vcc, v13, v13
	s_nop 1
	v_cndmask_b32_e32 v13, 0, v13, vcc
	v_cmp_o_f32_e32 vcc, v12, v12
	s_nop 1
	v_cndmask_b32_e32 v12, 0, v12, vcc
	v_cmp_o_f32_e32 vcc, v15, v15
	s_nop 1
	v_cndmask_b32_e32 v15, 0, v15, vcc
	v_cmp_o_f32_e32 vcc, v14, v14
	s_nop 1
	v_cndmask_b32_e32 v14, 0, v14, vcc
	s_cbranch_scc0 .LBB0_19
	s_cmp_lg_u32 s2, 0
	s_cbranch_scc0 .LBB0_20
.LBB0_18:
	s_endpgm
.LBB0_19:
	s_nop 0
	v_mfma_f32_32x32x8_bf16 v[0:15], v[40:41], v[32:33], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[42:43], v[34:35], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[44:45], v[36:37], v[0:15]
	v_mfma_f32_32x32x8_bf16 v[0:15], v[46:47], v[38:39], v[0:15]
	s_cmp_lg_u32 s2, 0
	s_cbranch_scc1 .LBB0_18
.LBB0_20:
	v_or_b32_e32 v33, s8, v86
	v_lshrrev_b32_e32 v32, 3, v87
	v_mul_lo_u32 v34, s9, v33
	v_or_b32_e32 v32, s11, v32
	v_ashrrev_i32_e32 v35, 31, v34
	v_lshl_add_u64 v[34:35], v[34:35], 2, s[6:7]
	v_ashrrev_i32_e32 v33, 31, v32
	s_nop 1
	v_pk_add_f32 v[0:1], v[24:25], v[0:1]
	v_pk_add_f32 v[2:3], v[22:23], v[2:3]
	v_lshl_add_u64 v[32:33], v[32:33], 2, v[34:35]
	v_pk_add_f32 v[14:15], v[18:19], v[14:15]
	v_pk_add_f32 v[12:13], v[30:31], v[12:13]
	v_pk_add_f32 v[10:11], v[28:29], v[10:11]
	v_pk_add_f32 v[8:9], v[26:27], v[8:9]
	v_cndmask_b32_e64 v1, v25, v1, s[0:1]
	v_cndmask_b32_e64 v0, v24, v0, s[0:1]
	v_cndmask_b32_e64 v3, v23, v3, s[0:1]
	v_cndmask_b32_e64 v2, v22, v2, s[0:1]
	v_pk_add_f32 v[6:7], v[20:21], v[6:7]
	v_pk_add_f32 v[4:5], v[16:17], v[4:5]
	v_cndmask_b32_e64 v15, v19, v15, s[0:1]
	v_cndmask_b32_e64 v14, v18, v14, s[0:1]
	v_cndmask_b32_e64 v13, v31, v13, s[0:1]
	v_cndmask_b32_e64 v12, v30, v12, s[0:1]
	v_cndmask_b32_e64 v11, v29, v11, s[0:1]
	v_cndmask_b32_e64 v10, v28, v10, s[0:1]
	v_cndmask_b32_e64 v9, v27, v9, s[0:1]
	v_cndmask_b32_e64 v8, v26, v8, s[0:1]
	v_cndmask_b32_e64 v7, v21, v7, s[0:1]
	v_cndmask_b32_e64 v6, v20, v6, s[0:1]
	v_cndmask_b32_e64 v5, v17, v5, s[0:1]
	v_cndmask_b32_e64 v4, v16, v4, s[0:1]
	global_store_dwordx4 v[32:33], v[0:3], off
	global_store_dwordx4 v[32:33], v[4:7], off offset:32
	global_store_dwordx4 v[32:33], v[8:11], off offset:64
	global_store_dwordx4 v[32:33], v[12:15], off offset:96
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
		.amdhsa_next_free_vgpr 129
		.amdhsa_next_free_sgpr 75
		.amdhsa_accum_offset 132
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
    .sgpr_count:     81
    .sgpr_spill_count: 0
    .symbol:         gemm.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     129
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
