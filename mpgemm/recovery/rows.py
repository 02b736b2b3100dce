"""Lists the rows of the recovery methods; :mod:`mpgemm.recovery.method` explains the fields.

Names of sources: markidis = Markidis et al. 2018; ootomo-yokota = Ootomo and Yokota 2022 (IJHPCA 36:4); valpey = Valpey et al.,
section 6; egemm = Feng et al. 2021; ma = Ma et al. 2022; quantensor = Li et al. 2021; mixpert = Lin et al. 2024; xue =
Xue et al., arXiv:2507.23387v4; mary-mikaitis = Mary and Mikaitis 2024, as Khattak and Mikaitis use it (section V-B). In the
formulas h and l are the high and low words, and RN rounds to nearest even.
"""

from mpgemm.recovery.method import FP8_VARIANTS, MODULI, SPLIT_MODULI, RecoveryMethod, products_below
from tensorcore_models.formats.tf32_roundings import tf32_owners

_SPLIT = {
    "rounding": "rounding of the split: rne, rna, rz, ...",
    "dynamic_scaling": "True scales rows of A and columns of B by powers of two first; c is then added outside",
    "repair": "'fp32' computes results that are not finite again as FP32 chains and adds c last",
}
_CHAIN = {**_SPLIT, "order": "'step', 'term' or a number of k, after which the products in the core's chain take turns"}
_OUTSIDE = {
    **_CHAIN,
    "terms": "3 (without the low-low product) or 4 (with it)",
    "scale_exponent": "s of the low word, 0 to 100",
    "accumulate_outside": "'k_step' restarts the high-high product at every k step and adds it outside; "
    "'c_only' adds only c outside",
    "restart_every": "number of products of k after which the high-high product restarts, instead of every k step",
}
_FP16_RANGE = "elements beyond 65504 overflow; full precision needs about |x| >= 2^{low}; elements below 2^-24 are lost"
_E4M3 = ("e4m3fn", "e4m3fnuz", "e4m3")
_HI, _HI_LO = products_below(1), products_below(2, 1)
_FP8 = (*FP8_VARIANTS[0], *FP8_VARIANTS[1])
#: Options of methods whose number of words can follow from the matrices.
_COUNT = {
    "bits": "with auto, bits of |A||B| that the words keep, 1 to 53 (default 53 or 24, the bits of the result)",
    "bit_offset": "with auto or mantissa_bits, bits to keep in addition",
    "most": "with auto or mantissa_bits, the largest count; the native product is taken if more are needed, or for Inf and NaN",
    "mantissa_bits": "instead of a count, bits of a row's largest element that the words keep",
    "target": "'fp32', 'fp64' or 'input'",
}


#: Note on the rounding to TF32 of the plain product and of libraries.
TF32_NOTE = (
    "tf32 rounds its operands to nearest even unless told otherwise (tf32:rounding=rna, rz); the unit itself truncates, and "
    f"libraries round before it. Known: {tf32_owners()}"
)


def _single(name: str, formats, engine: str, note: str, rounding: str = "rne") -> RecoveryMethod:
    return RecoveryMethod(
        name=name,
        title=f"single pass of {name} words",
        formula=f"D = core({name}(A) {name}(B) + C)",
        source=f"the plain product; {TF32_NOTE}" if name == "tf32" else "the plain product",
        certainty="published formula",
        formats=formats,
        words=1,
        products=_HI,
        target="engine",
        range_limits=note,
        default_engine=engine,
        rounding=rounding,
        options={**_SPLIT, "format": "operand format"} if len(formats) > 1 else _SPLIT,
    )


def _native(name: str) -> RecoveryMethod:
    return RecoveryMethod(
        name=name,
        title=f"native {name} product",
        formula="D = core(A B + C), by default a chain of fused multiply-adds in k order",
        source="the plain product",
        certainty="published formula",
        formats=(name,),
        words=1,
        products=_HI,
        target="engine",
        range_limits=f"as {name}",
        default_engine="ieee",
        options={"rounding": "rounding of operands to the format"},
    )


def _markidis(name: str, **facts) -> RecoveryMethod:
    return RecoveryMethod(name=name, **{"rounding": "rz", "products": products_below(2), "claimed_loss": "2", **facts})


