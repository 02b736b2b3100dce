"""Defines the functions that users call, `matmul` and `split`."""

import math

import torch

from mpgemm.kernels import devices
from mpgemm.kernels.calls import RESULT_TYPES, KnownCall, call_key
from mpgemm.kernels.configurations import TUNED, Configuration, choose
from mpgemm.kernels.epilogues import PLAIN, FusedEpilogue
from mpgemm.kernels.forms import kernel_form
from mpgemm.kernels.products import OPERANDS, TYPES, SplitTensor, TensorProduct, split_matrices
from mpgemm.kernels.recipes import DEFAULT, GRADIENTS, recipe, recipe_for, spelled
from mpgemm.kernels.residue_tensors import residue_product
from mpgemm.kernels.residues import RESIDUES, residue_method
from mpgemm.kernels.verification import verify as verify_sample
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.parts import PART_UNIT


@torch.library.custom_op("mpgemm::recovered_product", mutates_args=())
def recovered_product(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, a_words: torch.Tensor | None, a_exponents: torch.Tensor | None,
    b_words: torch.Tensor | None, b_exponents: torch.Tensor | None, bias: torch.Tensor | None, ends: list[float], method: str,
    scale: str, repair: bool, parts: int, unit: str, tile: list[int], epilogue: str,
) -> torch.Tensor:  # fmt: skip
    """Return alpha A B + beta C with the epilogue for a batch of matrices, shapes (batch, m, k), (batch, k, n), (batch, m, n).

    The parameters are tensors, numbers and texts, because operations of torch take no others.

    a_words, a_exponents, b_words, b_exponents: Words and exponents (:class:`SplitTensor`) of operands that were split before.
    ends: alpha and beta.
    tile: Fields of a configuration, or an empty list.
    epilogue: Fields of the epilogue as a text.
    """
    out = _shape(a, b, epilogue)
    configuration, end = Configuration(*tile) if tile else None, FusedEpilogue.read(epilogue)
    words = (a_words, a_exponents, b_words, b_exponents)
    row = recipe(method, scale, repair, parts)
    TensorProduct(row, a, b, c, ends[0], ends[1], unit, configuration, words, end, bias).into(out)
    return out


def _shape(a: torch.Tensor, b: torch.Tensor, epilogue: str) -> torch.Tensor:
    kind = devices.TENSOR_TYPES[FusedEpilogue.read(epilogue).result]
    return a.new_empty((a.shape[0], a.shape[1], b.shape[2]), dtype=kind)


@recovered_product.register_fake
def _fake(a, b, *rest):
    return _shape(a, b, rest[-1])


_NOT_SPLIT = (None, None, None, None)


def _keep(ctx, inputs, output):
    (a, b), (ctx.alpha, ctx.beta), (method, scale, repair, _, unit) = inputs[:2], inputs[8], inputs[9:14]
    ctx.save_for_backward(a, b)
    ctx.options = GRADIENTS.get(method.partition(":")[0], method), scale, repair, unit


def _backward(ctx, grad):
    """Return gradients by the same method."""
    a, b = ctx.saved_tensors
    left = right = None
    method, scale, repair, unit = ctx.options

    def product(x, y):
        parts = recipe_for(y.shape[2], y.shape[1], method, scale, repair).parts
        return recovered_product(
            x, y, None, *_NOT_SPLIT, None, [ctx.alpha, 1.0], method, scale, repair, parts, unit, [], str(PLAIN)
        )

    if ctx.needs_input_grad[0]:
        left = product(grad, b.mT.float()).to(a.dtype)
    if ctx.needs_input_grad[1]:
        right = product(a.mT.float(), grad).to(b.dtype)
    added = grad * ctx.beta if ctx.needs_input_grad[2] else None
    return (left, right, added, *(None,) * 13)


recovered_product.register_autograd(_backward, setup_context=_keep)


