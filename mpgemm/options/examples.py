"""The examples under every command's `--help`; a test runs the parser over them."""

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "evaluate": (
        ("A.npy B.npy", "is SGEMM-cube accurate enough for these matrices?"),
        ("W.safetensors X.npy --a-name layers.0.weight", "a tensor by its name"),
        ("X.npy W.npy --transpose-b", "x @ W.T"),
        ("--distribution normal --shape 64 1024 64 --repeats 3 --out out", "generated, three seeds, files in out"),
        ("--figure 9b --step-orders sequential exact", "a figure of the SGEMM-cube paper"),
    ),
    "compare": (
        ("A.npy B.npy --engines a100 h100", "the cheapest method that reaches FP32 on each engine"),
        (
            "A.npy B.npy --methods 3xTF32 bf16x9 ootomo --bits 20",
            "or at least 20 bits; names of the frameworks will do",
        ),
        ("--methods markidis ootomo --engines h100 --distribution normal --shape 32 4096 32 --bounds", ""),
        ("--figure khattak7 --out out", "a figure of a paper; --quick for fewer points"),
    ),
    "curve": (
        ("--over k 16 65536 --methods markidis@h100 ootomo@h100 fp32 --out out", "a picture with bands, PNG and SVG"),
        (
            "--over condition 1 1e12 --precision fp64 --methods fp64 ozaki_int8:slices=8@h100",
            "emulated FP64 beside DGEMM",
        ),
    ),
    "slices": (
        ("A.npy B.npy", "how many slices until emulated FP64 is as good as DGEMM here?"),
        ("A.npy B.npy --target 40 --engine b300 h100", "or 40 bits, and what that costs on two devices"),
    ),
    "explain": (
        ("", "Valpey et al., table 5: every step and every bit"),
        ("ootomo --engine a100 --a 1.5 2 --b 0.25 3", "your own dot product"),
        ("markidis --files A.npy B.npy --element 3 7 --attribution-only", "where one result's error comes from"),
        ("--engine a100 h100 --distribution normal --k 1024", "why do two GPUs differ?"),
        ("fp16 --engine v100 --a 1 -1e-3 2^-12 --b 1 1 1/3", "numbers in any notation"),
    ),
    "models": (
        ("h100", "the instructions of a device"),
        ("H100 fp8", "those for one format"),
        ("hopper:mma.m16n8k16.f32.f16.f16.f32", "one of them in words, a formula and a picture"),
        ("HMMA.16816.F32", "by its name in SASS, PTX or AMD's compiler"),
        ("--methods", "the recovery methods"),
    ),
    "check": (
        ("out.npy A.npy B.npy --engine h100", "a test fails: why?"),
        (
            "scaled.npy A.npy B.npy --scale-a SA.npy --scale-b SB.npy --promote-every 128",
            "scales by their shapes; sums outside every 128 products",
        ),
        ("out.npy A.npy B.npy --k-order any --promote-every 64:512", "little is known of the kernel"),
        (
            "q.npy QA.npy QB.npy --scale-a 0.1 --scale-b 0.2 --scale-out 8 --zero-a 3",
            "integers with a zero point, requantised",
        ),
    ),
    "tolerance": (
        ("--engine h100 --k 512", "what may a test of this kernel allow?"),
        ("--engine h100 --format fp8 --reference rounded --k 512", "against the product of the rounded operands"),
        ("--engine a100 --format bf16 --out-format bf16 A.npy B.npy", "on your data"),
        ("--method ootomo --engine a100 --shipped digits", "of a recovery method"),
        ("--engine h100 --k 512 --check-rtol 1e-2 --check-atol 1e-2", "what would this tolerance miss?"),
    ),
    "advise-promotion": (
        ("A.npy B.npy --engine h100", "error, bound and cost of every interval"),
        ("--engine h100 --wanted 1e-4 --shape 1 7168 64", "the interval that a wanted error needs"),
        ("--engine a100 --format half --distribution uniform_nonnegative", ""),
    ),
    "whodunit": (
        ("A.npy B.npy C.npy", "which instruction, order of k or method made C?"),
        ("A.npy B.npy C.npy --format e4m3fn", "operands are encodings of FP8"),
        (
            "A.npy B.npy C.npy --gpu h100 --library cublaslt-13.1 --config ALGO_ID=66,STAGES_ID=35",
            "a library's kernel among the candidates",
        ),
    ),
    "identify": (
        ("--instruction volta:mma.m8n8k4.f32.f16.f16.f32", "a catalogued unit as a black box"),
        ("--engine cpu:vdpbf16ps --html unit.html", "this machine's own unit; a page to keep"),
        ("--python my_model:dot --a-format bf16 --d-format fp32 --k 8", "a function f(a, b, c) of your own"),
    ),
    "distinguish": (
        (
            "ampere:mma.m16n8k16.f32.f16.f16.f32 hopper:mma.m16n8k16.f32.f16.f16.f32",
            "an input on which two units differ",
        ),
    ),
    "beats": (("markidis ootomo --engine v100", "FP32 operands on which adding c inside of the core is nearer"),),
    "info": (("", "versions, kernels, instruction sets, engines"),),
    "selftest": (("", "about half a minute"), ("--seconds 120", "more of it")),
    "plan": (
        ("4096 4096 4096 --chip 910A", "blocks, grid and order for one product (m k n)"),
        ("32 4096 11008 --chip 910A --chip 910B3 --tiling", "two chips, and what to type into the kernel"),
        ("128 7168 2048 --chip 910B3 --pareto", "time against bits"),
    ),
    "simulate": (
        ("--block 176,64,176 --trace trace.json", "one schedule; the trace opens in Perfetto"),
        ("4096 4096 4096 --chip 910B3 --waterfall", "where the time goes"),
        ("--published", "predictions beside published numbers"),
    ),
    "predict": (
        (
            "A.npy B.npy --gpu h100 --library cublaslt-13.1 --config ALGO_ID=66,STAGES_ID=35 --format fp16 "
            "--input-rounding rne",
            "the bits that cuBLASLt returns",
        ),
    ),
    "diff": (
        ("A.npy B.npy C1.npy C2.npy --gpus a100 h100 --format fp16", "where and why do two GPUs' results differ?"),
    ),
    "invariance": (
        ("--recorded chosen.json", "which weights' rows change their bits with the batch?"),
        (
            "--gpu h100 --library cublaslt-13.1 --shape 4096 4096 --config 1:ALGO_ID=13,CUSTOM_OPTION=42 "
            "64:ALGO_ID=66,STAGES_ID=35",
            "the same for configurations that are known",
        ),
    ),
    "trace": (
        ("compare training rollout", "two folders of recorded tensors"),
        ("compare a100 h100 --logits model.lm_head --no-recipes", "the module of the logits by its name"),
    ),
    "report": (
        ("out", "one page of what --out wrote"),
        ("out1 out2 --out page.html --title 'Our layers'", "a page that opens without a network"),
    ),
    "completion": (("bash", "then: source <(mpgemm completion bash)"),),
}


def epilog(command: str) -> str:
    """The examples of one command as `--help` shows them."""
    lines = []
    for arguments, meaning in EXAMPLES.get(command, ()):
        lines += [f"  # {meaning}"] if meaning else []
        lines.append(f"  mpgemm {command} {arguments}".rstrip())
    return "\n".join(["examples:", *lines]) if lines else ""
