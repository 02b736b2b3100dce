"""Defines a kernel's arguments: arrays that are global memory, numbers, and tensor maps that host code would encode.

The 128 bytes of a tensor map are opaque in PTX; here they hold, little-endian from byte 0: the address (8 bytes), dimensions
(1), bytes of an element (1), swizzle (1), fill (1), box extents (five times 2), sizes (five times 8), strides in bytes of
dimensions 1 to 4 (four times 8), element strides (five times 2). Dimension 0 is the innermost, as in PTX.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..integers import checked_integer

TENSOR_MAP_BYTES = 128
_LAYOUT = struct.Struct("<QBBBB5H5Q4Q5H")
SWIZZLES = {"none": 0, "32B": 32, "64B": 64, "128B": 128}


@dataclass(frozen=True, eq=False)
class TensorMap:
    """`TensorMap` holds the parameters of `cuTensorMapEncodeTiled`: how boxes of an array are copied to shared memory.

    Parameters
    ----------
    array : ndarray
        Contiguous tensor in global memory, of one to five dimensions; all strides but the last are multiples of 16 bytes.
    box : sequence of int
        Extents of the box that one copy takes, in the array's order of dimensions, each at most 256.
    swizzle : {"none", "32B", "64B", "128B"}
        CUDA's swizzle mode, by which units of 16 bytes are permuted in shared memory.
    element_strides : sequence of int, optional
        Step between copied elements along each dimension of the array; 1 by default.

    Raises
    ------
    ValueError, TypeError
        If the array, the box, the swizzle or the element strides break a rule above.
    """

    array: np.ndarray
    box: Sequence[int]
    swizzle: str = "none"
    element_strides: Sequence[int] = ()

    def __post_init__(self):
        array = self.array
        if not isinstance(array, np.ndarray):
            raise TypeError(f"array is {type(array).__name__}, but a tensor map needs a numpy array")
        if not 1 <= array.ndim <= 5 or not array.flags.c_contiguous and array.strides[-1] != array.itemsize:
            raise ValueError(
                f"a tensor map has one to five dimensions, the last contiguous; got shape {array.shape} with strides "
                f"{array.strides}"
            )
        if any(stride % 16 for stride in array.strides[:-1]):
            raise ValueError(f"strides of a tensor map must be multiples of 16 bytes, got {array.strides}")
        box = tuple(checked_integer(extent, "an extent of the box") for extent in self.box)
        if len(box) != array.ndim or not all(1 <= extent <= 256 for extent in box):
            raise ValueError(f"box must have {array.ndim} extents from 1 to 256, got {self.box!r}")
        if self.swizzle not in SWIZZLES:
            raise ValueError(f"swizzle must be one of {', '.join(SWIZZLES)}, got {self.swizzle!r}")
        width = SWIZZLES[self.swizzle]
        if width and box[-1] * array.itemsize > width:
            raise ValueError(
                f"the box has {box[-1] * array.itemsize} bytes along its last dimension, but swizzle {self.swizzle!r} allows "
                f"at most {width}: give a smaller box"
            )
        steps = tuple(self.element_strides) or (1,) * array.ndim
        if len(steps) != array.ndim or any(checked_integer(s, "an element stride") < 1 for s in steps):
            raise ValueError(f"element_strides must be {array.ndim} positive integers, got {self.element_strides!r}")
        object.__setattr__(self, "box", box)
        object.__setattr__(self, "element_strides", steps)

    def encoded(self, address: int) -> bytes:
        """Return the 128 bytes of the tensor map, for an array at the given address."""
        array, pad = self.array, (0,) * (5 - self.array.ndim)
        return encode_map(
            address, array.ndim, array.itemsize, SWIZZLES[self.swizzle], (*self.box[::-1], *pad), (*array.shape[::-1], *pad),
            (*array.strides[:-1][::-1], *pad)[:4], (*self.element_strides[::-1], *pad),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Structure:
    """`Structure` is a parameter that is a structure with addresses in it; CUTLASS passes all of a kernel's arguments in one
    structure.

    Parameters
    ----------
    data : bytes
        Bytes of the structure, as many as the parameter has.
    arrays : mapping of int to ndarray
        Arrays whose addresses stand in the structure; the key is the offset of the address in bytes.

    Raises
    ------
    ValueError
        If an address does not lie within the bytes.
    """

    data: bytes
    arrays: Mapping[int, np.ndarray]

    def __post_init__(self):
        for offset in self.arrays:
            if not 0 <= offset <= len(self.data) - 8:
                raise ValueError(
                    f"arrays has an address at byte {offset}, outside of a structure of {len(self.data)} bytes"
                )

    def encoded(self, address_of: Callable[[np.ndarray], int]) -> bytes:
        """Return the bytes with the addresses of the arrays."""
        found = bytearray(self.data)
        for offset, array in self.arrays.items():
            found[offset : offset + 8] = address_of(array).to_bytes(8, "little")
        return bytes(found)


@dataclass(frozen=True, eq=False)
class PointerTable:
    """`PointerTable` is an argument that holds the address of a table of addresses.

    Kernels that multiply groups of matrices take such a table.

    Parameters
    ----------
    arrays : sequence of ndarray
        Arrays whose addresses stand in the table, in order.

    Attributes
    ----------
    table : ndarray of uint64
        Memory of the table. A launch copies it to global memory, and writes the addresses into the copy.

    Raises
    ------
    ValueError, TypeError
        If there are no arrays, or an entry is no array.
    """

    arrays: Sequence[np.ndarray]
    table: np.ndarray = field(init=False)

    def __post_init__(self):
        if not len(self.arrays):
            raise ValueError("a table of addresses needs at least one array, got none")
        for array in self.arrays:
            if not isinstance(array, np.ndarray):
                raise TypeError(f"a table of addresses needs numpy arrays, got {type(array).__name__}")
        object.__setattr__(self, "table", np.zeros(len(self.arrays), np.uint64))


def write_tables(arguments: Sequence, memory) -> None:
    """Write the addresses of a launch into its tables."""
    for argument in arguments:
        if isinstance(argument, PointerTable):
            addresses = np.array([memory.address_of(array) for array in argument.arrays], np.uint64)
            start = memory.address_of(argument.table) - memory.address(0) + memory.starts[0]
            memory.space.data[start : start + addresses.nbytes] = addresses.view(np.uint8)


def encode_map(address, rank, size, swizzle, box, sizes, strides, steps, fill: int = 0) -> bytes:
    """Return the 128 bytes of a tensor map from its fields; each field has five entries (strides: four), dimension 0 first."""
    code = {0: 0, 32: 1, 64: 2, 128: 3}[swizzle]
    return _LAYOUT.pack(address, rank, size, code, fill, *box, *sizes, *strides, *steps).ljust(TENSOR_MAP_BYTES, b"\0")


def decode_map(data: bytes) -> dict:
    """Return the fields of a tensor map's bytes."""
    address, rank, size, code, fill, *rest = _LAYOUT.unpack(data[: _LAYOUT.size])
    return {
        "address": address, "rank": rank, "size": size, "swizzle": (0, 32, 64, 128)[code & 3], "fill": fill,
        "box": tuple(rest[:5]), "sizes": tuple(rest[5:10]), "strides": tuple(rest[10:14]), "steps": tuple(rest[14:19]),
    }  # fmt: skip


