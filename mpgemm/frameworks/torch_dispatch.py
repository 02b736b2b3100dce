"""Sorts torch's operations: which multiply matrices, of what they consist, and where their results go."""

import re
from collections.abc import Callable
from functools import cache

import torch
from torch._library.custom_ops import OPDEFS

from mpgemm.frameworks.torch_checks import check_out

#: Words of an operation's name that say that it multiplies matrices.
_PRODUCT_WORDS = re.compile(
    r"mm|bmm|addmm|baddbmm|addbmm|matmul|gemm|mv|addmv|dot|vdot|linear|conv([123]d)?|convolution|convtranspose[123]d"
    r"|attention|rnn|lstm|gru|cdist|trilinear|transformer"
    # products that torch's own code hides
    r"|dist|hspmm|smm|spmm|sspaddmm"
)
#: Operations of other names whose code multiplies matrices.
_HIDDEN = re.compile(r"(linalg_)?(matrix_exp|pinv)|affine_grid_generator(_backward)?")
#: Namespaces whose operations are torch's own, or this package's.
_KNOWN = ("aten", "prim", "prims", "mpgemm", "profiler", "inductor", "debugprims", "_test")
#: Operations with such a name that form no product: gates of recurrent cells, choices, packed layouts of weights.
_NO_PRODUCTS = re.compile(
    r"_thnn_(fused|differentiable)_.*|_fused_sdp_choice|_use_cudnn_rnn.*|.*_flatten_weight|.*prepack.*"
)


def deliver(func, result, args, kwargs):
    """Return the result where the overload wants it: new, in `out`, or in the first argument."""
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
    """Return whether torch gives an operation by others for every device; such ones come here in inference mode."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def parts_of(func, of_every_device: bool = False) -> Callable | None:
    """Return the parts of an operation, whose products a mode sees one by one: others of torch, or the Python function of a
    `torch.library.custom_op` (`of_every_device`: only where no device has another). None of all others."""
    if is_composite(func):
        return func.decompose
    if not unseen(func):
        return None
    found = OPDEFS.get(func.overloadpacket._qualified_op_name)
    return None if found is None or (of_every_device and set(found._backend_fns) != {None}) else found._init_fn


def unseen(func) -> bool:
    """Return whether an operation is not torch's own or this package's, so that its name says nothing of what it computes."""
    return func.namespace not in _KNOWN


@cache
def forms_a_product(packet) -> bool:
    """Return whether an operation multiplies matrices, by its name."""
    namespace, _, name = packet._qualified_op_name.partition("::")
    if namespace == "mpgemm" or _NO_PRODUCTS.fullmatch(name):
        return False
    return bool(_HIDDEN.fullmatch(name)) or any(_PRODUCT_WORDS.fullmatch(word) for word in name.split("_"))


def without_values(args) -> bool:
    """Return whether an argument is on the meta device: there is nothing to compute."""
    return any(isinstance(x, torch.Tensor) and x.is_meta for x in args)