def split(
    x: torch.Tensor,
    method: str | RecoveryMethod = DEFAULT,
    *,
    side: str = "b",
    scale: str = "auto",
    repair: bool = True,
    **options,
) -> SplitTensor:
    """Split an operand into words once, for many products.

    Parameters
    ----------
    x : Tensor, shape (k, n) or (batch, k, n) for side "b", (m, k) or (batch, m, k) for side "a"
        Operand, which must not change while the result is used. Gradients with respect to it are those of the product of the
        unsplit operand.
    method, scale, repair, **options
        Arguments of :func:`matmul`.
    side : {"b", "a"}
        Whether x is operand A or B of the products.

    Returns
    -------
    SplitTensor
        Object that :func:`matmul` takes in place of x; the results have the same bits.
    """
    if side not in ("a", "b"):
        raise ValueError(f"side is {side!r}, expected 'a' or 'b'")
    text = spelled(method, options)
    if text.partition(":")[0] == RESIDUES:
        raise ValueError(f"method is {text}, whose operands cannot be split beforehand: pass the tensors to matmul")
    row = recipe(text, scale, repair)
    _check_type(x, side, text)
    if x.dim() not in (2, 3):
        raise ValueError(f"{side} has shape {tuple(x.shape)}, expected two or three dimensions: reshape {side}")
    source = x if x.dim() == 3 else x[None]
    words = exponents = None
    if devices.device_target(x.device) is not None:
        words, exponents = split_matrices(source.detach(), "ab".index(side), row)
    return SplitTensor(source, words, exponents, row, text, scale, repair, "ab".index(side), tuple(x.shape))


