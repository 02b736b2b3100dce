; Triton 3.9.0, make.py: ('recovered', 'fp32', {}, (32, 32, 32), {})
	.amdgcn_target "amdgpu9.42-amd-amdhsa-unknown-gfx942"
	.amdhsa_code_object_version 5
	.text
recovered:
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
	v_and_b32_e32 v1, 63, v0
	s_and_b32 s13, s11, 0xc0
	v_or_b32_e32 v6, s13, v1
	s_lshl_b32 s8, s16, 5
	v_lshrrev_b32_e32 v7, 3, v6
	v_or_b32_e32 v2, s8, v7
	v_mul_lo_u32 v2, v2, s10
	v_and_b32_e32 v5, 7, v0
	v_ashrrev_i32_e32 v3, 31, v2
	s_cmp_gt_i32 s10, 0
	v_lshlrev_b32_e32 v4, 2, v5
	v_lshl_add_u64 v[48:49], v[2:3], 2, s[2:3]
	s_cselect_b64 s[0:1], -1, 0
	s_cmp_lt_i32 s10, 1
	v_mov_b32_e32 v3, 0
	s_cbranch_scc1 .LBB0_2
	v_lshlrev_b32_e32 v2, 2, v4
	v_lshl_add_u64 v[2:3], v[48:49], 0, v[2:3]
	global_load_dwordx4 v[8:11], v[2:3], off
	s_branch .LBB0_3
.LBB0_2:
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, v8
	v_mov_b32_e32 v10, v8
	v_mov_b32_e32 v11, v8
.LBB0_3:
	s_lshl_b32 s2, s17, 5
	s_and_b64 s[0:1], s[0:1], exec
	v_or_b32_e32 v2, s2, v4
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
	v_and_b32_e32 v54, 31, v0
	v_and_b32_e32 v55, 32, v0
	v_lshlrev_b32_e32 v0, 1, v0
	v_lshlrev_b32_e32 v6, 4, v6
	v_and_b32_e32 v0, 0x70, v0
	v_xor_b32_e32 v0, v6, v0
	s_sub_i32 s1, s10, 32
	s_mov_b32 s12, 0
	v_add_u32_e32 v59, 0, v0
	v_add_u32_e32 v60, 0, v6
	s_cmp_lt_i32 s1, 1
	v_lshlrev_b32_e32 v57, 4, v5
	v_lshrrev_b32_e32 v58, 1, v55
	v_lshlrev_b32_e32 v56, 2, v54
	s_waitcnt vmcnt(0)
	ds_write_b128 v59, v[8:11]
	ds_write_b128 v60, v[12:15] offset:4096
	s_cbranch_scc1 .LBB0_9
	v_xor_b32_e32 v0, v57, v58
	v_lshl_or_b32 v5, v54, 7, v0
	v_add_u32_e32 v0, s13, v1
	v_lshl_add_u64 v[50:51], v[2:3], 2, s[4:5]
	v_lshl_add_u32 v2, v55, 4, 0
	v_lshrrev_b32_e32 v0, 3, v0
	v_xor_b32_e32 v6, 32, v5
	v_xor_b32_e32 v7, 64, v5
	v_xor_b32_e32 v8, 0x60, v5
	v_add_u32_e32 v52, 32, v0
	v_mov_b32_e32 v0, 0
	v_add_u32_e32 v1, v2, v56
	s_lshl_b32 s3, s9, 5
	v_or_b32_e32 v61, 32, v4
	v_add_u32_e32 v62, 0, v5
	v_add_u32_e32 v63, 0, v6
	v_add_u32_e32 v64, 0, v7
	v_add_u32_e32 v65, 0, v8
	s_mov_b32 s0, 0x45800000
	v_add_u32_e32 v66, 0x1000, v1
	v_add_u32_e32 v67, 0x1400, v1
	v_add_u32_e32 v68, 0x1800, v1
	v_add_u32_e32 v69, 0x1c00, v1
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
	v_mov_b32_e32 v16, v0
	v_mov_b32_e32 v17, v0
	v_mov_b32_e32 v18, v0
	v_mov_b32_e32 v19, v0
	v_mov_b32_e32 v20, v0
	v_mov_b32_e32 v21, v0
	v_mov_b32_e32 v22, v0
	v_mov_b32_e32 v23, v0
	v_mov_b32_e32 v24, v0
	v_mov_b32_e32 v25, v0
	v_mov_b32_e32 v26, v0
	v_mov_b32_e32 v27, v0
	v_mov_b32_e32 v28, v0
	v_mov_b32_e32 v29, v0
	v_mov_b32_e32 v30, v0
	v_mov_b32_e32 v31, v0
	v_mov_b32_e32 v32, v0
	v_mov_b32_e32 v33, v0
	v_mov_b32_e32 v34, v0
	v_mov_b32_e32 v35, v0
	v_mov_b32_e32 v36, v0
	v_mov_b32_e32 v37, v0
	v_mov_b32_e32 v38, v0
	v_mov_b32_e32 v39, v0
	v_mov_b32_e32 v40, v0
	v_mov_b32_e32 v41, v0
	v_mov_b32_e32 v42, v0
	v_mov_b32_e32 v43, v0
	v_mov_b32_e32 v44, v0
	v_mov_b32_e32 v45, v0
	v_mov_b32_e32 v46, v0
	v_mov_b32_e32 v47, v0
	v_mul_lo_u32 v52, s9, v52