def _library(name: str, fmt: str, words: int, products, range_limits: str, **facts) -> RecoveryMethod:
    return RecoveryMethod(
        name=name,
        title=f"{words} words of {fmt}, {len(products)} products in the core",
        source="compute modes of cuBLAS, oneMKL and CUTLASS; this project chose the order of the products, one chain "
        "in the core (CUTLASS publishes cutlass_bf16x9 and cutlass_3xtf32, and triton_tf32x3 is Triton's)",
        certainty="library practice",
        formats=(fmt,),
        words=words,
        products=products,
        range_limits=range_limits,
        options={
            **_CHAIN,
            "product_order": "'smallest_first' or 'largest_first'",
            "restart_every": "number of products of k after which the chain is added outside and restarts from zero",
        },
        formula="D = core(C + sum of the products of words, smallest first)",
        **facts,
    )


def _weights(words: int) -> RecoveryMethod:
    return RecoveryMethod(
        name=f"bf16xfp32x{words}",
        title=f"BF16 activations times FP32 weights in {words} words of bf16",
        formula="B_j = RN(B - B_0 - ... - B_(j-1)); D = core(C + sum of A_0 B_j, smallest first), A_0 = RN(A)",
        source="routers of mixtures of experts: vLLM pull requests 47973 (three words, no scaling), 55899 (restarted chains), "
        "52668 (a chain for each word, added after: accumulation='termwise'), vllm-xpu-kernels 465 (two words, "
        "accumulation='outside', scale_exponent=8); this project chose the order inside of a chain",
        certainty="library practice",
        formats=("bf16",),
        words=words,
        products=tuple((0, j) for j in reversed(range(words))),
        range_limits=f"A must hold BF16 numbers and is rounded to them; B: {_BF16_RANGE}",
        options={
            **_CHAIN,
            "accumulation": "'core', 'termwise' or 'outside'",
            "scale_exponent": "s of the low words, with 'termwise' or 'outside'",
            "restart_every": "number of products of k after which the chain is added outside and restarts from zero",
        },
    )


_BF16_RANGE = "range of FP32 without its lowest binades, because a low word below 2^-133 is lost"

