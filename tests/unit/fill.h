/* fill.h - gives every field of a message a value that follows from its name and number */
#ifndef TESTS_FILL_H
#define TESTS_FILL_H

#include "proto/limits.h"

#include <check.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Renumbering, renaming or retyping a field changes the bytes, and the frozen frames notice. The
 * memory lives until fill_free. */
static inline ProtobufCMessage *fill_message(const ProtobufCMessageDescriptor *desc);

enum { FILL_MAX = 256 };
static void *fill_memories[FILL_MAX];
static size_t fill_count;

static inline void *fill_memory(size_t size)
{
    void *p = calloc(1, size);
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_lt(fill_count, FILL_MAX);
    fill_memories[fill_count++] = p;
    return p;
}

static inline void fill_free(void)
{
    while (fill_count > 0) {
        free(fill_memories[--fill_count]);
    }
}

static inline void fill_bytes(const ProtobufCFieldDescriptor *field, ProtobufCBinaryData *ret)
{
    ret->len = strcmp(field->name, "token") == 0          ? MS_TOKEN_LEN
               : strcmp(field->name, "stamp") == 0        ? MS_STAMP_LEN
               : strcmp(field->name, "state_digest") == 0 ? MS_STATE_DIGEST_LEN
                                                          : strlen(field->name);
    ret->data = (uint8_t *)fill_memory(ret->len);
    for (size_t i = 0; i < ret->len; i++) {
        ret->data[i] = (uint8_t)(0xf0 + i); /* bytes, not text: above 0x7f, and 0 */
    }
}

static inline void fill_field(const ProtobufCFieldDescriptor *field, void *at)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)at = (char *)(uintptr_t)field->name;
        break;
    case PROTOBUF_C_TYPE_BYTES:
        fill_bytes(field, (ProtobufCBinaryData *)at);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at =
            fill_message((const ProtobufCMessageDescriptor *)field->descriptor);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = 1;
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = (double)field->id + 0.5;
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_INT64:
        *(uint64_t *)at = ((uint64_t)1 << 40) + field->id;
        break;
    case PROTOBUF_C_TYPE_INT32:
        *(int32_t *)at = -(int32_t)field->id;
        break;
    case PROTOBUF_C_TYPE_UINT32:
        *(uint32_t *)at = 0x80000000U + field->id;
        break;
    default:
        ck_abort_msg("a type that the schema does not use yet: teach fill.h");
    }
}

static inline ProtobufCMessage *fill_message(const ProtobufCMessageDescriptor *desc)
{
    ProtobufCMessage *msg = (ProtobufCMessage *)fill_memory(desc->sizeof_message);
    protobuf_c_message_init(desc, msg);
    for (unsigned i = 0; i < desc->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &desc->fields[i];
        uint8_t *at = (uint8_t *)msg + field->offset;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            ProtobufCMessage **list = (ProtobufCMessage **)fill_memory(2 * sizeof(*list));
            list[0] = fill_message((const ProtobufCMessageDescriptor *)field->descriptor);
            list[1] = list[0];
            *(ProtobufCMessage ***)(void *)at = list;
            *(size_t *)(void *)((uint8_t *)msg + field->quantifier_offset) = 2;
        } else {
            fill_field(field, at);
        }
    }
    return msg;
}

#endif