.LBB0_8:
	v_add_u32_e32 v70, s12, v61
	v_ashrrev_i32_e32 v71, 31, v70
	v_lshl_add_u64 v[70:71], v[70:71], 2, v[48:49]
	global_load_dwordx4 v[70:73], v[70:71], off
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b128 v[74:77], v62
	ds_read_b128 v[78:81], v63
	s_add_i32 s12, s12, 32
	s_cmp_lt_i32 s12, s1
	s_waitcnt lgkmcnt(1)
	v_cvt_f16_f32_e32 v53, v77
	v_cvt_f16_f32_e32 v84, v76
	v_cvt_f16_f32_e32 v85, v74
	v_cvt_f16_f32_e32 v86, v75
	v_cvt_f32_f16_e32 v83, v53
	v_cvt_f32_f16_e32 v82, v84
	v_pk_add_f32 v[76:77], v[76:77], v[82:83] neg_lo:[0,1] neg_hi:[0,1]
	v_fma_mix_f32 v82, -v85, 1.0, v74 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v83, -v86, 1.0, v75 op_sel_hi:[1,1,0]
	ds_read2_b32 v[74:75], v66 offset1:32
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v87, v74
	v_cvt_f16_f32_e32 v88, v75
	v_fma_mix_f32 v89, -v87, 1.0, v74 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v90, -v88, 1.0, v75 op_sel_hi:[1,1,0]
	v_pk_mul_f32 v[74:75], v[76:77], s[0:1] op_sel_hi:[1,0]
	v_pack_b32_f16 v76, v87, v88
	v_cvt_f16_f32_e32 v75, v75
	v_cvt_f16_f32_e32 v74, v74
	v_pack_b32_f16 v75, v74, v75
	v_fma_mixlo_f16 v74, v82, s0, neg(0)
	v_fma_mixhi_f16 v74, v83, s0, neg(0)
	ds_read2_b32 v[82:83], v66 offset0:64 offset1:96
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v87, v83
	v_cvt_f16_f32_e32 v88, v82
	v_pack_b32_f16 v77, v88, v87
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[16:31], v[76:77], v[74:75], v[16:31]
	v_pack_b32_f16 v75, v84, v53
	v_pack_b32_f16 v74, v85, v86
	v_cvt_f32_f16_e32 v85, v87
	v_cvt_f32_f16_e32 v84, v88
	v_add_f32_e64 v82, v82, -v84
	v_add_f32_e64 v83, v83, -v85
	v_mfma_f32_32x32x8_f16 v[32:47], v[76:77], v[74:75], v[32:47]
	v_mul_f32_e64 v76, v82, s0
	v_mul_f32_e64 v77, v83, s0
	v_cvt_f16_f32_e32 v82, v80
	v_cvt_f16_f32_e32 v53, v77
	v_cvt_f16_f32_e32 v76, v76
	v_pack_b32_f16 v77, v76, v53
	v_fma_mixlo_f16 v76, v89, s0, neg(0)
	v_fma_mixhi_f16 v76, v90, s0, neg(0)
	v_cvt_f16_f32_e32 v53, v81
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[76:77], v[74:75], v[0:15]
	v_cvt_f32_f16_e32 v75, v53
	v_cvt_f32_f16_e32 v74, v82
	ds_read2_b32 v[76:77], v67 offset1:32
	v_add_f32_e64 v74, v80, -v74
	v_add_f32_e64 v75, v81, -v75
	v_cvt_f16_f32_e32 v80, v78
	v_pk_mul_f32 v[74:75], v[74:75], s[0:1] op_sel_hi:[1,0]
	v_cvt_f16_f32_e32 v81, v79
	v_cvt_f16_f32_e32 v75, v75
	v_cvt_f16_f32_e32 v74, v74
	v_fma_mix_f32 v78, -v80, 1.0, v78 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v79, -v81, 1.0, v79 op_sel_hi:[1,1,0]
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v83, v76
	v_pack_b32_f16 v75, v74, v75
	v_fma_mixlo_f16 v74, v78, s0, neg(0)
	v_fma_mixhi_f16 v74, v79, s0, neg(0)
	ds_read2_b32 v[78:79], v67 offset0:64 offset1:96
	v_cvt_f16_f32_e32 v84, v77
	v_fma_mix_f32 v85, -v83, 1.0, v76 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v86, -v84, 1.0, v77 op_sel_hi:[1,1,0]
	v_pack_b32_f16 v76, v83, v84
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v83, v79
	v_cvt_f16_f32_e32 v84, v78
	v_pack_b32_f16 v77, v84, v83
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[16:31], v[76:77], v[74:75], v[16:31]
	v_pack_b32_f16 v74, v80, v81
	v_cvt_f32_f16_e32 v81, v83
	v_cvt_f32_f16_e32 v80, v84
	v_pack_b32_f16 v75, v82, v53
	v_add_f32_e64 v78, v78, -v80
	v_add_f32_e64 v79, v79, -v81
	v_mfma_f32_32x32x8_f16 v[32:47], v[76:77], v[74:75], v[32:47]
	v_mul_f32_e64 v76, v78, s0
	v_mul_f32_e64 v77, v79, s0
	v_cvt_f16_f32_e32 v53, v77
	v_cvt_f16_f32_e32 v76, v76
	v_pack_b32_f16 v77, v76, v53
	v_fma_mixlo_f16 v76, v85, s0, neg(0)
	v_fma_mixhi_f16 v76, v86, s0, neg(0)
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[0:15], v[76:77], v[74:75], v[0:15]
	ds_read_b128 v[74:77], v64
	ds_read_b128 v[78:81], v65
	s_waitcnt lgkmcnt(1)
	v_cvt_f16_f32_e32 v53, v77
	v_cvt_f16_f32_e32 v84, v76
	v_cvt_f16_f32_e32 v85, v74
	v_cvt_f16_f32_e32 v86, v75
	v_cvt_f32_f16_e32 v83, v53
	v_cvt_f32_f16_e32 v82, v84
	v_pk_add_f32 v[76:77], v[76:77], v[82:83] neg_lo:[0,1] neg_hi:[0,1]
	v_fma_mix_f32 v82, -v85, 1.0, v74 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v83, -v86, 1.0, v75 op_sel_hi:[1,1,0]
	ds_read2_b32 v[74:75], v68 offset1:32
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v87, v74
	v_cvt_f16_f32_e32 v88, v75
	v_fma_mix_f32 v89, -v87, 1.0, v74 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v90, -v88, 1.0, v75 op_sel_hi:[1,1,0]
	v_pk_mul_f32 v[74:75], v[76:77], s[0:1] op_sel_hi:[1,0]
	v_pack_b32_f16 v76, v87, v88
	v_cvt_f16_f32_e32 v75, v75
	v_cvt_f16_f32_e32 v74, v74
	v_pack_b32_f16 v75, v74, v75
	v_fma_mixlo_f16 v74, v82, s0, neg(0)
	v_fma_mixhi_f16 v74, v83, s0, neg(0)
	ds_read2_b32 v[82:83], v68 offset0:64 offset1:96
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v87, v83
	v_cvt_f16_f32_e32 v88, v82
	v_pack_b32_f16 v77, v88, v87
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[16:31], v[76:77], v[74:75], v[16:31]
	v_pack_b32_f16 v75, v84, v53
	v_pack_b32_f16 v74, v85, v86
	v_cvt_f32_f16_e32 v85, v87
	v_cvt_f32_f16_e32 v84, v88
	v_add_f32_e64 v82, v82, -v84
	v_add_f32_e64 v83, v83, -v85
	v_mfma_f32_32x32x8_f16 v[32:47], v[76:77], v[74:75], v[32:47]
	v_mul_f32_e64 v76, v82, s0
	v_mul_f32_e64 v77, v83, s0
	v_cvt_f16_f32_e32 v82, v80
	v_cvt_f16_f32_e32 v53, v77
	v_cvt_f16_f32_e32 v76, v76
	v_pack_b32_f16 v77, v76, v53
	v_fma_mixlo_f16 v76, v89, s0, neg(0)
	v_fma_mixhi_f16 v76, v90, s0, neg(0)
	v_cvt_f16_f32_e32 v53, v81
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[76:77], v[74:75], v[0:15]
	v_cvt_f32_f16_e32 v75, v53
	v_cvt_f32_f16_e32 v74, v82
	ds_read2_b32 v[76:77], v69 offset1:32
	v_add_f32_e64 v74, v80, -v74
	v_add_f32_e64 v75, v81, -v75
	v_cvt_f16_f32_e32 v80, v78
	v_pk_mul_f32 v[74:75], v[74:75], s[0:1] op_sel_hi:[1,0]
	v_cvt_f16_f32_e32 v81, v79
	v_cvt_f16_f32_e32 v75, v75
	v_cvt_f16_f32_e32 v74, v74
	v_fma_mix_f32 v78, -v80, 1.0, v78 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v79, -v81, 1.0, v79 op_sel_hi:[1,1,0]
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v83, v76
	v_pack_b32_f16 v75, v74, v75
	v_fma_mixlo_f16 v74, v78, s0, neg(0)
	v_fma_mixhi_f16 v74, v79, s0, neg(0)
	ds_read2_b32 v[78:79], v69 offset0:64 offset1:96
	v_cvt_f16_f32_e32 v84, v77
	v_fma_mix_f32 v85, -v83, 1.0, v76 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v86, -v84, 1.0, v77 op_sel_hi:[1,1,0]
	v_pack_b32_f16 v76, v83, v84
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v83, v79
	v_cvt_f16_f32_e32 v84, v78
	v_pack_b32_f16 v77, v84, v83
	s_nop 1
	v_mfma_f32_32x32x8_f16 v[16:31], v[76:77], v[74:75], v[16:31]
	v_pack_b32_f16 v74, v80, v81
	v_cvt_f32_f16_e32 v81, v83
	v_cvt_f32_f16_e32 v80, v84
	v_pack_b32_f16 v75, v82, v53
	v_add_f32_e64 v78, v78, -v80
	v_add_f32_e64 v79, v79, -v81
	v_mfma_f32_32x32x8_f16 v[32:47], v[76:77], v[74:75], v[32:47]
	v_mul_f32_e64 v76, v78, s0
	v_mul_f32_e64 v77, v79, s0
	v_cvt_f16_f32_e32 v53, v77
	v_cvt_f16_f32_e32 v76, v76
	v_pack_b32_f16 v77, v76, v53
	v_fma_mixlo_f16 v76, v85, s0, neg(0)
	v_fma_mixhi_f16 v76, v86, s0, neg(0)
	v_ashrrev_i32_e32 v53, 31, v52
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[76:77], v[74:75], v[0:15]
	v_lshl_add_u64 v[74:75], v[52:53], 2, v[50:51]
	global_load_dwordx4 v[74:77], v[74:75], off
	v_add_u32_e32 v52, s3, v52
	s_barrier
	s_waitcnt vmcnt(1)
	ds_write_b128 v59, v[70:73]
	s_waitcnt vmcnt(0)
	ds_write_b128 v60, v[74:77] offset:4096
	s_cbranch_scc1 .LBB0_8
	s_branch .LBB0_10
