"""This tool makes the matrix pairs in mpgemm/data (see docs/data.md); it needs scikit-learn for the digits.

Run it from the repository root: python tools/make_shipped_matrices.py
"""

from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "mpgemm" / "inputs" / "data"


def digits():
    """Return A = X^T and B = X for the standardised pixels X of 1797 images, without constant pixels."""
    from sklearn.datasets import load_digits

    pixels = load_digits().data
    pixels = pixels[:, pixels.std(axis=0) > 0]
    standardised = ((pixels - pixels.mean(axis=0)) / pixels.std(axis=0)).astype(np.float32)
    return np.ascontiguousarray(standardised.T), standardised


def diffusion(side=16, contrast=2.0, functions=96):
    """Return the five-point operator of -div(c grad u), zero on the boundary, and products of sines with a rough remainder.

    c = 10^(contrast * sin(2 pi x) cos(3 pi y)) runs from 10^-contrast to 10^contrast; on the interface between two
    cells it is the harmonic mean. Entries are in units of 1/h^2, as codes that factor out h^2 have them.
    """
    h = 1.0 / (side + 1)
    x, y = np.meshgrid(h * np.arange(side + 2), h * np.arange(side + 2), indexing="ij")
    c = 10.0 ** (contrast * np.sin(2 * np.pi * x) * np.cos(3 * np.pi * y))
    operator = np.zeros((side * side, side * side))
    for i in range(1, side + 1):
        for j in range(1, side + 1):
            row = (i - 1) * side + j - 1
            for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                conductance = 2 / (1 / c[i, j] + 1 / c[i + di, j + dj])
                operator[row, row] += conductance
                if 1 <= i + di <= side and 1 <= j + dj <= side:
                    operator[row, (i + di - 1) * side + j + dj - 1] = -conductance
    inner_x, inner_y = x[1:-1, 1:-1].ravel(), y[1:-1, 1:-1].ravel()
    modes = [(p, q) for p in range(1, side + 1) for q in range(1, side + 1)]
    modes.sort(key=lambda mode: mode[0] ** 2 + mode[1] ** 2)
    columns = [
        np.sin(p * np.pi * inner_x) * np.sin(q * np.pi * inner_y) / (p * p + q * q) for p, q in modes[:functions]
    ]
    return operator.astype(np.float32), np.stack(columns, axis=1).astype(np.float32)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    for name, make in (("digits", digits), ("diffusion", diffusion)):
        a, b = make()
        np.savez_compressed(DATA / f"{name}.npz", a=a, b=b)
        print(name, a.shape, b.shape, (DATA / f"{name}.npz").stat().st_size, "bytes")
