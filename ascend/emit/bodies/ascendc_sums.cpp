GlobalTensor<kSum> wholeC;
wholeC.SetGlobalBuffer(reinterpret_cast<__gm__ kSum *>(c), static_cast<uint64_t>(tiling.M) * tiling.N);
multiply.IterateAll(wholeC[m * tiling.N + n], kAtomic);