.LBB0_9:
	v_mov_b32_e32 v33, 0
	v_mov_b32_e32 v32, v33
	v_mov_b32_e32 v17, v33
	v_mov_b32_e32 v16, v33
	v_mov_b32_e32 v1, v33
	v_mov_b32_e32 v0, v33
	v_mov_b32_e32 v35, v33
	v_mov_b32_e32 v34, v33
	v_mov_b32_e32 v19, v33
	v_mov_b32_e32 v18, v33
	v_mov_b32_e32 v3, v33
	v_mov_b32_e32 v2, v33
	v_mov_b32_e32 v37, v33
	v_mov_b32_e32 v36, v33
	v_mov_b32_e32 v21, v33
	v_mov_b32_e32 v20, v33
	v_mov_b32_e32 v5, v33
	v_mov_b32_e32 v4, v33
	v_mov_b32_e32 v39, v33
	v_mov_b32_e32 v38, v33
	v_mov_b32_e32 v23, v33
	v_mov_b32_e32 v22, v33
	v_mov_b32_e32 v7, v33
	v_mov_b32_e32 v6, v33
	v_mov_b32_e32 v41, v33
	v_mov_b32_e32 v40, v33
	v_mov_b32_e32 v25, v33
	v_mov_b32_e32 v24, v33
	v_mov_b32_e32 v9, v33
	v_mov_b32_e32 v8, v33
	v_mov_b32_e32 v43, v33
	v_mov_b32_e32 v42, v33
	v_mov_b32_e32 v27, v33
	v_mov_b32_e32 v26, v33
	v_mov_b32_e32 v11, v33
	v_mov_b32_e32 v10, v33
	v_mov_b32_e32 v45, v33
	v_mov_b32_e32 v44, v33
	v_mov_b32_e32 v29, v33
	v_mov_b32_e32 v28, v33
	v_mov_b32_e32 v13, v33
	v_mov_b32_e32 v12, v33
	v_mov_b32_e32 v47, v33
	v_mov_b32_e32 v46, v33
	v_mov_b32_e32 v31, v33
	v_mov_b32_e32 v30, v33
	v_mov_b32_e32 v15, v33
	v_mov_b32_e32 v14, v33
