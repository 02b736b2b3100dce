// Part of mpgemm's shim of PTO, for kernels that include it by this name.
#pragma once
#include <pto/pto-inst.hpp>
