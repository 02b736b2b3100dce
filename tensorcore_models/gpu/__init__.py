"""Matrix units on a GPU: bit-exact emulation in Triton, without matrix instructions (docs/units_on_gpus.md)."""
