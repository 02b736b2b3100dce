// Host of the kernels in this folder: reads A and B from files, runs the kernels on one stream, writes C. Written by mpgemm.
//
//     ./gemm a.bin b.bin c.bin [device]
//
// a.bin and b.bin hold the operands as record.json describes; for a presplit operand, the high words, then the low words.
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
#else // with one term and one copy of C, neither function is called
inline void launch_split(void *, uint8_t *, uint8_t *, uint8_t *, uint64_t) {}
inline void launch_combine(void *, uint8_t *, uint8_t *) {}
#endif

namespace
{
using namespace plan;

//@acl

// Returns high and low words of an operand of `count` elements: split here, read from the file, or the operand itself.
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
    const Device device = opened(count, arguments);
    const size_t bytes = static_cast<size_t>(kM) * kN * 4;
    uint8_t *c = allocated(bytes), *out = kCopies > 1 ? allocated(kCopies * bytes) : c;
    const Words a = wordsOf(arguments[1], static_cast<uint64_t>(kRowsA) * kColumnsA, kSplitsA, device.stream);
    const Words b = wordsOf(arguments[2], static_cast<uint64_t>(kRowsB) * kColumnsB, kSplitsB, device.stream);
    if (kAddsSlices)
        check(aclrtMemsetAsync(out, kCopies * bytes, 0, kCopies * bytes, device.stream), "aclrtMemsetAsync");
    launch_cube(device.stream, a.high, a.low, b.high, b.low, out);
    if (kCopies > 1)
        launch_combine(device.stream, out, c);
    return finished(device, c, bytes, arguments[3]);
}
