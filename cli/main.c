/* main.c - msctl */
#include "cli/cli.h"
#include "proto/process.h"
#include "proto/regular.h"

int main(int argc, char **argv)
{
    ms_process_begin();
    ms_regular_take_pipes();
    return cli_main(argc, argv);
}
