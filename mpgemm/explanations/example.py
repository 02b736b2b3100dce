"""Holds the dot product that is explained by default, that of table 5 of Valpey et al. (mpgemm.reproductions.valpey_table5).

The table prints b_1 = 1.998046875 * 2^-7; the steps in the text need 2^+7, which is used here (the exponent is a misprint).
"""

import numpy as np

VALPEY_A = np.array([1.0009765625 * 2.0**-8, 1.326171875 * 2.0**-14, 2.0**-12, 2.0**-12], np.float32)
VALPEY_B = np.array([1.998046875 * 2.0**7, 1.4443359375 * 2.0**-7, 2.0**-12, 2.0**-12], np.float32)
VALPEY_C = np.float32(2.0**-24)
