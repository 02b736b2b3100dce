"""Where a result is wrong: patterns are found from elements alone, also where some of their elements look right."""

import numpy as np
import pytest

from mpgemm.testing.diagnosis.places import picture, place_of

M, N = 160, 96


def marks(rows=slice(None), columns=slice(None)):
    found = np.zeros((M, N), bool)
    found[rows, columns] = True
    return found


ROW, COLUMN = np.indices((M, N))
#: The words that are expected: the elements.
PATTERNS = {
    "everywhere": marks(),
    "row 7, all columns": marks(7),
    "rows 32 to 47, all columns": marks(slice(32, 48)),
    "columns 90 to 95, all rows": marks(columns=slice(90, 96)),
    "the tile rows 64 to 79, columns 32 to 47": marks(slice(64, 80), slice(32, 48)),
    "every 16th row, from row 3 on, all columns": marks(slice(3, None, 16)),
    "rows 8 to 15 of every 64, all columns": (ROW % 64 >= 8) & (ROW % 64 < 16),
    "rows 8 to 15 and 40 to 55, all columns": marks(slice(8, 16)) | marks(slice(40, 56)),
    "(the elements that lane 9 of each warp holds of an mma's sums)": (ROW % 8 == 2) & (COLUMN % 8 // 2 == 1),
    "every 4th tile of 32 x 32, from tile 1 on in the order of rows": (ROW // 32 * 3 + COLUMN // 32) % 4 == 1,
    "of odd places on a checkerboard": (ROW // 16 + COLUMN // 16) % 2 == 1,
    "above the diagonal": COLUMN > ROW,
    "(3, 5), (90, 60)": np.isin(ROW * N + COLUMN, (3 * N + 5, 90 * N + 60)),
}


@pytest.mark.parametrize("text", PATTERNS)
@pytest.mark.parametrize("share", [1.0, 0.8])
def test_a_pattern_is_found(text, share):
    rng = np.random.default_rng(4)
    wrong = PATTERNS[text]
    seen = wrong if wrong.sum() < 5 else wrong & (rng.random((M, N)) < share)
    found = place_of(seen, rng.standard_normal((M, N)))
    assert text in found.text
    assert np.array_equal(found.mask, wrong)


def test_sizes_signs_silent_rows_and_sampled_ones():
    values = np.random.default_rng(0).standard_normal((M, N))
    assert "of at least" in place_of(np.abs(values) > 1.5, values).text
    assert "negative" in place_of(values < 0, values).text
    wrong, silent = marks(slice(32, 48)), np.zeros((M, N), bool)
    wrong[40], silent[40] = False, True  # a row of zeros shows nothing
    assert place_of(wrong, values, silent=silent).text == "rows 32 to 47, all columns"
    lines = np.arange(M) * 10
    assert place_of(marks(slice(3, 6)), values, lines).text == "rows 30 to 50, all columns"


def test_a_picture():
    wrong = marks(slice(0, 80))
    place = place_of(wrong, np.ones((M, N)))
    head, *rows = picture(wrong, place)
    assert picture(np.ones_like(wrong), place_of(np.ones_like(wrong), np.ones((M, N)))) == ()
    assert head.startswith("160 x 96, a character for 14 x 2 elements")
    assert rows[0] == "#" * 48 and set(rows[-1]) == {"."} and len(rows) == 12