.LBB0_10:
	s_lshr_b32 s1, s11, 6
	s_add_i32 s10, s10, 31
	s_cmp_lt_i32 s10, 32
	s_waitcnt lgkmcnt(0)
	s_barrier
	s_cbranch_scc0 .LBB0_13
	s_cmp_lg_u32 s1, 0
	s_cbranch_scc0 .LBB0_14
.LBB0_12:
	s_endpgm
.LBB0_13:
	v_xor_b32_e32 v48, v57, v58
	v_lshl_or_b32 v57, v54, 7, v48
	v_xor_b32_e32 v48, 0x60, v57
	v_add_u32_e32 v52, 0, v48
	v_xad_u32 v48, v57, 64, 0
	ds_read_b128 v[48:51], v48
	ds_read_b128 v[58:61], v52
	s_mov_b32 s0, 0x45800000
	s_waitcnt lgkmcnt(1)
	v_cvt_f16_f32_e32 v78, v51
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v79, v61
	v_cvt_f16_f32_e32 v80, v60
	v_cvt_f16_f32_e32 v82, v58
	v_cvt_f16_f32_e32 v81, v59
	v_cvt_f32_f16_e32 v53, v79
	v_cvt_f32_f16_e32 v52, v80
	v_fma_mix_f32 v85, -v82, 1.0, v58 op_sel_hi:[1,1,0]
	v_xad_u32 v58, v57, 32, 0
	v_fma_mix_f32 v84, -v81, 1.0, v59 op_sel_hi:[1,1,0]
	v_pk_add_f32 v[52:53], v[60:61], v[52:53] neg_lo:[0,1] neg_hi:[0,1]
	ds_read_b128 v[58:61], v58
	v_cvt_f16_f32_e32 v83, v50
	v_add_u32_e32 v57, 0, v57
	ds_read_b128 v[62:65], v57
	v_cvt_f32_f16_e32 v67, v78
	s_waitcnt lgkmcnt(1)
	v_cvt_f16_f32_e32 v86, v61
	v_cvt_f16_f32_e32 v87, v60
	v_cvt_f32_f16_e32 v66, v83
	v_cvt_f16_f32_e32 v88, v49
	v_cvt_f16_f32_e32 v89, v48
	v_cvt_f32_f16_e32 v69, v86
	v_cvt_f32_f16_e32 v68, v87
	v_lshlrev_b32_e32 v57, 4, v55
	v_pk_add_f32 v[50:51], v[50:51], v[66:67] neg_lo:[0,1] neg_hi:[0,1]
	v_add3_u32 v66, 0, v57, v56
	v_fma_mix_f32 v74, -v88, 1.0, v49 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v75, -v89, 1.0, v48 op_sel_hi:[1,1,0]
	v_pk_add_f32 v[48:49], v[60:61], v[68:69] neg_lo:[0,1] neg_hi:[0,1]
	v_add_u32_e32 v68, 0x1000, v66
	v_add_u32_e32 v77, 0x1c00, v66
	v_add_u32_e32 v99, 0x1800, v66
	v_add_u32_e32 v104, 0x1400, v66
	ds_read2_b32 v[66:67], v68 offset0:64 offset1:96
	s_waitcnt lgkmcnt(1)
	v_cvt_f16_f32_e32 v91, v65
	v_cvt_f16_f32_e32 v92, v64
	ds_read2_b32 v[68:69], v68 offset1:32
	v_cvt_f16_f32_e32 v90, v59
	s_waitcnt lgkmcnt(1)
	v_cvt_f16_f32_e32 v106, v67
	v_cvt_f16_f32_e32 v107, v66
	v_cvt_f16_f32_e32 v93, v58
	v_cvt_f32_f16_e32 v61, v91
	v_cvt_f32_f16_e32 v60, v92
	v_cvt_f32_f16_e32 v71, v106
	v_cvt_f32_f16_e32 v70, v107
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v109, v69
	v_fma_mix_f32 v76, -v90, 1.0, v59 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v94, -v93, 1.0, v58 op_sel_hi:[1,1,0]
	v_pk_add_f32 v[58:59], v[64:65], v[60:61] neg_lo:[0,1] neg_hi:[0,1]
	v_pk_add_f32 v[66:67], v[66:67], v[70:71] neg_lo:[0,1] neg_hi:[0,1]
	v_pk_mul_f32 v[58:59], v[58:59], s[0:1] op_sel_hi:[1,0]
	v_cvt_f16_f32_e32 v70, v68
	v_fma_mix_f32 v110, -v109, 1.0, v69 op_sel_hi:[1,1,0]
	v_cvt_f16_f32_e32 v69, v59
	v_cvt_f16_f32_e32 v71, v58
	v_cvt_f16_f32_e32 v96, v62
	v_cvt_f16_f32_e32 v95, v63
	ds_read2_b32 v[64:65], v104 offset0:64 offset1:96
	v_fma_mix_f32 v111, -v70, 1.0, v68 op_sel_hi:[1,1,0]
	v_pack_b32_f16 v58, v70, v109
	v_pack_b32_f16 v69, v71, v69
	ds_read2_b32 v[70:71], v104 offset1:32
	v_pack_b32_f16 v59, v107, v106
	v_fma_mix_f32 v101, -v96, 1.0, v62 op_sel_hi:[1,1,0]
	v_fma_mix_f32 v100, -v95, 1.0, v63 op_sel_hi:[1,1,0]
	v_fma_mixlo_f16 v68, v101, s0, neg(0)
	v_pk_mul_f32 v[48:49], v[48:49], s[0:1] op_sel_hi:[1,0]
	s_waitcnt lgkmcnt(1)
	v_cvt_f16_f32_e32 v105, v65
	v_cvt_f16_f32_e32 v108, v64
	v_fma_mixhi_f16 v68, v100, s0, neg(0)
	v_cvt_f16_f32_e32 v49, v49
	v_cvt_f16_f32_e32 v48, v48
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v100, v71
	v_cvt_f16_f32_e32 v101, v70
	v_mfma_f32_32x32x8_f16 v[16:31], v[58:59], v[68:69], v[16:31]
	v_mul_f32_e64 v50, v50, s0
	v_mul_f32_e64 v51, v51, s0
	ds_read2_b32 v[56:57], v77 offset0:64 offset1:96
	ds_read2_b32 v[60:61], v99 offset0:64 offset1:96
	v_pack_b32_f16 v49, v48, v49
	v_fma_mixlo_f16 v48, v94, s0, neg(0)
	v_pack_b32_f16 v69, v108, v105
	v_pack_b32_f16 v68, v101, v100
	v_cvt_f16_f32_e32 v94, v51
	v_cvt_f16_f32_e32 v104, v50
	ds_read2_b32 v[50:51], v99 offset1:32
	v_fma_mixhi_f16 v48, v76, s0, neg(0)
	s_waitcnt lgkmcnt(2)
	v_cvt_f16_f32_e32 v97, v57
	v_cvt_f16_f32_e32 v98, v56
	s_waitcnt lgkmcnt(1)
	v_cvt_f16_f32_e32 v102, v61
	v_cvt_f16_f32_e32 v103, v60
	v_mfma_f32_32x32x8_f16 v[16:31], v[68:69], v[48:49], v[16:31]
	v_pack_b32_f16 v49, v104, v94
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v94, v51
	v_cvt_f16_f32_e32 v99, v50
	v_fma_mixlo_f16 v48, v75, s0, neg(0)
	ds_read2_b32 v[76:77], v77 offset1:32
	v_cvt_f32_f16_e32 v63, v97
	v_cvt_f32_f16_e32 v62, v98
	v_fma_mixhi_f16 v48, v74, s0, neg(0)
	v_pack_b32_f16 v75, v103, v102
	v_pack_b32_f16 v74, v99, v94
	v_pk_mul_f32 v[52:53], v[52:53], s[0:1] op_sel_hi:[1,0]
	v_pk_add_f32 v[56:57], v[56:57], v[62:63] neg_lo:[0,1] neg_hi:[0,1]
	v_cvt_f32_f16_e32 v63, v102
	v_cvt_f32_f16_e32 v62, v103
	v_cvt_f16_f32_e32 v53, v53
	v_cvt_f16_f32_e32 v52, v52
	s_waitcnt lgkmcnt(0)
	v_cvt_f16_f32_e32 v102, v77
	v_cvt_f16_f32_e32 v103, v76
	v_mfma_f32_32x32x8_f16 v[16:31], v[74:75], v[48:49], v[16:31]
	v_pack_b32_f16 v49, v52, v53
	v_pack_b32_f16 v53, v98, v97
	v_pack_b32_f16 v52, v103, v102
	v_mul_f32_e64 v66, v66, s0
	v_mul_f32_e64 v67, v67, s0
	v_fma_mixlo_f16 v48, v85, s0, neg(0)
	v_cvt_f16_f32_e32 v67, v67
	v_cvt_f16_f32_e32 v66, v66
	v_cvt_f32_f16_e32 v73, v105
	v_cvt_f32_f16_e32 v72, v108
	v_fma_mixhi_f16 v48, v84, s0, neg(0)
	v_pk_add_f32 v[60:61], v[60:61], v[62:63] neg_lo:[0,1] neg_hi:[0,1]
	v_pk_mul_f32 v[56:57], v[56:57], s[0:1] op_sel_hi:[1,0]
	v_mfma_f32_32x32x8_f16 v[16:31], v[52:53], v[48:49], v[16:31]
	v_fma_mixlo_f16 v48, v111, s0, neg(0)
	v_pack_b32_f16 v49, v66, v67
	v_fma_mixhi_f16 v48, v110, s0, neg(0)
	v_add_f32_e64 v62, v64, -v72
	v_add_f32_e64 v63, v65, -v73
	v_pack_b32_f16 v65, v92, v91
	v_pk_mul_f32 v[62:63], v[62:63], s[0:1] op_sel_hi:[1,0]
	v_pack_b32_f16 v64, v96, v95
	v_cvt_f16_f32_e32 v63, v63
	v_cvt_f16_f32_e32 v62, v62
	v_mfma_f32_32x32x8_f16 v[0:15], v[48:49], v[64:65], v[0:15]
	v_fma_mix_f32 v67, -v101, 1.0, v70 op_sel_hi:[1,1,0]
	v_mul_f32_e64 v60, v60, s0
	v_mul_f32_e64 v61, v61, s0
	v_fma_mix_f32 v66, -v100, 1.0, v71 op_sel_hi:[1,1,0]
	v_cvt_f16_f32_e32 v71, v60
	v_fma_mixlo_f16 v60, v67, s0, neg(0)
	v_cvt_f16_f32_e32 v70, v61
	v_pack_b32_f16 v61, v62, v63
	v_mfma_f32_32x32x8_f16 v[32:47], v[58:59], v[64:65], v[32:47]
	v_fma_mixhi_f16 v60, v66, s0, neg(0)
	v_pack_b32_f16 v49, v87, v86
	v_pack_b32_f16 v48, v93, v90
	v_fma_mix_f32 v50, -v99, 1.0, v50 op_sel_hi:[1,1,0]
	v_cvt_f16_f32_e32 v63, v56
	v_fma_mix_f32 v51, -v94, 1.0, v51 op_sel_hi:[1,1,0]
	v_fma_mixlo_f16 v56, v50, s0, neg(0)
	v_mfma_f32_32x32x8_f16 v[0:15], v[60:61], v[48:49], v[0:15]
	v_cvt_f16_f32_e32 v62, v57
	v_pack_b32_f16 v57, v71, v70
	v_fma_mixhi_f16 v56, v51, s0, neg(0)
	v_pack_b32_f16 v61, v83, v78
	v_pack_b32_f16 v60, v89, v88
	v_fma_mix_f32 v50, -v103, 1.0, v76 op_sel_hi:[1,1,0]
	v_pack_b32_f16 v51, v63, v62
	v_mfma_f32_32x32x8_f16 v[32:47], v[68:69], v[48:49], v[32:47]
	v_fma_mix_f32 v62, -v102, 1.0, v77 op_sel_hi:[1,1,0]
	v_fma_mixlo_f16 v50, v50, s0, neg(0)
	v_fma_mixhi_f16 v50, v62, s0, neg(0)
	v_mfma_f32_32x32x8_f16 v[0:15], v[56:57], v[60:61], v[0:15]
	v_pack_b32_f16 v57, v80, v79
	v_pack_b32_f16 v56, v82, v81
	v_mfma_f32_32x32x8_f16 v[32:47], v[74:75], v[60:61], v[32:47]
	s_nop 0
	v_mfma_f32_32x32x8_f16 v[0:15], v[50:51], v[56:57], v[0:15]
	v_mfma_f32_32x32x8_f16 v[32:47], v[52:53], v[56:57], v[32:47]
	s_cmp_lg_u32 s1, 0
	s_cbranch_scc1 .LBB0_12
