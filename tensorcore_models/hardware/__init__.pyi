from ..cpu_units import CpuEngine as CpuEngine, cpu_engine as cpu_engine
from .cuda.engines import CudaEngine as CudaEngine, cuda_engine as cuda_engine
from .libraries.engines import CupyMatmulEngine as CupyMatmulEngine, TorchMatmulEngine as TorchMatmulEngine
from .lookup import PREFIXES as PREFIXES, engine as engine
