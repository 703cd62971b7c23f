/* message.c - protobuf messages written field by field */
#include "proto/message.h"

#include "proto/grow.h"

#include <string.h>

/* https://protobuf.dev/programming-guides/encoding: the low three bits of a field's key */
enum wire_type { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_32 = 5 };

void ms_message_fini(struct ms_message *message)
{
    free(message->bytes);
    *message = (struct ms_message){.bytes = NULL};
}

void ms_message_clear(struct ms_message *message)
{
    message->n = 0;
    message->failed = 0;
}

int ms_message_failed(const struct ms_message *message)
{
    return message->failed;
}

static void append(struct ms_message *message, const void *bytes, size_t size)
{
    void *grown = ms_grow(message->bytes, message->n, size, 1, &message->room);
    if (grown == NULL) {
        message->failed = 1;
        return;
    }
    message->bytes = grown;
    if (size > 0) {
        memcpy(message->bytes + message->n, bytes, size);
    }
    message->n += size;
}

static void append_varint(struct ms_message *message, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    while (value >= 0x80) {
        bytes[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[n++] = (uint8_t)value;
    append(message, bytes, n);
}

static void append_key(struct ms_message *message, unsigned field, enum wire_type type)
{
    append_varint(message, (uint64_t)field << 3 | (uint64_t)type);
}

void ms_message_put_int(struct ms_message *message, unsigned field, int64_t value)
{
    append_key(message, field, WIRE_VARINT);
    append_varint(message, (uint64_t)value);
}

void ms_message_put_float(struct ms_message *message, unsigned field, float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    const uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                              (uint8_t)(bits >> 24)};
    append_key(message, field, WIRE_32);
    append(message, bytes, sizeof(bytes));
}

void ms_message_put_text(struct ms_message *message, unsigned field, const char *text)
{
    ms_message_put_bytes(message, field, text, strlen(text));
}

void ms_message_put_bytes(struct ms_message *message, unsigned field, const void *bytes,
                          size_t size)
{
    ms_message_put_head(message, field, size);
    append(message, bytes, size);
}

void ms_message_put_head(struct ms_message *message, unsigned field, uint64_t size)
{
    append_key(message, field, WIRE_BYTES);
    append_varint(message, size);
}

void ms_message_put(struct ms_message *message, unsigned field, const struct ms_message *inner)
{
    ms_message_put_begin(message, field, inner, 0);
}

void ms_message_put_begin(struct ms_message *message, unsigned field,
                          const struct ms_message *inner, uint64_t more)
{
    message->failed |= inner->failed;
    ms_message_put_head(message, field, inner->n + more);
    append(message, inner->bytes, inner->n);
}
