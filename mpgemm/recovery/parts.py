"""Divides k into parts whose sums are added outside, as kernels do for products whose tiles would leave a GPU partly idle.

The rule estimates the time of a product with few rows on an H100. It is the same on every device, because it decides bits,
and it depends only on the columns, k and the method, not on the rows. ``python bench/counted.py parts`` compares its number
of parts with the best number.
"""

from mpgemm.recovery.method import RecoveryMethod

#: Lengths of parts of k are multiples of this number of products, which is a multiple of the tiles of every kernel.
PART_UNIT = 256
#: Columns of a tile of the kernels for few rows.
PART_COLUMNS = 64
#: Largest number of rows of a product of few rows.
FEW_ROWS = 64
#: Number of blocks that keep a GPU busy, the largest power of two that an H100's 132 multiprocessors run at the same time.
PART_BLOCKS = 128
#: Smallest number of products of FP16 words in each element of a part. Writing and reading a part's element are 8 bytes, which
#: take 2.4 ps at 3.35 TB/s. At 255 10^12 products per second (170 TFLOP/s of a prototype with three, measured) this is a tenth
#: of the time of 6090 products.
LEAST_PRODUCTS = 6144
#: Picoseconds in which a 64 x 64 tile adds one product to each of its elements, 16 times 128 lanes in a cycle at 1.755 GHz.
UNIT_PS = 1140
#: Picoseconds to transfer 1000 bytes of memory, at 3.35 TB/s.
KILOBYTE_PS = 299
#: Picoseconds of one more launch, 3 us, as in :data:`mpgemm.kernels.configurations.LAUNCH`.
LAUNCH_PS = 3_000_000


def parts_of(n: int, k: int, row: RecoveryMethod) -> int:
    """Return the number of parts of k for a product with n columns by a method on words, for any number of rows.

    A product of few rows has only the tiles of its columns to occupy a GPU. The number of parts is doubled while a GPU has
    idle multiprocessors, while the estimated time falls, and while products of many rows spend at most a tenth of their time
    on adding the parts.

    Examples
    --------
    >>> from mpgemm import get_method
    >>> [[parts_of(n, k, get_method(x)) for n, k in ((4096, 4096), (1024, 4096), (128, 16384))] for x in ("ootomo", "bf16x9")]
    [[1, 2, 8], [2, 4, 16]]
    """
    wide = 2 if row.formats[0] == "tf32" else 1  # words of four bytes are multiplied at half the rate
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
    """Return the number of products of k in a part."""
    return PART_UNIT * -(-k // (PART_UNIT * parts))
