"""Cuts k into parts whose sums are added outside, as kernels do whose rows and columns alone leave a GPU idle.

The rule counts a product of few rows on an H100, and holds on every device, since it decides bits. It knows the columns, k and
the method, never the rows. ``python bench/counted.py parts`` shows how far it is from the best number of parts.
"""

from mpgemm.recovery.method import RecoveryMethod

#: Parts of k have multiples of so many products, whole tiles of every kernel.
PART_UNIT = 256
#: Columns of a tile of the kernels for few rows.
PART_COLUMNS = 64
#: Rows that a product of few rows has at most.
FEW_ROWS = 64
#: Blocks that keep a GPU busy: the largest power of two that an H100's 132 multiprocessors run side by side.
PART_BLOCKS = 128
#: Products of FP16 words that a part has in each element, at least: a part is written and read, 8 bytes that take 2.4 ps at
#: 3.35 TB/s; at 255 10^12 products a second (a prototype's 170 TFLOP/s with three, measured) that is a tenth of 6090.
LEAST_PRODUCTS = 6144
#: Picoseconds of a tile of 64 x 64 for one product of each of its elements: 16 times 128 lanes in a cycle, at 1.755 GHz.
UNIT_PS = 1140
#: Picoseconds of 1000 bytes of memory, at 3.35 TB/s.
KILOBYTE_PS = 299
#: Picoseconds of one more launch: 3 us, as :data:`mpgemm.kernels.configurations.LAUNCH` counts it.
LAUNCH_PS = 3_000_000


def parts_of(n: int, k: int, row: RecoveryMethod) -> int:
    """Return the number of parts of k for a product with n columns by a method of words, whatever its rows are.

    A product of few rows occupies a GPU with its columns alone. Parts are doubled while there are blocks to spare, while that
    takes less time by count, and while products of many rows pay a tenth of their time at most for adding the parts.

    Examples
    --------
    >>> from mpgemm import get_method
    >>> [[parts_of(n, k, get_method(x)) for n, k in ((4096, 4096), (1024, 4096), (128, 16384))] for x in ("ootomo", "bf16x9")]
    [[1, 2, 8], [2, 4, 16]]
    """
    wide = 2 if row.formats[0] == "tf32" else 1  # words of four bytes, at half of the rate
    products, columns = wide * len(row.products), -(-n // PART_COLUMNS)
    read = n * wide * 2 * (1 + max(j for _, j in row.products)) * KILOBYTE_PS // 1000

    def took(parts: int) -> int:
        added = LAUNCH_PS + parts * 8 * FEW_ROWS * n * KILOBYTE_PS // 1000 if parts > 1 else 0
        return k * max(products * UNIT_PS, parts * read) // parts + added

    parts = 1
    while (
        2 * parts * columns <= PART_BLOCKS
        and 2 * parts * LEAST_PRODUCTS <= products * k
        and took(2 * parts) < took(parts)
    ):
        parts *= 2
    return parts


def part_length(parts: int, k: int) -> int:
    """Return the products of k in a part."""
    return PART_UNIT * -(-k // (PART_UNIT * parts))
