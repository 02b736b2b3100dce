"""Runs torch's matrix products on emulated matrix units, by a dispatch mode that sends every product to an engine.

The mode sees operations that torch dispatches after autograd, in forward and backward passes: `mm`, `addmm`, `bmm`, `baddbmm`,
convolutions, and products with scales, of groups and of integers (:mod:`mpgemm.frameworks.torch_scaled`). `linear`, `matmul`,
`einsum` and the math path of attention consist of these. A product that this module cannot emulate raises an error, or with
``strict=False`` runs natively and is counted.

A product ends as :meth:`tensorcore_models.Instruction.gemm` ends it for alpha or beta other than 1: the engine's sum starts
from +0; RN(RN(alpha sum) + RN(beta c)) is computed in the format of the sum and rounded once to the output's type. A
convolution's bias is added after this rounding in the output's type, as torch does with cuDNN.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

import torch
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.module_tracker import ModuleTracker

from mpgemm.frameworks import torch_operations as operations
from mpgemm.frameworks.call_log import CallLog, Report, Site
from mpgemm.frameworks.multiplier import Multiplier, Product, multipliers
from mpgemm.frameworks.torch_attention import SdpaChoice, SdpaMode
from mpgemm.frameworks.torch_batches import ended, from_host, multiplied, run_batch
from mpgemm.frameworks.torch_dispatch import deliver, forms_a_product, parts_of, unseen, without_values
from mpgemm.frameworks.torch_handlers import HANDLERS, SCALED
from mpgemm.frameworks.torch_process import PROCESS, OpenBlock, open_here
from mpgemm.frameworks.torch_tensors import adds_in_fp16, allows_tf32, format_of, same_bits, to_array
from tensorcore_models.formats.tf32_roundings import tf32_rounding
from tensorcore_models.gpu.tensors import on_gpu

aten = torch.ops.aten
OUTSIDE = "(outside of modules)"
#: Functions that are called with (operation, arguments, keywords, result) after each emulated product.
WATCHERS: list[Callable] = []

_INSTEAD = {
    "mv": "write it as a product of matrices: (A @ x[:, None])[:, 0]",
    "dot": "write it as a product of matrices: (x[None] @ y[:, None])[0, 0]",
    "_euclidean_dist": "pass compute_mode='donot_use_mm_for_euclid_dist' to cdist, which then forms no product",
    "affine_grid_generator": "form the grid with torch.bmm",
    "linalg_pinv": "solve the least-squares problem, or form it from an SVD with torch.matmul",
    "flex_attention": "write it as scaled_dot_product_attention, with the score and the mask in attn_mask",
    "_scaled_dot_product_flash_attention_for_cpu": "leave the backend to emulate(), which takes the math path",
}


#: Operations that add outer products to a matrix, which torch computes element by element, without a matrix unit.
_OUTER = (aten.addr, aten.addr_)
_OUTER_NOTE = "addr ran natively: torch forms outer products element by element, without a matrix unit"


class _Tracker(ModuleTracker):
    """`_Tracker` tracks which modules run, and also leaves a module that raises."""

    def __enter__(self):
        super().__enter__()
        self._fw_post_handle.remove()
        self._fw_post_handle = register_module_forward_hook(self._fw_post_hook, always_call=True)
        return self


class Emulation(TorchDispatchMode):
    """`Emulation` runs products on engines; :func:`emulate` makes it and has the same parameters.

    Attributes
    ----------
    multipliers : list of Multiplier
        One multiplier for each engine; the program gets the results of the first.
    """

    supports_higher_order_operators = True

    def __init__(
        self, targets: list[Multiplier], strict: bool, errors: bool, sdpa: SdpaChoice, libraries: str | None = None
    ):
        super().__init__()
        self.libraries = libraries
        self._sdpa = sdpa
        self.multipliers, self.strict, self.errors = targets, strict, errors
        self._log = CallLog([each.name for each in targets])
        self.tracker = _Tracker()
        self._forward_sites: dict[int, str] = {}  # module paths by the number of the autograd node

    def report(self) -> Report:
        """Return the report of the calls so far, by call site."""
        return self._log.report()

    # -- dispatch ---------------------------------------------------------------------------------------------------------
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            advice = _INSTEAD.get(func.name(), "write it in eager operations")
            raise NotImplementedError(
                f"{func.name()}: its products are not emulated: {advice}. strict=False has no effect on it, because torch must "
                "compile it, which it cannot do under a mode"
            )
        if any(issubclass(t, FakeTensor) for t in types):
            return func(*args, **kwargs)
        if any(t not in (torch.Tensor, torch.nn.Parameter) for t in types):
            return NotImplemented  # so that torch asks the subclass, which divides the operation
        handler = HANDLERS.get(func.overloadpacket)
        if self.libraries is not None and func.overloadpacket.__name__ in operations.WHOLE:
            return self._other(func, args, kwargs)
        if handler is None and (parts := parts_of(func)) is not None:
            with self:
                return parts(*args, **kwargs)
        if handler is None and not forms_a_product(func.overloadpacket) and not unseen(func):
            if func.overloadpacket in _OUTER:
                self.note(_OUTER_NOTE)
            return func(*args, **kwargs) if self.libraries is None else self._other(func, args, kwargs)
        if without_values(args):
            return func(*args, **kwargs)
        try:
            name = func.overloadpacket.__name__
            if handler is None:
                if unseen(func):
                    raise NotImplementedError(
                        f"{func.name()} is an operation whose code cannot be seen, so it is not known whether it multiplies: "
                        "write it with torch.library.custom_op in Python, or pass strict=False"
                    )
                advice = _INSTEAD.get(name.rstrip("_"), "write it with torch.matmul")
                raise NotImplementedError(f"{name}: its products are not emulated: {advice}, or pass strict=False")
            if any(isinstance(x, torch.Tensor) and x.layout != torch.strided for x in args):
                raise TypeError(f"{name} got a sparse tensor, expected a dense tensor: convert it with .to_dense()")
            ends = {k: v for k, v in kwargs.items() if k != "out"}
            there = name in SCALED and on_gpu(args[0])
            found = from_host(self, handler, args, ends) if there else handler(self, *args, **ends)
            for watch in WATCHERS:
                watch(func, args, kwargs, found)
            return deliver(func, found, args, kwargs)
        except (ValueError, TypeError, NotImplementedError) as error:
            self._refuse(func, error)
            return func(*args, **kwargs)

    def _other(self, func, args, kwargs):
        """Compute an operation that forms no product as the named libraries do, and count it in the report."""
        name = func.overloadpacket.__name__
        if without_values(args):
            return func(*args, **kwargs)
        try:
            exact = operations.run_exactly(func, args, kwargs)
            if exact is not None:
                self._log.operate(name, exact.basis, operations.elements(exact.value))
                return exact.value
            found = operations.compute(func, args, kwargs)
            if found is None:
                raise NotImplementedError(
                    f"{func}: the way in which {self.libraries} computes it on {self.multipliers[0].name} is not known: pass "
                    "strict=False to run it natively and count it"
                )
        except (ValueError, TypeError, NotImplementedError) as error:
            self._refuse(func, error)
            native = func(*args, **kwargs)
            self._log.operate(name, f"native: {error}", operations.elements(native))
            return native
        self._log.operate(name, found.basis, operations.elements(found.value))
        return deliver(func, found.value, args, kwargs)

    def fused_norm(self, input: torch.Tensor, normalized_shape, weight=None, eps=None) -> torch.Tensor:
        """Compute `rms_norm`, which torch runs as several operations on a CPU, and as one kernel on a GPU."""
        norm, args = aten.rms_norm.default, (input, normalized_shape, weight, eps)
        if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (input, weight)):
            self._refuse(norm, NotImplementedError("gradients of rms_norm's kernel are not known: use torch.no_grad()"))
            return norm(*args)
        return self._other(norm, args, {})

    def _refuse(self, func, error: Exception) -> None:
        """Raise the error that keeps an operation from being emulated, or count it if the block is not strict."""
        if self.strict:
            # Operators of tensors would replace a TypeError by one of their own.
            raised = ValueError(str(error)) if isinstance(error, TypeError) else error
            raised.add_note(f"while {func} in {self.site()[0]} ran on {self.multipliers[0].name}")
            raise raised from None
        self._log.fall_back(f"{func}: {error}")

    @contextmanager
    def in_this_thread(self) -> Iterator[None]:
        """Run this thread's products, and those of threads that it starts, on the engines."""
        sdpa = SdpaMode(self, self._sdpa)
        with open_here(OpenBlock(self.in_this_thread, sdpa.call)), sdpa, self:
            yield

    def site(self) -> tuple[str, str]:
        """Return (path of the innermost module that runs, "forward" or "backward")."""
        path = max(self.tracker.parents - {"Global"}, key=len, default=OUTSIDE)
        if not self.tracker.is_bw:
            if torch.is_grad_enabled():  # if autograd needs a node for this operation, it has just made it
                self._forward_sites.setdefault(torch.autograd._get_sequence_nr() - 1, path)
            return path, "forward"
        node = torch._C._current_autograd_node()
        return self._forward_sites.get(-1 if node is None else node._sequence_nr(), path), "backward"

    # -- products ---------------------------------------------------------------------------------------------------------
    def products(
        self,
        op: str,
        a: torch.Tensor,
        b: torch.Tensor,
        out_dtype=None,
        c=None,
        *,
        alpha=1,
        beta=1,
        kind: str = "matmul",
    ) -> torch.Tensor:
        """Compute alpha A B + beta C for a batch of matrices on every engine, and return the first engine's result.

        The result's type is a's by default. `op` is the name for the report; `kind` ("matmul" or "convolution") says which of
        torch's precision flags apply.
        """
        out_dtype = out_dtype or a.dtype
        if on_gpu(a):
            return self._on_gpu(op, a, b, out_dtype, None if beta == 0 else c, alpha, beta, kind)
        arrays = to_array(a, "a"), to_array(b, "b")
        product = self._product(op, a, b, out_dtype, kind)
        added = None if c is None or beta == 0 else to_array(c, "c")
        multiply = partial(
            run_batch, arrays=arrays, product=product, added=added, alpha=alpha, beta=beta, out_dtype=out_dtype
        )
        return self.on_all(product, a.shape[0], arrays, multiply)

    def _product(self, op: str, a: torch.Tensor, b: torch.Tensor, out_dtype: torch.dtype, kind: str) -> Product:
        """Return the product's sizes and formats, for the report and for the choice of an engine."""
        formats = [self._operand_format(x.dtype, name, kind) for x, name in ((a, "a"), (b, "b"))]
        out_format = format_of(out_dtype, "the result")
        sums = "fp16" if formats == ["fp16", "fp16"] and out_format == "fp16" and adds_in_fp16() else "fp32"
        return Product(op, a.shape[1], a.shape[2], b.shape[2], formats[0], formats[1], out_format, sums)

    def _on_gpu(self, op: str, a, b, out_dtype: torch.dtype, c, alpha: float, beta: float, kind: str) -> torch.Tensor:
        """Compute :meth:`products` for tensors of a GPU, which stay there.

        The host computes recipes and sums in FP16 that continue, with long chains on the GPU.
        """
        product = self._product(op, a, b, out_dtype, kind)

        def multiply(each: Multiplier):
            plain = out = None
            if each.recipe_for(product) is None:
                sums = multiplied(each, a, b, product)
                plain = sums.to(out_dtype)
                out = plain if alpha == 1 and c is None else ended(sums, c, alpha, beta)
            if out is None or plain is None:
                arrays = to_array(a.cpu(), "a"), to_array(b.cpu(), "b")
                added = None if c is None else to_array(c.cpu(), "c")
                ends = {"added": added, "alpha": alpha, "beta": beta, "out_dtype": out_dtype}
                out, parts = run_batch(each.beside(a), arrays=arrays, product=product, **ends)
                plain = torch.stack(parts)
            return out.to(a.device, out_dtype), plain.cpu() if self.errors else plain

        arrays = [to_array(x.cpu(), name) for x, name in ((a, "a"), (b, "b"))] if self.errors else [a, b]
        return self.on_all(product, a.shape[0], arrays, multiply)

    def _operand_format(self, dtype: torch.dtype, name: str, kind: str) -> str:
        fmt = format_of(dtype, name)
        return "tf32" if fmt == "fp32" and allows_tf32(kind) else fmt

    def on_all(
        self,
        product: Product,
        batch: int,
        arrays,
        multiply: Callable[[Multiplier], tuple],
        end: str = "",
        describe=None,
    ) -> torch.Tensor:
        """Compute a product of `batch` matrices on all engines, and return the first engine's result.

        `arrays` holds A and B. `multiply` returns for a multiplier the result and the products before c is added, in the
        output's type. `describe` returns engine and order of k as texts, by default those of plain products. `end` names
        operations on the sums.
        """
        found = []
        for each in self.multipliers:
            try:
                found.append(multiply(self._rounding_as_the_library(each, product)))
            except ValueError as error:
                if "tf32" in (product.a_format, product.b_format) and each.input_rounding is None:
                    raise ValueError(f"{error}. {_TF32_ADVICE}") from None
                raise
        out, plain = found[0]
        described = [describe(each) if describe else each.describe(product) for each in self.multipliers]
        formats = f"{product.a_format} x {product.b_format} to {product.out_format}{f', {end}' if end else ''}"
        sizes = batch, product.m, product.k, product.n
        if self.libraries is not None:
            self._log.operate(product.op, self._basis(product), out.numel())
        site = self._add(product.op, sizes, formats, described, [out for out, _ in found])
        if self.errors:
            for index in range(batch):
                self._log.measure(site, arrays[0][index], arrays[1][index], to_array(plain[index], "result"))
        return out

    def _basis(self, product: Product) -> str:
        """Return the basis of a product's bits."""
        if self.multipliers[0].recipe_for(product) is not None:
            return operations.RECORDED
        return operations.IEEE if product.k == 1 else operations.inferred("one chain over k is assumed")

    def _rounding_as_the_library(self, each: Multiplier, product: Product) -> Multiplier:
        """Return the multiplier with the library's rounding to TF32, if no rounding is named and the library's is known.

        This holds for matrix products in TF32 alone; the report names the source of the rounding.
        """
        if "tf32" not in (product.a_format, product.b_format) or each.input_rounding is not None:
            return each
        known = None if "conv" in product.op else tf32_rounding("cublas", each.device)
        if known is None:
            return each
        self.note(f"{each.name}: FP32 operands are rounded to TF32 {known}")
        return replace(each, input_rounding=known.rounding)

    def attention(
        self, outputs: Callable[[Multiplier], torch.Tensor], arrays, fmt: str, orders: list[str]
    ) -> torch.Tensor:
        """Compute attention on all engines, and return the first engine's output.

        `arrays` holds Q, K and V of all heads; the report's row shows the number of keys as k.
        """
        found = [outputs(each) for each in self.multipliers]
        described = [
            (each.engine_for(fmt, fmt).label, order) for each, order in zip(self.multipliers, orders, strict=True)
        ]
        if self.libraries is not None:
            kernel, _, basis = orders[0].partition(" (")
            self._log.operate(f"{kernel} attention", basis.removesuffix(")"), found[0].numel())
        sizes = *arrays[0].shape[:2], arrays[1].shape[1], arrays[2].shape[2]
        self._add("scaled_dot_product_attention", sizes, f"{fmt} x {fmt} to {fmt}", described, found)
        return found[0]

    def _add(
        self, op: str, sizes: tuple[int, int, int, int], formats: str, described, outs: list[torch.Tensor]
    ) -> Site:
        """Count a call; `described` and `outs` hold engines, orders and results of all engines."""
        engines, orders = zip(*described, strict=True)
        site = Site(*self.site(), op, *sizes, formats, engines, orders)
        differing = tuple(int((~same_bits(outs[0], other)).sum()) for other in outs[1:])
        self._log.add(site, outs[0].numel(), differing)
        return site

    def note(self, text: str) -> None:
        """Add a remark to the report."""
        self._log.note(text)


