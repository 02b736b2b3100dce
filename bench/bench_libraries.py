"""This benchmark compares predictions of libraries' results with the plain product on the same instruction, interleaved.

    python bench/bench_libraries.py [--size 2048] [--threads 1] [--quick] [--cpu-time] [--json out/libraries.json]

The ratio is the cost of a recipe's chains, restarts, merges and epilogue over `gemm_bits` of its engine.
"""

from functools import partial

from harness import interleaved, prepared, report, rows


def recipes(libraries, size: int) -> dict:
    """Return recipes by name, with the format of the operands."""

    def cublaslt(**config):
        return libraries.cublaslt("h100", "13.1", m=size, k=size, n=size, format="fp16", config=config)

    return {
        "nvjet, split-k 4": (
            cublaslt(ALGO_ID=66, STAGES_ID=35, SPLITK_NUM=4, REDUCTION_SCHEME=2, CUSTOM_OPTION=0),
            "fp16",
        ),
        "gemmSN": (cublaslt(ALGO_ID=11, CUSTOM_OPTION=1), "fp16"),
        "CUTLASS, 4 serial slices": (
            libraries.cutlass("h100", k=size, split_k=4, split_mode="serial"),
            "fp16",
        ),
        "scaled_mm, slow, 3 pairwise parts": (
            libraries.scaled_mm_recipe(size, split_k=3, scheme="pairwise"),
            "e4m3fn",
        ),
    }


def main() -> None:
    args = prepared(__doc__, size=2048, quick=False, cpu_time=False)
    import numpy as np

    import tensorcore_models as tcm
    from tensorcore_models import libraries

    tcm.set_num_threads(args.threads)
    rng, size, records = np.random.default_rng(1), args.size, []
    for name, (recipe, fmt) in recipes(libraries, size).items():
        a, b = (tcm.encode(rng.standard_normal((size, size)), fmt) for _ in range(2))
        functions = {
            "gemm_bits": partial(recipe.engine.gemm_bits, a, b),
            "recipe": partial(recipe.gemm_bits, a, b, out_format="fp32"),
        }
        timings = interleaved(functions, 3 if args.quick else 9, warm_up=1, clock=args.clock)
        records += rows(f"{name}, {size}^3,", timings, "gemm_bits", size**3)
    report(records, args.json)


if __name__ == "__main__":
    main()
