/* main.c - msctl */
#include "cli/cli.h"
#include "proto/process.h"

int main(int argc, char **argv)
{
    ms_process_begin();
    return cli_main(argc, argv);
}
