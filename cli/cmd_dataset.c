/* cmd_dataset.c - msctl dataset: a data set made on the spot, for machines that have none */
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/json.h"
#include "libworker/data/data.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct cli_option cmd_dataset_options[] = {
    {"train", 0, "N", "images to train on; 10000 unless given", NULL},
    {"test", 0, "N", "images to test on; 2000 unless given", NULL},
    {"seed", 0, "N", "of the drawing; 1 unless given", NULL},
    {"force", 0, NULL, "replace a data set that is there", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

static const int64_t images_max = 10000000; /* 30 GB */

static void on_progress(void *arg, int64_t done, int64_t total)
{
    struct cli *cli = (struct cli *)arg;
    char bar[32];
    char count[CLI_FORMAT_MAX];
    if (cli->live && total > 0) {
        fprintf(cli->err, "\rdrawing %s %s images\x1b[K%s",
                cli_bar(bar, sizeof(bar), 30, (double)done / (double)total),
                cli_format_count(count, (uint64_t)done), done >= total ? "\r\x1b[K" : "");
        fflush(cli->err);
    }
}

/* CIFAR-10's names are those of the real one, too, which took an hour to download. */
static int check_free(const char *dir, int force, struct ms_err *err)
{
    static const char *const names[] = {"data_batch_1.bin", "test_batch.bin", "batches.meta.txt"};
    char path[MS_PATH_MAX + 32];
    for (size_t i = 0; i < MS_ARRAY_SIZE(names) && !force; i++) {
        snprintf(path, sizeof(path), "%.*s/%s", MS_PATH_MAX, dir, names[i]);
        if (access(path, F_OK) == 0) {
            return ms_fail(err, MS_E_EXISTS,
                           "%.200s holds a data set already (%s): name another folder, or replace "
                           "it with --force",
                           dir, names[i]);
        }
    }
    return MS_OK;
}

int cmd_dataset(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    int64_t train = 0;
    int64_t test = 0;
    int64_t seed = 0;
    int rc = cli_need_words(args, 2, 2, "shapes DIR", err);
    if (rc == MS_OK && strcmp(args->words[0], "shapes") != 0) {
        rc = ms_fail(err, MS_E_INVALID, "msctl dataset: unknown data set '%.80s'; there is: shapes",
                     args->words[0]);
    }
    if (rc == MS_OK) {
        rc = cli_number(args, "train", 1, images_max, 10000, &train, err);
    }
    if (rc == MS_OK) {
        rc = cli_number(args, "test", 1, images_max, 2000, &test, err);
    }
    if (rc == MS_OK) {
        rc = cli_number(args, "seed", 0, INT64_MAX, 1, &seed, err);
    }
    if (rc == MS_OK) {
        rc = check_free(args->words[1], cli_has(args, "force"), err);
    }
    if (rc == MS_OK) {
        rc = data_write_shapes(args->words[1], train, test, (uint64_t)seed, on_progress, cli, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s,s:I,s:I}", "directory", args->words[1], "train",
                                           (json_int_t)train, "test", (json_int_t)test));
    } else {
        char a[CLI_FORMAT_MAX];
        char b[CLI_FORMAT_MAX];
        fprintf(cli->out, "%s: %s images to train on, %s to test\n", args->words[1],
                cli_format_count(a, (uint64_t)train), cli_format_count(b, (uint64_t)test));
    }
    return MS_OK;
}
