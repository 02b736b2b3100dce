"""Computes convolutions and their gradients as matrix products of unfolded tensors.

The sums of the output run over (channel, kernel position), those of the input's gradient over (output channel, kernel
position), those of the weight's gradient over (image, output position); the second index varies fastest. Zeros that a stride or
a padding inserts are multiplied. Groups are the batch of the products. Every function takes and returns torch tensors;
`multiply` maps a (g, m, k) and b (g, k, n) to (g, m, n).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Multiply = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Geometry:
    """`Geometry` holds the parameters of a convolution, with one number for each spatial dimension."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int

    @classmethod
    def of(cls, spatial: int, stride, padding, dilation, output_padding, groups: int) -> "Geometry":
        """Return the geometry from torch's lists, which may hold one number for all dimensions."""

        def each(values: Sequence[int]) -> tuple[int, ...]:
            return tuple(values) if len(values) == spatial else tuple(values) * spatial

        return cls(each(stride), each(padding), each(dilation), each(output_padding), groups)


def _padded(x: torch.Tensor, left: Sequence[int], right: Sequence[int]) -> torch.Tensor:
    """Pad the spatial dimensions with zeros; negative numbers crop."""
    sides = [side for pair in zip(reversed(left), reversed(right), strict=True) for side in pair]
    return torch.nn.functional.pad(x, sides) if any(sides) else x


def _windows(x: torch.Tensor, kernel: Sequence[int], stride, dilation, groups: int) -> tuple[torch.Tensor, list[int]]:
    """Unfold a padded input to (groups, images * positions, channels of a group * kernel positions); return the output size."""
    images, channels = x.shape[:2]
    sizes = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)]
    steps = x.stride()
    view = x.as_strided(
        (groups, images, *sizes, channels // groups, *kernel),
        (
            steps[1] * (channels // groups), steps[0], *(step * s for step, s in zip(steps[2:], stride, strict=True)),
            steps[1], *(step * d for step, d in zip(steps[2:], dilation, strict=True)),
        ),
    )  # fmt: skip
    return view.reshape(groups, images * math.prod(sizes), channels // groups * math.prod(kernel)), sizes


def _by_position(y: torch.Tensor, groups: int) -> torch.Tensor:
    """Reorder (images, channels, positions...) to (groups, images * positions, channels of a group)."""
    channels = y.shape[1] // groups
    return y.movedim(1, -1).reshape(-1, groups, channels).transpose(0, 1)


def _by_channel(y: torch.Tensor, images: int, sizes: Sequence[int]) -> torch.Tensor:
    """Return the inverse of :func:`_by_position`."""
    channels = y.shape[0] * y.shape[2]
    return y.transpose(0, 1).reshape(images, *sizes, channels).movedim(-1, 1)


def forward(x: torch.Tensor, weight: torch.Tensor, g: Geometry, multiply: Multiply) -> torch.Tensor:
    """Return the convolution of x (images, channels, ...) with a weight (outputs, channels of a group, ...)."""
    windows, sizes = _windows(_padded(x, g.padding, g.padding), weight.shape[2:], g.stride, g.dilation, g.groups)
    taps = weight.reshape(g.groups, weight.shape[0] // g.groups, -1).transpose(1, 2)
    return _by_channel(multiply(windows, taps), x.shape[0], sizes)


def input_gradient(
    y: torch.Tensor, weight: torch.Tensor, sizes: Sequence[int], g: Geometry, multiply: Multiply
) -> torch.Tensor:
    """Return the gradient of an input of spatial `sizes`, from the output's gradient y with zeros between strides."""
    spread = y.new_zeros(*y.shape[:2], *((n - 1) * s + 1 for n, s in zip(y.shape[2:], g.stride, strict=True)))
    strided: tuple[Any, ...] = (..., *(slice(None, None, s) for s in g.stride))
    spread[strided] = y
    kernel = weight.shape[2:]
    left = [d * (k - 1) - p for d, k, p in zip(g.dilation, kernel, g.padding, strict=True)]
    right = [
        size + d * (k - 1) - before - n
        for size, d, k, before, n in zip(sizes, g.dilation, kernel, left, spread.shape[2:], strict=True)
    ]
    ones = (1,) * len(kernel)
    windows, found = _windows(_padded(spread, left, right), kernel, ones, g.dilation, g.groups)
    flipped = weight.flip(tuple(range(2, weight.dim())))
    taps = flipped.reshape(g.groups, weight.shape[0] // g.groups, weight.shape[1], -1).transpose(1, 2)
    taps = taps.reshape(g.groups, weight.shape[1], -1).transpose(1, 2)
    return _by_channel(multiply(windows, taps), y.shape[0], found)


def weight_gradient(
    x: torch.Tensor, y: torch.Tensor, kernel: Sequence[int], g: Geometry, multiply: Multiply
) -> torch.Tensor:
    """Return the gradient of a weight from the input x and the output's gradient y."""
    windows, sizes = _windows(_padded(x, g.padding, g.padding), kernel, g.stride, g.dilation, g.groups)
    windows = windows.reshape(g.groups, x.shape[0], *sizes, windows.shape[-1])
    used = (
        slice(None),
        slice(None),
        *(slice(n) for n in y.shape[2:]),
    )  # a transposed convolution may use fewer positions
    windows = windows[used].flatten(1, -2)
    product = multiply(_by_position(y, g.groups).transpose(1, 2), windows)
    return product.reshape(y.shape[1], x.shape[1] // g.groups, *kernel)


def transposed_sizes(x: torch.Tensor, weight: torch.Tensor, g: Geometry) -> list[int]:
    """Return the spatial sizes of a transposed convolution's result."""
    return [
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, s, p, d, k, o in zip(
            x.shape[2:], g.stride, g.padding, g.dilation, weight.shape[2:], g.output_padding, strict=True
        )
    ]
