"""Random matrices of every kind that a person may have, small enough for rational numbers."""

import numpy as np


def _normal(rng, m, k, n):
    return rng.standard_normal((m, k)), rng.standard_normal((k, n))


def _positive(rng, m, k, n):
    return rng.uniform(0, 1, (m, k)), rng.uniform(0, 1, (k, n))


def _wide(rng, m, k, n):
    a, b = _normal(rng, m, k, n)
    return a * 2.0 ** rng.integers(-30, 30, a.shape), b * 2.0 ** rng.integers(-10, 10, b.shape)


def _tiny(rng, m, k, n):
    a, b = _normal(rng, m, k, n)
    return a * 2.0 ** -int(rng.integers(10, 70)), b * 2.0 ** int(rng.integers(-70, 70))


def _huge(rng, m, k, n):
    a, b = _normal(rng, m, k, n)
    return a * 2.0 ** int(rng.integers(10, 100)), b * 2.0 ** int(rng.integers(-20, 100))


def _integers(rng, m, k, n):
    return rng.integers(-9, 10, (m, k)).astype(float), rng.integers(-9, 10, (k, n)).astype(float)


def _rows(rng, m, k, n):
    a, b = _normal(rng, m, k, n)
    return a * 10.0 ** rng.integers(-8, 4, (m, 1)), b


def _cancelling(rng, m, k, n):
    half = max(k // 2, 1)
    a, b = _normal(rng, m, half, n)
    b2 = b * (1 + 10.0 ** -int(rng.integers(4, 14)) * rng.standard_normal(b.shape))
    return np.hstack([a, -a]), np.vstack([b, b2])


def _zero_product(rng, m, k, n):
    half = max(k // 2, 1)
    a, b = _normal(rng, m, half, n)
    return np.hstack([a, -a]), np.vstack([b, b])


def _zeros(rng, m, k, n):
    return np.zeros((m, k)), rng.standard_normal((k, n))


def _sparse(rng, m, k, n):
    a, b = _normal(rng, m, k, n)
    return a * (rng.uniform(size=a.shape) < 0.15), b


def _not_finite(rng, m, k, n):
    a, b = _normal(rng, m, k, n)
    for x in (a, b)[: int(rng.integers(1, 3))]:
        for _ in range(int(rng.integers(1, 4))):
            x[rng.integers(x.shape[0]), rng.integers(x.shape[1])] = rng.choice([np.nan, np.inf, -np.inf])
    return a, b


def _all_nan(rng, m, k, n):
    a, b = _normal(rng, m, k, n)
    return a * np.nan, b


def _one_big(rng, m, k, n):
    a, b = _normal(rng, m, k, n)
    a[rng.integers(m), rng.integers(k)] = rng.choice([65519.0, 65520.0, 7e4, 1e9])
    return a, b


def _beyond_fp32(rng, m, k, n):
    a, b = _normal(rng, m, k, n)
    a[rng.integers(m), rng.integers(k)] = 1e40
    return a, b


KINDS = (
    _normal, _normal, _positive, _wide, _tiny, _huge, _integers, _rows, _cancelling, _zero_product, _zeros, _sparse,
    _not_finite, _all_nan, _one_big, _beyond_fp32,
)  # fmt: skip


def draw(rng, most_k=48):
    """(kind, A, B): float32 mostly, float64 and float16 now and then."""
    kind = KINDS[int(rng.integers(len(KINDS)))]
    m, n = (int(x) for x in rng.integers(1, 7, 2))
    k = int(rng.integers(1, most_k))
    with np.errstate(all="ignore"):
        a, b = kind(rng, m, k, n)
        dtype = rng.choice([np.float32, np.float32, np.float64, np.float16])
        return kind.__name__[1:], a.astype(dtype), b.astype(dtype)
