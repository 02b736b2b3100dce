"""Cuts k into parts whose sums are added outside, as kernels do whose rows and columns alone leave a GPU idle."""

#: Parts of k have multiples of so many products, whole tiles of every kernel.
PART_UNIT = 256
#: Products of k of a part, at least (chosen).
LEAST_PART = 2048
#: Columns of a tile of the kernels for few rows.
PART_COLUMNS = 64
#: Blocks that keep a GPU busy (chosen: an H100 has 132 multiprocessors).
PART_BLOCKS = 128


def parts_of(n: int, k: int) -> int:
    """Return the number of parts of k for a product with n columns, whatever its rows are.

    A product of few rows occupies a GPU with its columns alone; k is halved while there are blocks to spare and a part is as
    long as B is wide. So adding the parts moves at most a small share of what a product of many rows moves.

    Examples
    --------
    >>> parts_of(4096, 4096), parts_of(1024, 4096), parts_of(128, 16384)
    (1, 2, 8)
    """
    parts, columns = 1, -(-n // PART_COLUMNS)
    while 2 * parts * columns <= PART_BLOCKS and 2 * parts * max(LEAST_PART, n) <= k:
        parts *= 2
    return parts


def part_length(parts: int, k: int) -> int:
    """Return the products of k in a part."""
    return PART_UNIT * -(-k // (PART_UNIT * parts))
