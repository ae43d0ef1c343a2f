#include "cuda/cuda_test.h"

#include "device/cuda/maps.h"

static CUresult name_of(CUresult r, const char **text) {
    (void)r;
    *text = "CUDA_ERROR_INVALID_VALUE";
    return CUDA_SUCCESS;
}

/* Keeps the box's rows in the map itself; the fourth map of a buffer of 666 rows fails. */
static CUresult encode(CUtensorMap *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                       int swizzle, int l2, int fill) {
    assert_true(type == 9 && rank == 2 && steps[0] == 1 && steps[1] == 1 && interleave == 0 && swizzle == 3);
    assert_true(l2 == 3 && fill == 0 && (uintptr_t)address == 0x10000);
    assert_true(dims[0] == 4096 && strides[0] == 8192 && box[0] == 64);
    map->opaque[0] = box[1];
    map->opaque[1] = dims[1];
    return dims[1] == 666 && box[1] == 64 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static sf_cu driver = {
    .cuGetErrorName = name_of, .cuGetErrorString = name_of, .cuTensorMapEncodeTiled = encode};

static void each_map_has_twice_the_rows_of_the_one_before(void **state) {
    (void)state;
    CUtensorMap maps[SF_CUDA_MAPS];
    sf_err err;
    assert_int_equal(sf_cuda_maps_make(&driver, 0x10000, 77, 4096, maps, &err), SF_OK);
    for (int i = 0; i < SF_CUDA_MAPS; i++)
        assert_true(maps[i].opaque[0] == 8u << i && maps[i].opaque[1] == 77);
}

static void odd_shapes_are_refused(void **state) {
    (void)state;
    CUtensorMap maps[SF_CUDA_MAPS];
    sf_err err;
    assert_fails(sf_cuda_maps_make(&driver, 0x10000, 0, 4096, maps, &err), &err, SF_INVALID, "of 0 rows");
    assert_fails(sf_cuda_maps_make(&driver, 0x10000, 1, 4100, maps, &err), &err, SF_INVALID, "multiple of 8");
    assert_fails(sf_cuda_maps_make(&driver, 0x10008, 1, 4096, maps, &err), &err, SF_INVALID, "at 0x10008");
}

static void a_map_that_cuda_refuses_leaves_the_others_unwritten(void **state) {
    (void)state;
    CUtensorMap maps[SF_CUDA_MAPS] = {{{77}}};
    sf_err err;
    assert_fails(sf_cuda_maps_make(&driver, 0x10000, 666, 4096, maps, &err), &err, SF_DEVICE,
                 "cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE");
    assert_int_equal(maps[0].opaque[0], 77);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_map_has_twice_the_rows_of_the_one_before),
        cmocka_unit_test(odd_shapes_are_refused),
        cmocka_unit_test(a_map_that_cuda_refuses_leaves_the_others_unwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
