"""Classifies torch's operations: whether they multiply matrices, of which operations they consist, where results go."""

import re
from collections.abc import Callable
from functools import cache

import torch
from torch._library.custom_ops import OPDEFS

from mpgemm.frameworks.torch_checks import check_out

#: Words in the names of operations that multiply matrices.
_PRODUCT_WORDS = re.compile(
    r"mm|bmm|addmm|baddbmm|addbmm|matmul|gemm|mv|addmv|dot|vdot|linear|conv([123]d)?|convolution|convtranspose[123]d"
    r"|attention|rnn|lstm|gru|cdist|trilinear|transformer"
    # products that torch's own code hides
    r"|dist|hspmm|smm|spmm|sspaddmm"
)
#: Operations with other names that multiply matrices.
_HIDDEN = re.compile(r"(linalg_)?(matrix_exp|pinv)|affine_grid_generator(_backward)?")
#: Namespaces whose operations are torch's own, or this package's.
_KNOWN = ("aten", "prim", "prims", "mpgemm", "profiler", "inductor", "debugprims", "_test")
#: Operations with such a word that form no product: gates of recurrent cells, choices of kernels, packed weights.
_NO_PRODUCTS = re.compile(
    r"_thnn_(fused|differentiable)_.*|_fused_sdp_choice|_use_cudnn_rnn.*|.*_flatten_weight|.*prepack.*"
)


def deliver(func, result, args, kwargs):
    """Deliver a result as the overload demands: as a new tensor, in `out`, or in the first argument."""
    name, out = func.overloadpacket.__name__, kwargs.get("out")
    in_place = out is None and name.endswith("_")
    out = args[0] if in_place else out
    if out is None:
        return result
    check_out(name, out, result, in_place)
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


@cache
def is_composite(func) -> bool:
    """Return whether torch composes an operation of others for every device; in inference mode it arrives undivided."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def parts_of(func, of_every_device: bool = False) -> Callable | None:
    """Return a function that runs an operation in parts, so that a mode sees its products; None if there is none.

    The parts are operations of torch, or the Python function of a `torch.library.custom_op`; with `of_every_device`, only if no
    device has another function.
    """
    if is_composite(func):
        return func.decompose
    if not unseen(func):
        return None
    found = OPDEFS.get(func.overloadpacket._qualified_op_name)
    return None if found is None or (of_every_device and set(found._backend_fns) != {None}) else found._init_fn


def unseen(func) -> bool:
    """Return whether an operation belongs neither to torch nor to this package, so that its name tells nothing about it."""
    return func.namespace not in _KNOWN


@cache
def forms_a_product(packet) -> bool:
    """Return whether an operation multiplies matrices, judged by its name."""
    namespace, _, name = packet._qualified_op_name.partition("::")
    if namespace == "mpgemm" or _NO_PRODUCTS.fullmatch(name):
        return False
    return bool(_HIDDEN.fullmatch(name)) or any(_PRODUCT_WORDS.fullmatch(word) for word in name.split("_"))


def without_values(args) -> bool:
    """Return whether an argument is on the meta device, so that there is nothing to compute."""
    return any(isinstance(x, torch.Tensor) and x.is_meta for x in args)
