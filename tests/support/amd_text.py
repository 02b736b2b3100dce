"""Small AMDGCN kernels for tests: a body of instructions with what stands around it."""


def kernel(body, arguments=1, size=8, threads=64, local=0, **facts):
    """A program whose arguments are addresses; s[0:1] points to them, s2 is the block, v0 the thread."""
    fields = {
        "group_segment_fixed_size": local, "kernarg_size": size * arguments, "user_sgpr_count": 2,
        "user_sgpr_kernarg_segment_ptr": 1, "float_denorm_mode_32": 3, "float_denorm_mode_16_64": 3, **facts,
    }  # fmt: skip
    described = "\n".join(f"  .amdhsa_{name} {value}" for name, value in fields.items())
    places = "\n".join(
        f"      - .offset: {size * i}\n        .size: {size}\n        .value_kind: by_value" for i in range(arguments)
    )
    return f"""  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
k:
{body}
  s_endpgm
  .section .rodata
  .amdhsa_kernel k
{described}
  .end_amdhsa_kernel
  .amdgpu_metadata
amdhsa.kernels:
  - .args:
{places}
    .max_flat_workgroup_size: {threads}
    .name: k
  .end_amdgpu_metadata
"""


#: Words x[thread] of the first argument to v1, its address in v[2:3].
LOAD = """  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  v_lshlrev_b32_e32 v4, 2, v0
  v_mov_b32_e32 v5, 0
  v_lshl_add_u64 v[2:3], v[4:5], 0, s[4:5]
  global_load_dword v1, v[2:3], off
  s_waitcnt vmcnt(0)
"""
STORE = "  global_store_dword v[2:3], v1, off\n"