.LBB0_14:
	v_or_b32_e32 v49, s8, v54
	v_lshrrev_b32_e32 v48, 3, v55
	s_nop 5
	v_pk_add_f32 v[8:9], v[24:25], v[8:9]
	v_mul_lo_u32 v24, s9, v49
	v_or_b32_e32 v48, s2, v48
	v_ashrrev_i32_e32 v25, 31, v24
	s_mov_b32 s0, 0x39800000
	v_lshl_add_u64 v[24:25], v[24:25], 2, s[6:7]
	v_ashrrev_i32_e32 v49, 31, v48
	v_pk_add_f32 v[0:1], v[16:17], v[0:1]
	v_pk_add_f32 v[2:3], v[18:19], v[2:3]
	v_pk_add_f32 v[14:15], v[30:31], v[14:15]
	v_pk_add_f32 v[12:13], v[28:29], v[12:13]
	v_pk_add_f32 v[10:11], v[26:27], v[10:11]
	v_lshl_add_u64 v[24:25], v[48:49], 2, v[24:25]
	v_pk_fma_f32 v[0:1], v[0:1], s[0:1], v[32:33] op_sel_hi:[1,0,1]
	v_pk_fma_f32 v[2:3], v[2:3], s[0:1], v[34:35] op_sel_hi:[1,0,1]
	v_pk_add_f32 v[6:7], v[22:23], v[6:7]
	v_pk_add_f32 v[4:5], v[20:21], v[4:5]
	v_pk_fma_f32 v[14:15], v[14:15], s[0:1], v[46:47] op_sel_hi:[1,0,1]
	v_pk_fma_f32 v[12:13], v[12:13], s[0:1], v[44:45] op_sel_hi:[1,0,1]
	v_pk_fma_f32 v[10:11], v[10:11], s[0:1], v[42:43] op_sel_hi:[1,0,1]
	v_pk_fma_f32 v[8:9], v[8:9], s[0:1], v[40:41] op_sel_hi:[1,0,1]
	v_pk_fma_f32 v[6:7], v[6:7], s[0:1], v[38:39] op_sel_hi:[1,0,1]
	v_pk_fma_f32 v[4:5], v[4:5], s[0:1], v[36:37] op_sel_hi:[1,0,1]
	global_store_dwordx4 v[24:25], v[0:3], off
	global_store_dwordx4 v[24:25], v[4:7], off offset:32
	global_store_dwordx4 v[24:25], v[8:11], off offset:64
	global_store_dwordx4 v[24:25], v[12:15], off offset:96
	s_endpgm
.Ltmp2:
.Lfunc_end0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel recovered
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
		.amdhsa_next_free_vgpr 112
		.amdhsa_next_free_sgpr 18
		.amdhsa_accum_offset 112
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
    .name:           recovered
    .private_segment_fixed_size: 0
    .sgpr_count:     24
    .sgpr_spill_count: 0
    .symbol:         recovered.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     112
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgpu9.42-amd-amdhsa-unknown-gfx942
amdhsa.version:
  - 1
  - 2
...

	
.end_amdgpu_metadata