def argument_arrays(
    arguments: Sequence, names: Sequence[str]
) -> tuple[list[np.ndarray], list[str], list[tuple[int, ...]]]:
    """Return the distinct arrays, their names for messages, and for each argument the numbers of its arrays.

    Raises
    ------
    TypeError, ValueError
        If an array is not contiguous.
    """
    arrays: list[np.ndarray] = []
    owners: list[tuple[int, ...]] = []
    called: list[str] = []
    for place, argument in enumerate(arguments):
        numbers: list[int] = []
        for where, array in _arrays_of(argument):
            if not array.flags.c_contiguous:
                raise ValueError(f"argument {place}{where} is not contiguous; pass np.ascontiguousarray(...)")
            same = next((i for i, other in enumerate(arrays) if other is array), len(arrays))
            if same == len(arrays):
                if any(np.shares_memory(array, other) for other in arrays):
                    raise ValueError(
                        f"argument {place}{where} shares memory with another argument; pass the same array, or copies"
                    )
                arrays.append(array)
                called.append(f"argument {place}{where}" + (f" ({names[place]}{where})" if place < len(names) else ""))
            numbers.append(same)
        owners.append(tuple(numbers))
    return arrays, called, owners


def _arrays_of(argument) -> list[tuple[str, np.ndarray]]:
    """Return the place in the argument, and the array, of each array whose address an argument holds."""
    if isinstance(argument, Structure):
        return [(f" at byte {offset}", array) for offset, array in argument.arrays.items()]
    if isinstance(argument, TensorMap):
        return [("", argument.array)]
    if isinstance(argument, PointerTable):
        return [("", argument.table), *((f" at entry {i}", array) for i, array in enumerate(argument.arrays))]
    return [("", argument)] if isinstance(argument, np.ndarray) and argument.ndim else []


