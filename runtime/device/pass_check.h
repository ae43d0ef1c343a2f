/* What a pass must satisfy before a device may run it: everything that could send a kernel outside its
 * buffers. */
#ifndef SF_DEVICE_PASS_CHECK_H
#define SF_DEVICE_PASS_CHECK_H

#include "device/device.h"

/* Checks against the plan's capacities and a pool of n_pages pages. Errors: SF_INVALID, the first that is
 * wrong. */
SF_CHECKED sf_code sf_pass_check(const sf_plan *plan, int n_pages, const sf_pass *pass, sf_err *err);

#endif
