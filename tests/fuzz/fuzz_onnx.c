/* fuzz_onnx.c - a model that may be hostile: it is refused, or its list is legal and each tensor
 * that it names can be looked for */
#include "libworker/network/network.h"
#include "libworker/onnx/onnx.h"
#include "proto/limits.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { VALUES_MAX = 4096 };

static void read_weights(const struct onnx_file *file, const struct graph *graph)
{
    static float values[VALUES_MAX];
    for (int i = 0; i < graph_n_stored(graph); i++) {
        const struct tensor *tensor = graph_tensor(graph, graph_stored_at(graph, i));
        const struct onnx_tensor *from = onnx_find(file, tensor->name);
        const int64_t count = shape_count(&tensor->shape);
        FUZZ_CHECK(from != NULL); /* a parameter is called as the file calls it */
        if (count <= VALUES_MAX) {
            struct ms_err err = {0, ""};
            int rc = onnx_read(file, from, values, (size_t)count, &err);
            FUZZ_CHECK(rc == MS_OK || err.text[0] != '\0');
        }
    }
}

/* What its layers have as parameters is the network's; a weight the other way round is none's. */
static int check_parameter(void *arg, const struct onnx_tensor *tensor, struct ms_err *err)
{
    (void)err;
    FUZZ_CHECK(arg == NULL || graph_find(arg, tensor->name) >= 0);
    return MS_OK;
}

/* What was read is a network, though perhaps none of this input. */
static void check_network(const struct onnx_file *file, json_t *document)
{
    static const struct network_input input = {
        .batch = 2, .channels = 3, .height = 20, .width = 16, .classes = 10};
    struct network *network = NULL;
    struct graph *graph = NULL;
    struct ms_err err = {0, ""};
    char *text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    FUZZ_CHECK(text != NULL);
    int rc = network_parse(text, strlen(text), "fuzz.onnx", "fuzz", &network, &err);
    rc = rc < 0 ? rc : network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, &err);
    FUZZ_CHECK(rc == MS_OK || (rc == MS_E_INVALID && err.text[0] != '\0'));
    if (rc == MS_OK) {
        read_weights(file, graph);
        FUZZ_CHECK(onnx_each_parameter(file, check_parameter, graph, &err) == MS_OK);
    }
    graph_destroy(graph);
    network_destroy(network);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct onnx_file *file = NULL;
    json_t *document = NULL;
    struct ms_err err = {0, ""};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int rc = onnx_open(path, &file, &err);
    rc = rc < 0 ? rc : onnx_network(file, &document, &err);
    FUZZ_CHECK(rc == MS_OK || (rc == MS_E_INVALID && err.text[0] != '\0'));
    if (rc == MS_OK) {
        check_network(file, document);
        json_decref(document);
    }
    if (file != NULL) {
        rc = onnx_each_parameter(file, check_parameter, NULL, &err);
        FUZZ_CHECK(rc == MS_OK || (rc == MS_E_INVALID && err.text[0] != '\0'));
    }
    onnx_close(file);
    close(fd);
    return 0;
}
