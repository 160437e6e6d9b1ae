/* A small libnvidia-ml.so.1: two cards, one of them busy. Proves the calls through real ctypes, symbols and all.
   What it leaves out is what an old driver leaves out: MIG, power, graphics processes. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { OK = 0, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7 };
typedef struct { int number; } *device_t;
typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process_t;

static struct { int number; } cards[2] = {{0}, {1}};
#define CARD(device) (((struct { int number; } *)(device))->number)

int nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { (void)code; return "an error"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index > 1) return INVALID_ARGUMENT;
    *device = &cards[index];
    return OK;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    snprintf(text, size, "GPU-%08d", CARD(device));
    return OK;
}

int nvmlDeviceGetName(void *device, char *text, unsigned size) {
    (void)device;
    snprintf(text, size, "NVIDIA Stub");
    return OK;
}

int nvmlDeviceGetMinorNumber(void *device, unsigned *minor) { *minor = 4 + CARD(device); return OK; }

int nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2_t *info) {
    if (info->version != (sizeof(memory_v2_t) | 2u << 24)) return INVALID_ARGUMENT;
    info->total = 81559ull << 20;
    info->reserved = 600ull << 20;
    info->used = (unsigned long long)(3 + 1000 * CARD(device)) << 20;
    info->free = info->total - info->reserved - info->used;
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *device, utilization_t *rates) {
    rates->gpu = 97 * CARD(device);
    rates->memory = 0;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_t *found) {
    unsigned room = *count;
    *count = CARD(device);
    if (room < *count) return INSUFFICIENT_SIZE;
    if (*count) {
        found[0].pid = 4242;
        found[0].used = 999ull << 20;
        found[0].gpu_instance = found[0].compute_instance = 0xFFFFFFFFu;
    }
    return OK;
}