def matmul(
    a: torch.Tensor | SplitTensor,
    b: torch.Tensor | SplitTensor,
    method: str | RecoveryMethod | None = None,
    out: torch.Tensor | None = None,
    c: torch.Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    config: Configuration | str | None = None,
    *,
    scale: str | None = None,
    repair: bool | None = None,
    verify: bool = False,
    deterministic: bool = True,
    unit: str = "h100",
    bias: torch.Tensor | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype = torch.float32,
    **options,
) -> torch.Tensor:
    """Compute alpha A B + beta C with FP32 accuracy on matrix units of lower precision.

    :func:`mpgemm.kernels.recipe` predicts the bits of the result.

    Parameters
    ----------
    a, b : Tensor or SplitTensor, shapes (..., m, k) and (..., k, n)
        Operands of any strides, of float32, or of narrower types whose values FP32 holds; of float64 for the method
        ozaki2_int8. For the methods bf16xfp32, `a` must be bfloat16. Batches are broadcast as :func:`torch.matmul` does.
    method : str or RecoveryMethod, optional
        Name in :data:`mpgemm.kernels.forms.KERNELS` with options after a colon, or a method that you define. By default the
        method by which an operand was already split, else ootomo_tf32.
    out : Tensor of `out_dtype`, optional
        Tensor for the result; it may be c, and must not share memory with a and b.
    c : Tensor of float32, optional
        Addend, broadcast to the result.
    alpha, beta : float
        Factors. If one is not 1, the result is RN(RN(alpha A B) + RN(beta C)); beta = 0 ignores c.
    config : Configuration or "tune", optional
        Tile, warps and stages, which do not affect the bits. By default a model that counts operations chooses them. "tune"
        times the configurations on the device at the first product of a shape and keeps the fastest in torch's cache; on the
        CPU nothing is timed.
    scale : {"auto", "rows", "none"}, optional
        Whether rows of A and columns of B are scaled by powers of two first: "rows" scales them, "none" does not, and "auto"
        (default) scales them if the words are fp16.
    repair : bool, optional
        Whether results that are not finite are computed again as FP32 chains (default), so that infinities, NaNs and elements
        beyond the words' range give the results of FP32.
    verify : bool
        Whether a sample of the result is compared with the method's certified bound.
    deterministic : bool
        If True, k is split into parts whose number depends only on n, k and the method
        (:func:`mpgemm.recovery.parts.parts_of`). Then the bits of a row of the result depend only on that row of A and on B.
        If False, k of a product with few tiles may be split into more parts. Their number depends on the device and on m, and
        the bits depend on it.
    unit : str
        Device whose matrix unit is simulated for tensors on the CPU.
    bias : Tensor, shape (n,) or (m, 1), optional
        One number for each column or row, which the kernel adds to alpha A B + beta C and rounds to nearest.
    activation : {"relu", "silu", "gelu", "gelu_tanh"}, optional
        Function that the kernel applies to the sum, with the bits of torch's function on NVIDIA's GPUs
        (:func:`tensorcore_models.get_function` with "torch.silu", for example).
    out_dtype : torch.dtype
        Type to which the kernel rounds the result, to nearest even: float32, bfloat16 or float16.
    **options
        Options of the method.

    Returns
    -------
    Tensor of `out_dtype`, shape (..., m, n)

    Raises
    ------
    ValueError, TypeError
        If shapes, types, method or configuration do not fit, or the device cannot multiply the words; the message says what
        fits.
    mpgemm.bounds.watching.OutsideBound
        With `verify`, if an element is outside of its bound.
    """
    if told := next((f"{name}: {_NOT_HERE[name]}" for name in options if name in _NOT_HERE), None):
        raise TypeError(f"matmul has no option {told}")
    asked: tuple = (method, alpha, beta, config, scale, repair, deterministic, activation, out_dtype)
    key = None if verify else call_key(a, b, out, c, bias, asked, options)
    if key is not None and (known := _KNOWN.get(key)) is not None:
        return known(a, b, out, c, bias)
    if isinstance(method, str) and method.partition(":")[0] == RESIDUES:
        _check_doubles(method, scale, repair, bias, activation, out_dtype)
        return _doubles(a, b, spelled(method, options), out, c, float(alpha), float(beta), config, verify, unit)
    text, scale, repair = _asked(a, b, method, scale, repair, options)
    left, right = (x.source.reshape(x.shape) if isinstance(x, SplitTensor) else x for x in (a, b))
    for x, side in ((left, "a"), (right, "b")):
        _check_type(x, side, text)
    shape, x, y = _batches(left, right)
    tiles = checked_configuration(config)
    _check_ends(left, right, c, out, shape, torch.float32, out_dtype)
    sizes = x.shape[0], x.shape[1], y.shape[2]
    added = None if c is None or beta == 0 else c.expand(shape).reshape(sizes)
    words = (*_words(a), *_words(b))
    row = recipe_for(sizes[2], x.shape[2], text, scale, repair)
    if not deterministic:
        row = recipe(text, scale, repair, max(int(row.parts), idle_parts(x, y, row, tiles)))
    epilogue, ended = _epilogue(bias, activation, out_dtype, left, right, sizes[1])
    if epilogue:
        _check_epilogue(verify, left, right, c, bias)
    place = None if out is None or (verify and c is out) or not _fits(out, x, y, c, bias) else out.reshape(sizes)
    pairs = ((x, left), (y, right), (added, c), (ended, bias))
    same = key is not None and all(
        mine is None or given is None or mine.data_ptr() == given.data_ptr() for mine, given in pairs
    )
    if key is not None and same and (place is not None or out is None) and x.numel() and y.numel():
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        product = TensorProduct(row, x, y, added, float(alpha), float(beta), unit, tiles, epilogue=epilogue, bias=ended)
        _KNOWN[key] = KnownCall(product, shape)
        return _KNOWN[key](a, b, out, c, bias)
    if place is None:
        tile = [] if tiles is None else [*tiles.to_dict().values()]
        factors = [float(alpha), float(beta)]
        result = recovered_product(
            x, y, added, *words, ended, factors, text, scale, repair, row.parts, unit, tile, str(epilogue)
        )
    else:
        result, added = place, place if c is out and beta != 0 else added
        TensorProduct(row, x, y, added, float(alpha), float(beta), unit, tiles, words, epilogue, ended).into(result)
    if verify:
        verify_sample(row, x, y, added, float(alpha), float(beta), result, unit)
    if out is None:
        return result.reshape(shape)
    return out if place is not None else out.copy_(result.reshape(shape))


