// Host of the kernels beside it: reads A and B from files, runs them on one stream, writes C. Written by mpgemm for one plan.
//
//     ./gemm a.bin b.bin c.bin [device]
//
// a.bin and b.bin hold the operands as record.json says; of an operand that is split already the high words, then the low ones.
#include <acl/acl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

//@plan
extern "C" void launch_cube(void *stream, uint8_t *highA, uint8_t *lowA, uint8_t *highB, uint8_t *lowB, uint8_t *out);
#if MPGEMM_VECTOR_PASSES
extern "C" void launch_split(void *stream, uint8_t *from, uint8_t *high, uint8_t *low, uint64_t count);
extern "C" void launch_combine(void *stream, uint8_t *copies, uint8_t *out);
#else // one term, one copy of C: neither is called
inline void launch_split(void *, uint8_t *, uint8_t *, uint8_t *, uint64_t) {}
inline void launch_combine(void *, uint8_t *, uint8_t *) {}
#endif

namespace
{
using namespace plan;

void check(aclError status, const char *what)
{
    if (status != ACL_SUCCESS) {
        std::fprintf(stderr, "%s: ACL error %d\n", what, status);
        std::exit(1);
    }
}

uint8_t *allocated(size_t bytes)
{
    void *memory = nullptr;
    check(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    return static_cast<uint8_t *>(memory);
}

uint8_t *read(const char *path, size_t bytes)
{
    std::vector<char> content(bytes);
    std::ifstream file(path, std::ios::binary);
    if (!file.read(content.data(), static_cast<std::streamsize>(bytes))) {
        std::fprintf(stderr, "%s: expected %zu bytes\n", path, bytes);
        std::exit(1);
    }
    uint8_t *memory = allocated(bytes);
    check(aclrtMemcpy(memory, bytes, content.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    return memory;
}

// High and low words of an operand of `count` elements: split here, read, or the operand itself.
struct Words {
    uint8_t *high, *low;
};
Words wordsOf(const char *path, uint64_t count, bool splits, aclrtStream stream)
{
    if (kTerms == 1)
        return {read(path, count * kWordBytes), nullptr};
    if (!splits) {
        uint8_t *both = read(path, 2 * count * kWordBytes);
        return {both, both + count * kWordBytes};
    }
    uint8_t *words = allocated(2 * count * kWordBytes);
    launch_split(stream, read(path, count * sizeof(float)), words, words + count * kWordBytes, count);
    return {words, words + count * kWordBytes};
}
} // namespace

int main(int count, char **arguments)
{
    if (count < 4) {
        std::fprintf(stderr, "expected: %s a.bin b.bin c.bin [device]\n", arguments[0]);
        return 2;
    }
    const int device = count > 4 ? std::atoi(arguments[4]) : 0;
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(device), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    const size_t bytes = static_cast<size_t>(kM) * kN * 4;
    uint8_t *c = allocated(bytes), *out = kCopies > 1 ? allocated(kCopies * bytes) : c;
    const Words a = wordsOf(arguments[1], static_cast<uint64_t>(kM) * kK, kSplitsA, stream);
    const Words b = wordsOf(arguments[2], static_cast<uint64_t>(kK) * kN, kSplitsB, stream);
    if (kAddsSlices)
        check(aclrtMemsetAsync(out, kCopies * bytes, 0, kCopies * bytes, stream), "aclrtMemsetAsync");
    launch_cube(stream, a.high, a.low, b.high, b.low, out);
    if (kCopies > 1)
        launch_combine(stream, out, c);
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    std::vector<char> result(bytes);
    check(aclrtMemcpy(result.data(), bytes, c, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    std::ofstream(arguments[3], std::ios::binary).write(result.data(), static_cast<std::streamsize>(bytes));
    check(aclrtResetDevice(device), "aclrtResetDevice");
    return aclFinalize() == ACL_SUCCESS ? 0 : 1;
}
