#ifndef STEP_CUH
#define STEP_CUH

/* "quoted" \ and a tab:	*/
constexpr int step(int n) {
    return n / 2;
}

#endif