_TF32_ADVICE = (
    "Torch's flags let the GPU form this FP32 product in TF32, but the library's rounding to TF32 is not known for this device "
    "and operation: pass input_rounding='rne' (cuBLAS 13.0 on an H100, measured), 'rna' (cuBLAS on GPUs of 2020, published) or "
    "'rz' (Triton's tl.dot, where the unit ignores the low bits), or turn TF32 off "
    "(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)"
)


@contextmanager
def emulate(
    engine,
    *,
    k_order="sequential",
    promote_every: int | None = None,
    recipe=None,
    input_rounding: str | None = None,
    input_saturate: bool = False,
    strict: bool = True,
    errors: bool = False,
    sdpa: str = "auto",
    libraries: str | None = None,
) -> Iterator[Emulation]:
    """Run the matrix products of a torch program, forward and backward, on emulated matrix units.

    Parameters
    ----------
    engine : str, Engine or sequence of them
        Engine of the products, or several engines. A device or architecture ("h100"; "h100/mma" names the path) runs each
        product on the instruction for its operands' types, and FP32 (not TF32) on fused multiply-adds. An instruction
        "arch:name" or an engine runs every product; so does "ieee". With several engines the program gets the results of the
        first, and the report says where the others give other bits on the same operands.
    k_order, promote_every : optional
        Order of k, as for :meth:`tensorcore_models.Instruction.gemm`. The default, one chain, is an assumption about the
        library.
    recipe : Recording or callable, optional
        Recipes of the library, in place of `k_order`: a recording of its choices
        (:func:`tensorcore_models.libraries.load_recording`), or a function from a :class:`Product` to a
        :class:`tensorcore_models.libraries.Recipe`, or to None for the engine's order.
    input_rounding, input_saturate : optional
        Rounding of values that an operand format lacks, as for :meth:`tensorcore_models.Instruction.gemm`. Needed for FP32 if
        torch's flags allow TF32.
    strict : bool
        Whether a product that cannot be emulated raises. If False, it runs natively, and the report counts it.
    errors : bool
        Whether to measure each product's error against the exact product and against FP32, which takes several times as long.
    sdpa : {"auto", "math", "cudnn", "flash", "flash:KEYS", "efficient"}
        Computation of `scaled_dot_product_attention`. "math" is torch's math path, which the report notes for FP16 and BF16.
        "cudnn", "flash" and "efficient" are torch's kernels as recorded on an H100
        (:func:`tensorcore_models.libraries.attention`). "flash:KEYS" is FlashAttention 2's algorithm on the unit with KEYS keys
        in a tile, a prediction; so is "flash" on other devices, with 128 keys. "auto" is the math path, or with `libraries`
        cuDNN, torch's choice there.
    libraries : {"torch-2.11"}, optional
        Version of torch as which all other operations (functions, norms, softmax, sums, rotations) are computed, too. The
        report's `operations` state the basis of their bits; an operation that is not known raises, or runs natively with
        ``strict=False``. Takes one engine, "h100", and tensors on the CPU.

    Yields
    ------
    Emulation
        Context whose `report()` lists the calls.

    Raises
    ------
    ValueError, TypeError
        If the engine does not exist, or options contradict each other; inside of the block for types, layouts and values that
        an engine does not take.
    NotImplementedError
        Inside of the block, for products that cannot be emulated.

    Examples
    --------
    >>> import torch
    >>> a, b = torch.randn(8, 32).half(), torch.randn(32, 4).half()
    >>> with emulate(["h100", "a100"]) as run:
    ...     c = a @ b
    >>> run.report().rows[0].site.engines
    ('hopper:mma.m16n8k16.f32.f16.f16.f32', 'ampere:mma.m16n8k16.f32.f16.f16.f32')
    """
    targets = multipliers(
        engine, k_order=k_order, promote_every=promote_every, recipe=recipe, input_rounding=input_rounding,
        input_saturate=input_saturate,
    )  # fmt: skip
    if libraries is not None:
        operations.check_libraries(libraries, [each.device for each in targets])
    run = Emulation(targets, strict, errors, SdpaChoice.of(sdpa), libraries)
    with ExitStack() as stack:
        stack.enter_context(PROCESS)
        stack.enter_context(run.tracker)
        stack.enter_context(run.in_this_thread())
        yield run
