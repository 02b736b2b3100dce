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

// Opens the device that main's arguments name, and a stream on it.
struct Device {
    int number;
    aclrtStream stream;
};
Device opened(int count, char **arguments)
{
    if (count < 4) {
        std::fprintf(stderr, "expected: %s a.bin b.bin c.bin [device]\n", arguments[0]);
        std::exit(2);
    }
    Device device{count > 4 ? std::atoi(arguments[4]) : 0, nullptr};
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(device.number), "aclrtSetDevice");
    check(aclrtCreateStream(&device.stream), "aclrtCreateStream");
    return device;
}

// Waits, writes the result from the device to a file, closes the device, and returns main's status.
int finished(const Device &device, const uint8_t *c, size_t bytes, const char *path)
{
    check(aclrtSynchronizeStream(device.stream), "aclrtSynchronizeStream");
    std::vector<char> result(bytes);
    check(aclrtMemcpy(result.data(), bytes, c, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    std::ofstream(path, std::ios::binary).write(result.data(), static_cast<std::streamsize>(bytes));
    check(aclrtResetDevice(device.number), "aclrtResetDevice");
    return aclFinalize() == ACL_SUCCESS ? 0 : 1;
}