def argument_bytes(argument, size: int, name: str, address_of: Callable[[np.ndarray], int]) -> bytes:
    """Return the bytes of a parameter; `address_of` gives the address of an array.

    Raises
    ------
    TypeError, ValueError
        If the argument does not fit into the parameter.
    """
    if isinstance(argument, TensorMap):
        if size != TENSOR_MAP_BYTES:
            raise ValueError(
                f"parameter {name} has {size} bytes, but a TensorMap has {TENSOR_MAP_BYTES}: pass an array for an address, or "
                f"{size} bytes"
            )
        return argument.encoded(address_of(argument.array))
    if isinstance(argument, Structure):
        if size != len(argument.data):
            raise ValueError(
                f"parameter {name} has {size} bytes, but the Structure has {len(argument.data)}: give its data {size} bytes"
            )
        return argument.encoded(address_of)
    if isinstance(argument, PointerTable):
        argument = argument.table
    if isinstance(argument, np.ndarray) and argument.ndim:
        if size != 8:
            raise ValueError(
                f"parameter {name} has {size} bytes, but the address of an array has 8: pass a number or bytes, no array"
            )
        return address_of(argument).to_bytes(8, "little")
    if isinstance(argument, bytes):
        if len(argument) != size:
            raise ValueError(f"parameter {name} has {size} bytes, got {len(argument)} bytes: pass {size} bytes")
        return argument
    if argument is None:
        return bytes(size)
    if isinstance(argument, np.generic) and argument.nbytes == size:
        return argument.tobytes()
    if isinstance(argument, float | np.floating):
        if size not in (4, 8):
            raise ValueError(f"parameter {name} has {size} bytes, but a float has 4 or 8: pass bytes")
        return (np.float32(argument) if size == 4 else np.float64(argument)).tobytes()
    value = checked_integer(argument, name)
    if not -(1 << (8 * size - 1)) <= value < 1 << 8 * size:
        raise ValueError(
            f"parameter {name} has {size} bytes, which cannot hold {value}: pass a smaller number, or bytes"
        )
    return (value % (1 << 8 * size)).to_bytes(size, "little")


def copied_argument(argument, copies: dict[int, np.ndarray]):
    """Return the argument with a copy of its array; `copies` holds the copies made so far, so that an array is copied once."""
    if isinstance(argument, TensorMap):
        return replace(argument, array=copied_argument(argument.array, copies))
    if isinstance(argument, Structure):
        return replace(argument, arrays={i: copied_argument(array, copies) for i, array in argument.arrays.items()})
    if isinstance(argument, PointerTable):
        return PointerTable([copied_argument(array, copies) for array in argument.arrays])
    if isinstance(argument, np.ndarray):
        return copies.setdefault(id(argument), argument.copy())
    return argument
