"""Compile a file of `plan --emit triton` with triton-ascend as far as that goes without CANN; run by a Python that has it.

Front end, then the adapter that turns Triton's dialect into linalg. Prints a JSON object of each kernel's products in both, and
of the version. Its host's torch is not needed.
"""

import importlib.metadata
import importlib.util
import json
import sys
import types


def emitted(path):
    """The module of an emitted file."""
    sys.modules.setdefault("torch", types.ModuleType("torch"))
    spec = importlib.util.spec_from_file_location("emitted_gemm", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(function, signature, constants):
    """Products of a kernel in Triton's dialect and in linalg."""
    from triton._C.libtriton import ir
    from triton.backends.ascend.compiler import AscendBackend, make_ttir, ttir_to_linalg
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import ASTSource

    backend = AscendBackend(GPUTarget("npu", "Ascend910B3", 0))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({"enable_fp_fusion": False})
    source = ASTSource(function, signature | dict.fromkeys(constants, "constexpr"), constants)
    made = source.make_ir(options, backend.get_codegen_implementation(), backend.get_module_map(), context)
    metadata = dict(options.__dict__)
    made = make_ttir(made, metadata, options)
    return {
        "tt.dot": str(made).count("tt.dot"),
        "linalg.matmul": ttir_to_linalg(made, metadata, options).count("linalg.matmul"),
    }


def main(path):
    """Both kernels of a file."""
    module = emitted(path)
    sizes = dict.fromkeys(("rows", "columns", "x_row", "x_column", "plane"), "i32")
    strides = dict.fromkeys(("a_row", "a_k", "a_plane", "b_k", "b_column", "b_plane"), "i32")
    found = {
        "split_words": compiled(
            module.split_words, {"x": "*fp32", "out": "*fp16"} | sizes, {"BLOCK": module.SPLIT_BLOCK}
        ),
        "gemm": compiled(module.gemm, {"a": "*fp16", "b": "*fp16", "c": "*fp32"} | strides, module.GEMM),
        "version": importlib.metadata.version("triton-ascend"),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
