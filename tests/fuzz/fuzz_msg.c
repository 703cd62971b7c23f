/* fuzz_msg.c - one message of every type from the same bytes, and what handlers may rely on */
#include "proto/limits.h"
#include "proto/wire.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Walks an accepted message: strings end, hold no control byte but in prose, and are never NULL;
 * counts are within what any list may have. */
static void check_message(const ProtobufCMessage *msg)
{
    const ProtobufCMessageDescriptor *desc = msg->descriptor;
    FUZZ_CHECK(msg->n_unknown_fields <= MS_UNKNOWN_FIELDS);
    for (unsigned i = 0; i < desc->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &desc->fields[i];
        const uint8_t *at = (const uint8_t *)msg + field->offset;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = 0;
            ProtobufCMessage *const *list = NULL;
            memcpy(&n, (const uint8_t *)msg + field->quantifier_offset, sizeof(n));
            memcpy(&list, at, sizeof(list));
            FUZZ_CHECK(n <= MS_WORKERS_MAX);
            for (size_t j = 0; j < n; j++) {
                check_message(list[j]);
            }
        } else if (field->type == PROTOBUF_C_TYPE_STRING) {
            const char *text = NULL;
            memcpy(&text, at, sizeof(text));
            FUZZ_CHECK(text != NULL && strlen(text) <= MS_PATH_MAX);
            for (const char *p = text; *p != '\0'; p++) {
                FUZZ_CHECK((unsigned char)*p >= 0x20 || *p == '\n' || *p == '\t');
            }
        } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            const ProtobufCMessage *part = NULL;
            memcpy(&part, at, sizeof(part));
            if (part != NULL) {
                check_message(part);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* a frame of the corpus: its header would only hide the message */
    if (size >= MS_WIRE_HEADER && memcmp(data, "MSC1", 4) == 0) {
        data += MS_WIRE_HEADER;
        size -= MS_WIRE_HEADER;
    }
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        struct ms_err err = {0, ""};
        ProtobufCMessage *msg = NULL;
        int rc = ms_wire_unpack(ms_wire_at(i)->type, data, size, &msg, &err);
        FUZZ_CHECK(rc == MS_OK || (rc == MS_E_PROTOCOL && err.text[0] != '\0'));
        if (rc == MS_OK) {
            check_message(msg);
        }
        ms_wire_free(msg);
    }
    return 0;
}