#: Options of other libraries' products, and their equivalents here.
_NOT_HERE = {
    "residual": "pass c=residual, which is added to the product, before bias and activation",
}
#: Calls whose checks passed, by the key of :func:`mpgemm.kernels.calls.call_key`.
_KNOWN: dict[tuple, KnownCall] = {}
_MOST_KNOWN = 1024


def _ended(result: torch.Tensor, added: torch.Tensor | None, alpha: float, beta: float) -> torch.Tensor:
    """Return alpha result + beta added, with each product and the sum rounded."""
    result = result if (alpha, beta) == (1, 1) else result * alpha
    return result if added is None else result + (added if (alpha, beta) == (1, 1) else added * beta)


def _words(x: torch.Tensor | SplitTensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    return (x.words, x.exponents) if isinstance(x, SplitTensor) else (None, None)


def _asked(a, b, method, scale, repair, options) -> tuple[str, str, bool]:
    """Return method, scale and repair of a call; an operand that was split determines the ones that are not given."""
    ready = [x for x in (a, b) if isinstance(x, SplitTensor)]
    for x, side in ((a, 0), (b, 1)):
        if isinstance(x, SplitTensor) and x.side != side:
            raise ValueError(
                f"{'ab'[side]} was split for side {'ab'[x.side]!r}, expected {'ab'[side]!r}: call split(x, side={'ab'[side]!r})"
            )
    if not ready:
        return spelled(method or DEFAULT, options), scale or "auto", True if repair is None else repair
    kept = ready[0]
    given = (
        kept.method if method is None and not options else spelled(method or DEFAULT, options),
        scale or kept.scale,
        kept.repair if repair is None else repair,
    )
    for x in ready:
        if (x.method, x.scale, x.repair) != given:
            raise ValueError(
                f"{'ab'[x.side]} was split with method {x.method}, scale {x.scale} and repair {x.repair}, but this call asks "
                f"for method {given[0]}, scale {given[1]} and repair {given[2]}: split {'ab'[x.side]} with these options, or "
                "leave them out"
            )
    return given


def _check_type(x, side: str, method: str) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{side} is a {type(x).__name__}, expected a torch.Tensor: convert it with torch.as_tensor()")
    if x.layout != torch.strided:
        raise TypeError(f"{side} is {x.layout}, expected a dense tensor: give {side}.to_dense()")
    if x.dtype not in OPERANDS:
        raise TypeError(
            f"{side} is {x.dtype}, expected float32, bfloat16 or float16: convert {side} with .float(), or take method "
            f"{RESIDUES} "
            "for float64"
        )
    if side == "a" and method.startswith("bf16xfp32") and x.dtype != torch.bfloat16:
        other = GRADIENTS[method.partition(":")[0]]
        raise TypeError(f"a is {x.dtype}, but method {method} expects bfloat16: pass a.bfloat16(), or take {other}")


def _batches(a: torch.Tensor, b: torch.Tensor) -> tuple[tuple[int, ...], torch.Tensor, torch.Tensor]:
    """Return the shape of the result, and A and B as batches of matrices.

    A batch of A with one B becomes one tall matrix.
    """
    if a.dim() == 0 or b.dim() == 0:
        raise ValueError(f"a has {a.dim()} dimensions and b has {b.dim()}, expected at least one each")
    one_row, one_column = a.dim() == 1, b.dim() == 1
    a, b = a[None] if one_row else a, b[:, None] if one_column else b
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a is {tuple(a.shape)} and b is {tuple(b.shape)}, expected equal k: the columns of a, the rows of b"
        )
    (m, k), n = a.shape[-2:], b.shape[-1]
    try:
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"the batches of a and b have shapes {tuple(a.shape[:-2])} and {tuple(b.shape[:-2])}, expected shapes that can be "
            "broadcast"
        ) from None
    shape = (*batch, *(() if one_row else (m,)), *(() if one_column else (n,)))
    if b.dim() == 2:
        return shape, a.reshape(1, math.prod(batch) * m, k), b[None]
    size = math.prod(batch)
    return shape, a.expand(*batch, m, k).reshape(size, m, k), b.expand(*batch, k, n).reshape(size, k, n)


