/* What draw.cu's headers want of stdint.h, which NVRTC hasn't got. */
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef unsigned long long uint64_t;
