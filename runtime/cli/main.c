#include "cli/cli.h"
#include "device/plan.h"

int main(int argc, char **argv) {
    return sf_cli_main(&sf_the_plan, argc, argv);
}