def _needs_gradient(*tensors) -> bool:
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def checked_configuration(config) -> Configuration | None:
    """Return the configuration that a call's `config` means, or None. Raises TypeError for another type."""
    if config is None or isinstance(config, Configuration):
        return config
    if isinstance(config, str) and config == "tune":
        return TUNED
    raise TypeError(f"config is {config!r}, expected a mpgemm.kernels.Configuration or 'tune'")


def _check_ends(a: torch.Tensor, b: torch.Tensor, c, out, shape, added: torch.dtype, result: torch.dtype) -> None:
    """Refuse c and out that do not fit a product of a shape, with ValueError, TypeError."""
    for x, name, dtype in ((c, "c", added), (out, "out", result)):
        if x is not None and not (isinstance(x, torch.Tensor) and x.layout == torch.strided):
            raise TypeError(f"{name} is a {type(x).__name__}, expected a dense tensor: give {name} as a torch.Tensor")
        if x is not None and x.dtype != dtype:
            raise TypeError(f"{name} is {x.dtype}, expected {dtype}: convert {name} with .to()")
    found = {name: x.device for name, x in (("a", a), ("b", b), ("c", c), ("out", out)) if x is not None}
    if len(set(found.values())) > 1:
        places = ", ".join(f"{name} on {device}" for name, device in found.items())
        raise ValueError(f"got {places}, expected one device: move tensors with .to()")
    if out is not None and tuple(out.shape) != tuple(shape):
        raise ValueError(
            f"out has shape {tuple(out.shape)}, expected {tuple(shape)}: give a tensor of this shape, or call without out="
        )
    if out is not None and _needs_gradient(a, b, c, out):
        raise ValueError(
            "got out in a call with gradients, which do not flow through out: call without out=, or under torch.no_grad()"
        )
    try:
        c is None or c.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"c has shape {tuple(c.shape)}, expected a shape that can be broadcast to {tuple(shape)}"
        ) from None


def _fits(out: torch.Tensor, *read: torch.Tensor | None) -> bool:
    """Return whether a kernel can write to `out` itself: torch is not compiling, and no operand shares its memory."""
    if torch.compiler.is_compiling() or not out.is_contiguous():
        return False
    place = out.untyped_storage().data_ptr()
    return all(x is None or x is out or place != x.untyped_storage().data_ptr() for x in read)