ROWS: dict[str, RecoveryMethod] = {
    row.name: row
    for row in (
        _single("fp16", ("fp16",), "h100", _FP16_RANGE.format(low=-14)),
        _single("bf16", ("bf16",), "h100", "as FP32"),
        _single("tf32", ("tf32",), "h100", "as FP32"),
        _single("hf32", ("hf32", "hf32_950"), "910b1", "as FP32"),
        _single("fp8", _FP8, "l40s", "e4m3fn: 2^-9 to 448; e5m2: 2^-16 to 57344"),
        _single(
            "hifloat8", ("hifloat8",), "950", "2^-22 to 2^15, 4 bits from 2^-3 to 15, fewer elsewhere", rounding="rna"
        ),
        _native("fp32"),
        _native("fp64"),
        _markidis(
            "markidis",
            title="fp16 words, four products in the core",
            formula="A_l = h(A - A_h); D = core(A_l B_l + A_h B_l + A_l B_h + A_h B_h + C)",
            source="ootomo-yokota eq. 6, valpey section 6; split by truncation as xue section 2 and table 2 "
            "say, by RN for valpey table 5",
            certainty="published formula",
            range_limits=_FP16_RANGE.format(low=-2),
            options={**_CHAIN, "terms": "3 (without the low-low product) or 4 (with it)"},
        ),
        _markidis(
            "markidis_scaled",
            title="markidis with low words scaled by 2^11, still summed in the core",
            formula="ll = core(A_l B_l + 2^22 C); s = core(A_h B_l + A_l B_h + ll/2^11); D = core(A_h B_h + s/2^11)",
            source="markidis with the scaling of ootomo-yokota but without its other steps",
            certainty="reconstruction",
            scale_exponent=11,
            accumulation="nested",
            range_limits=_FP16_RANGE.format(low=-14),
            claimed_loss="",
            options={**_CHAIN, "terms": "3 or 4", "scale_exponent": "s of the low word"},
        ),
        RecoveryMethod(
            name="egemm",
            title="fp16 words by round-split, four products in the core",
            formula="A_l = RN(A - A_h); D = core(A_l B_l + A_h B_l + A_l B_h + A_h B_h + C)",
            source="egemm; xue table 2 gives RZ (the option rounding)",
            certainty="reconstruction",
            products=products_below(2),
            range_limits=_FP16_RANGE.format(low=-2),
            claimed_loss="2",
            options={**_CHAIN, "terms": "3 or 4"},
        ),
        RecoveryMethod(
            name="ootomo",
            title="fp16 words, low words scaled by 2^11, accumulation outside (halfhalf)",
            formula="A_l = RN((A - A_h) 2^11); acc = RN(acc + core(A_h B_h)) for each k step; s = core(A_h B_l + A_l B_h); "
            "D = RN(RN(acc + s/2^11) + C)",
            source="ootomo-yokota eqs. 19-24; with accumulate_outside='c_only', terms=4 the formula of valpey section 6",
            certainty="published formula",
            scale_exponent=11,
            products=_HI_LO,
            accumulation="k_step",
            range_limits=_FP16_RANGE.format(low=-14),
            claimed_loss="1",
            options=_OUTSIDE,
        ),
        RecoveryMethod(
            name="ootomo_tf32",
            title="tf32 words, accumulation outside",
            formula="the formula of ootomo with tf32 words rounded to nearest, ties away, as the conversion instruction rounds",
            source="ootomo-yokota, section on TF32; the scale is uncertain, 2^11 here; scale_exponent=0 takes none",
            certainty="reconstruction",
            formats=("tf32",),
            rounding="rna",
            scale_exponent=11,
            products=_HI_LO,
            accumulation="k_step",
            range_limits="as FP32 but for its lowest binades",
            claimed_loss="1",
            options=_OUTSIDE,
        ),
        RecoveryMethod(
            name="ootomo_inside",
            title="ootomo's words with every sum in the core (ablation)",
            formula="s = core(A_h B_l + A_l B_h + 2^11 C); D = core(A_h B_h + s/2^11)",
            source="ablation of ootomo-yokota: the same split, no addition outside",
            certainty="reconstruction",
            scale_exponent=11,
            products=_HI_LO,
            accumulation="nested",
            range_limits=_FP16_RANGE.format(low=-14),
            options={k: v for k, v in _OUTSIDE.items() if k not in ("accumulate_outside", "restart_every")},
        ),
        RecoveryMethod(
            name="ma",
            title="fp16 words, the low word's sign carries the hidden bit",
            formula="A_h = RN(A), A_l = RN(A - A_h) of either sign; D = core(A_h B_l + A_l B_h + A_h B_h + C)",
            source="ma",
            certainty="reconstruction",
            products=_HI_LO,
            range_limits=_FP16_RANGE.format(low=-2),
            claimed_loss="1",
            options={**_CHAIN, "terms": "3 or 4"},
        ),
        RecoveryMethod(
            name="sgemm_cube",
            title="SGEMM-cube: fp16 words, low words scaled by 2^s_b, three products joined in FP32",
            formula="hh, lh, hl = core(A_h B_h), core(A_l B_h), core(A_h B_l); D = RN(RN(hh + RN(lh + hl)/2^s_b) + C)",
            source="xue eq. 7 and section 4.4; elementwise: accumulation='elementwise'. On the Ascend cube C seeds hh",
            certainty="published formula",
            scale_exponent=12,
            products=_HI_LO,
            accumulation="termwise",
            range_limits=_FP16_RANGE.format(low=-14),
            claimed_loss="1-2",
            default_engine="ascend:cube.m16n16k16.f32.f16.f16.f32",
            options={
                **_SPLIT,
                "scale_exponent": "s_b, 0 to 100",
                "accumulation": "'termwise' or 'elementwise'",
                "terms": "3 or 4",
            },
        ),
        RecoveryMethod(
            name="multiword",
            title="p words of any format, equilibrated rows and columns",
            formula="A_j = RN((diag A - sum of earlier words) 2^(s (j-1))); D = sum of A_j B_k with j + k <= p + 1, "
            "joined in FP32",
            source="mary-mikaitis; s = precision of the words and the scaling to theta as in khattak-mikaitis' "
            "published experiment",
            certainty="published formula",
            formats=("fp16", "bf16", "tf32", "e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"),
            scale_exponent=None,
            products=_HI_LO,
            accumulation="outside",
            order="term",
            equilibrate="rows",
            range_limits="any finite input; an element below f_min/theta of its row's largest loses bits",
            options={
                "format": "word format",
                "words": "p, 1 to 8",
                "rounding": "rounding of the split",
                "scale_exponent": "s; 0 with accumulation='core'",
                "accumulation": "'outside', 'termwise', 'k_step', 'nested', or 'core' (all products in one chain, needs s = 0)",
                "order": "'step' or 'term'",
                "product_order": "'smallest_first', or 'largest_first' with accumulation='core'",
                "dynamic_scaling": "False: no equilibration",
            },
        ),
        _library("bf16x3", "bf16", 2, products_below(2, 1), _BF16_RANGE),
        _library("bf16x6", "bf16", 3, products_below(3, 2), _BF16_RANGE),
        _library("bf16x9", "bf16", 3, products_below(3), _BF16_RANGE),
        _weights(2),
        _weights(3),
        RecoveryMethod(
            name="cutlass_bf16x9",
            title="BF16x9 as CUTLASS publishes it for Blackwell: five bands, scaled inside of the unit",
            formula="A_j = bf16((A_(j-1) residual) 2^8), saturating; for each k step D = A_2 B_2, then D = D/2^8 + the "
            "products of the next band, down to D/2^8 + A_0 B_0; acc = RN(acc + D); RN(acc + C) last",
            source="CUTLASS, sm100_mma_warpspecialized_emulated.hpp (commit 0d2b201e) and example 78; what cuBLAS runs "
            "inside of CUBLAS_COMPUTE_32F_EMULATED_16BFX9 is not published",
            certainty="published formula",
            formats=("bf16",),
            words=3,
            scale_exponent=8,
            products=products_below(3),
            accumulation="bands",
            overflow="saturate",
            range_limits="as FP32; infinities become the largest bf16 numbers, as the conversion saturates",
            default_engine="b200/tcgen05",
            options={"bands": "5 (all nine products), 4 (without A_2 B_2) or 3 (six products)"},
        ),
        RecoveryMethod(
            name="cutlass_3xtf32",
            title="3xTF32 as CUTLASS publishes it: truncated words, staged accumulation",
            formula="A_0 = RZ(A), A_1 = RNA(A - A_0); for each k step A_1 B_0, A_0 B_1, A_0 B_0 in one chain; the chain "
            "restarts after the first k step and then every 16 of k, acc = RN(acc + chain); RN(acc + C) last",
            source="CUTLASS, mma_tensor_op_fast_f32.h and the staged accumulation of mma_multistage.h (commit 56e011a3), tiles "
            "of 16 of k as in example 27 (restart_every sets other tiles). Infinities have the low word 0 here, NaN in CUTLASS",
            certainty="published formula",
            formats=("tf32",),
            rounding="rz",
            last_rounding="rna",
            products=((1, 0), (0, 1), (0, 0)),
            accumulation="staged",
            restart_every=16,
            range_limits="as FP32 but for its lowest binades",
            default_engine="a100",
            options={
                "terms": "3 (without the low-low product) or 4 (with it, added last)",
                "restart_every": "number of products of k in a tile",
            },
        ),
        RecoveryMethod(
            name="triton_tf32x3",
            title="tl.dot with input_precision='tf32x3' in a loop over BLOCK_K = 32",
            formula="A_0 = RNA(A), A_1 = RZ(A - A_0); for each tile from zero A_1 B_0, A_0 B_1, A_0 B_0, each over all of the "
            "tile; acc = RN(acc + tile)",
            source="kernels that Triton 3.4.0 and 3.9.0 compiled for sm_80 and sm_90 (restart_every sets other tiles). Triton "
            "replaces NaN of the small products by 0, which is not done here",
            certainty="library practice",
            formats=("tf32",),
            rounding="rna",
            last_rounding="rz",
            products=((1, 0), (0, 1), (0, 0)),
            accumulation="blocks",
            restart_every=32,
            order="term",
            range_limits="as FP32 but for its lowest binades",
            default_engine="a100",
            options={"restart_every": "BLOCK_K"},
        ),
        _library("tf32x3", "tf32", 2, products_below(2, 1), "as FP32 but for its lowest binades", rounding="rna"),
        RecoveryMethod(
            name="mixpert",
            title="four int8 segments on a common row or column exponent",
            formula="Q = RN(A 2^(30 - e_row)) = sum of q_j 256^(3-j), q_j in [-128, 127]; "
            "D = FP64 sum of q_i q_j products, i + j <= 3",
            source="mixpert",
            certainty="reconstruction",
            kind="integer_slices",
            formats=("s8",),
            words=4,
            slice_bits=8,
            products=products_below(4, 3),
            accumulation="outside",
            equilibrate="rows",
            range_limits="elements below 2^-31 of their row's (column's) largest are lost",
            claimed_loss="3",
            options={"products": "'upper' (i + j <= 3, ten products) or 'all' (sixteen)"},
        ),
        RecoveryMethod(
            name="quantensor",
            title="quantise, multiply, quantise the residual, repeat",
            formula="R_0 = A, s_j = max|R_j| / q_max, Q_j = RN(R_j / s_j), R_(j+1) = R_j - s_j Q_j; D = sum of s_i s_j Q_i Q_j",
            source="quantensor",
            certainty="reconstruction",
            kind="quantised",
            formats=("s8", "s4", "fp16"),
            products=_HI_LO,
            accumulation="outside",
            range_limits="a matrix has one scale, so p words make elements below q_max^-p of the largest zero",
            claimed_loss="N/A",
            options={
                "format": "s8, s4 or fp16",
                "passes": "words p; p(p+1)/2 products",
                "products": "'upper' or 'all'",
            },
        ),
        RecoveryMethod(
            name="ozaki_int8",
            title="slices of 7 bits on a common row or column exponent, exact int32 products",
            formula="A = 2^e_row sum of a_i 2^(-7 i); D = FP64 sum of 2^(-7(i+j)) a_i b_j with i + j <= s + 1 (i, j from 1)",
            source="Ootomo, Ozaki and Yokota 2024, DGEMM on integer matrix multiplication unit",
            certainty="published formula",
            kind="integer_slices",
            formats=("s8",),
            words=4,
            products=products_below(4, 3),
            accumulation="outside",
            equilibrate="rows",
            target="input",
            range_limits="elements below 2^(-7 s) of their row's (column's) largest are lost; "
            "8 slices reach FP64 on benign data",
            options={
                "slices": "s, 1 to 16; auto takes the fewest that the matrices need",
                "products": "'upper' or 'all'",
                **_COUNT,
            },
        ),
        RecoveryMethod(
            name="ozaki2_int8",
            title="Ozaki scheme II: integer matrices by residues and the Chinese remainder theorem",
            formula="A' = RZ(2^e_row A), B' = RZ(B 2^e_col) integers with k max|A'| max|B'| < M/2, M the product "
            "of the moduli; A'B' mod p for each modulus p by one int8 product; D = 2^-(e_row + e_col) CRT",
            source="Ozaki, Uchino and Imamura 2025",
            certainty="published formula",
            kind="residues",
            formats=("s8",),
            words=1,
            moduli=MODULI[:8],
            accumulation="outside",
            equilibrate="rows",
            target="input",
            range_limits="operands keep (log2 M - log2 k - 1)/2 bits below their row's (column's) largest element",
            options={
                "moduli": "number of moduli of the table (2 to 20), or the moduli themselves; auto takes the fewest that the "
                "matrices need",
                **_COUNT,
            },
        ),
        RecoveryMethod(
            name="ozaki_fp8",
            title="Ozaki scheme I on FP8 words: slices of 4 bits, exact sums in the core",
            formula="A = 2^e_row sum of a_i 2^(-4 i), a_i in [-15, 15]; D = FP64 sum of 2^(-4(i+j)) a_i b_j with "
            "i + j <= s + 1 (i, j from 1)",
            source="Ozaki's scheme as in Ootomo, Ozaki and Yokota 2024, with e4m3 instead of int8; arXiv:2508.00441 has other "
            "words",
            certainty="reconstruction",
            kind="integer_slices",
            formats=_E4M3,
            words=7,
            slice_bits=4,
            products=products_below(7, 6),
            accumulation="outside",
            equilibrate="rows",
            target="input",
            range_limits="elements below 2^(-4 s) of their row's (column's) largest are lost",
            default_engine="b200/tcgen05",
            options={
                "slices": "s, 1 to 28; auto takes the fewest that the matrices need",
                "products": "'upper' or 'all'",
                **_COUNT,
            },
        ),
        RecoveryMethod(
            name="ozaki2_fp8",
            title="Ozaki scheme II on FP8 words: residues as pairs of words, three products for each modulus",
            formula="A' and B' as in ozaki2_int8; each residue is h b + l mod p with h, l, h + l in e4m3; A'B' mod p from "
            "h h', l l' and (h + l)(h' + l'); D = 2^-(e_row + e_col) CRT",
            source="derived here; arXiv:2603.10634 states such a scheme (its abstract was read)",
            certainty="reconstruction",
            kind="split_residues",
            formats=_E4M3,
            words=1,
            moduli=SPLIT_MODULI[:6],
            accumulation="outside",
            equilibrate="rows",
            target="input",
            range_limits="operands keep (log2 M - log2 k - 1)/2 bits below their row's (column's) largest element",
            default_engine="b200/tcgen05",
            options={
                "moduli": "number of moduli of the table (2 to 16), or some of its moduli; auto takes the fewest that the "
                "matrices need",
                **_COUNT,
            },
        ),
    )
}