# -- the end of a product ----------------------------------------------------------------------------------------------------
def _epilogue(bias, activation, out_dtype, a: torch.Tensor, b: torch.Tensor, lines: int) -> tuple:
    """Return the epilogue of a call, and its bias as the kernels take it. Raises ValueError, TypeError for bad arguments.

    lines: Number of rows of the product as it runs: a batch of A with one B is one tall matrix.
    """
    if out_dtype not in RESULT_TYPES:
        raise TypeError(f"out_dtype is {out_dtype}, expected float32, bfloat16 or float16")
    if bias is None:
        return FusedEpilogue(None, activation, TYPES[out_dtype]), None
    if not isinstance(bias, torch.Tensor) or bias.layout != torch.strided or bias.dtype not in OPERANDS:
        kind = bias.dtype if isinstance(bias, torch.Tensor) else type(bias).__name__
        raise TypeError(f"bias is {kind}, expected a dense tensor of float32, bfloat16 or float16")
    if bias.device != a.device:
        raise ValueError(f"bias is on {bias.device}, expected the operands' device {a.device}: move bias with .to()")
    m, n = (a.shape[-2], b.shape[-1]) if min(a.dim(), b.dim()) > 1 else (0, 0)
    if n and bias.shape in ((n,), (1, n)):
        return FusedEpilogue("column", activation, TYPES[out_dtype]), bias.reshape(n).contiguous()
    if m and bias.shape == (m, 1):
        return FusedEpilogue("row", activation, TYPES[out_dtype]), bias.reshape(m).repeat(lines // m)
    raise ValueError(
        f"bias is {tuple(bias.shape)}, expected one number for each column, shape ({n or 'n'},), or each row, shape "
        f"({m or 'm'}, 1), and operands that are matrices; for another shape pass c=bias, which is broadcast as torch does"
    )


def _check_epilogue(verify: bool, a, b, c, bias) -> None:
    """Refuse an epilogue where verify or gradients forbid it, with a ValueError."""
    if verify:
        raise ValueError(
            "got verify with bias, activation or out_dtype, for which no bound is derived: leave these three or verify out"
        )
    if _needs_gradient(a, b, c, bias):
        raise ValueError(
            "a product with bias, activation or out_dtype has no gradient: call matmul under torch.no_grad(), or pass c=bias "
            "and "
            "apply torch's function to the result"
        )


def _check_doubles(method, scale, repair, bias, activation, out_dtype) -> None:
    """Refuse options that have no effect on the method of residues, with a ValueError."""
    if scale is not None or repair is not None:
        raise ValueError(
            f"got scale or repair, but method {method} always scales rows and columns and needs no repair: leave scale and "
            "repair out"
        )
    if bias is not None or activation is not None or out_dtype != torch.float32:
        raise ValueError(
            f"got bias, activation or out_dtype, but method {method} returns FP64 without an epilogue: pass c=bias, and apply "
            "the rest to the result"
        )


def _doubles(a, b, method: str, out, c, alpha: float, beta: float, config, verify: bool, unit: str) -> torch.Tensor:
    """Return alpha A B + beta C in FP64 from products of int8."""
    row = residue_method(method)
    for x, side in ((a, "a"), (b, "b")):
        if not isinstance(x, torch.Tensor) or x.dtype != torch.float64:
            kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
            raise TypeError(
                f"{side} is {kind}, but method {method} expects tensors of float64: convert {side} with .double()"
            )
    if _needs_gradient(a, b, c):
        raise ValueError(f"method {method} has no gradient: call matmul under torch.no_grad(), or on detached tensors")
    shape, x, y = _batches(a, b)
    tiles = checked_configuration(config)
    if tiles == TUNED:
        raise ValueError(
            f"config is 'tune', but method {method} is not timed: leave config out, or give a Configuration"
        )
    _check_ends(a, b, c, out, shape, torch.float64, torch.float64)
    added = None if c is None or beta == 0 else c.expand(shape).reshape(x.shape[0], x.shape[1], y.shape[2])
    result = _ended(residue_product(row, x, y, unit, tiles), added, alpha, beta)
    if verify:
        verify_sample(row, x, y, added, alpha, beta, result, unit)
    result = result.reshape(shape)
    return result if out is None else out.copy_(result)


# -- parts of k --------------------------------------------------------------------------------------------------------------
def idle_parts(a: torch.Tensor, b: torch.Tensor, row, configuration: Configuration | None = None) -> int:
    """Return the number of parts of k that fill a device if the result has too few tiles, else 1."""
    target = devices.device_target(a.device)
    (batch, m, k), n = a.shape, b.shape[2]
    if target is None or 0 in (batch, m, n, k):
        return 1
    tile = choose(kernel_form(row), target, m, n, k) if configuration in (None, TUNED) else configuration
    tiles = batch * -(-m // tile.rows) * -(-n // tile.columns)
    parts = 1
    while 2 * tiles * parts <= target.multiprocessors and 2 * parts * PART_UNIT <= k and parts < 16:
        parts *= 2
    return parts
