/* clean.c - what others wrote, before a terminal sees it */
#include "cli/clean.h"

#include "proto/text.h"

#include <string.h>

/* ---- messages ---- */

/* JobInfo.plan is a file's text, printed as one: it loses what commands a terminal, not its lines.
 */
static enum ms_text_kind kind_of(const ProtobufCFieldDescriptor *field)
{
    return strcmp(field->name, "plan") == 0 ? MS_TEXT_LINES : MS_TEXT_LINE;
}

static void clean_field(const ProtobufCFieldDescriptor *field, void *at)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        char *text = *(char **)at;
        if (text != NULL && text[0] != '\0') { /* the empty one is shared, and constant */
            ms_text_mend((uint8_t *)text, strlen(text), kind_of(field));
        }
    } else if (*(ProtobufCMessage **)at != NULL) {
        cli_clean_message(*(ProtobufCMessage **)at);
    }
}

/* The schema has no recursive message: depth is bounded by it. */
void cli_clean_message(ProtobufCMessage *msg)
{
    const ProtobufCMessageDescriptor *desc = msg->descriptor;
    for (unsigned i = 0; i < desc->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &desc->fields[i];
        uint8_t *at = (uint8_t *)msg + field->offset;
        if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            clean_field(field, at);
            continue;
        }
        size_t n = *(size_t *)((uint8_t *)msg + field->quantifier_offset);
        for (size_t k = 0; k < n; k++) {
            clean_field(field, *(void ***)at + k);
        }
    }
}

/* ---- logs ---- */

/* Bytes that a character beginning with c has; 0: none begins so. */
static size_t length_of(uint8_t c)
{
    return c < 0x80                ? 1
           : c >= 0xC2 && c < 0xE0 ? 2
           : c >= 0xE0 && c < 0xF0 ? 3
           : c >= 0xF0 && c < 0xF5 ? 4
                                   : 0;
}

/* Writes the character at p, or a '?' for what is none; returns the bytes it took. */
static size_t put_one(FILE *out, const uint8_t *p, size_t n)
{
    uint32_t code = 0;
    size_t took = ms_utf8_take(p, n, &code);
    if (took == 0 || ms_text_is_control(code, MS_TEXT_LINES)) {
        fputc('?', out);
        return took > 0 ? took : 1;
    }
    fwrite(p, 1, took, out);
    return took;
}

/* The torn character with what follows it; returns how many bytes of the piece it took. */
static size_t put_torn(struct cli_filter *filter, FILE *out, const uint8_t *p, size_t n)
{
    size_t taken = 0;
    size_t want = length_of(filter->torn[0]);
    while (filter->n_torn < want && taken < n && (p[taken] & 0xC0U) == 0x80U) {
        filter->torn[filter->n_torn++] = p[taken++];
    }
    if (filter->n_torn < want && taken == n) {
        return taken; /* still torn */
    }
    for (size_t at = 0; at < filter->n_torn;) {
        at += put_one(out, filter->torn + at, filter->n_torn - at);
    }
    filter->n_torn = 0;
    return taken;
}

static int is_torn(const uint8_t *p, size_t n)
{
    size_t want = length_of(p[0]);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    return want > n;
}

void cli_filter_write(struct cli_filter *filter, FILE *out, const void *bytes, size_t n, int last)
{
    const uint8_t *p = (const uint8_t *)bytes;
    size_t at = filter->n_torn > 0 ? put_torn(filter, out, p, n) : 0;
    while (at < n) {
        if (n - at < sizeof(filter->torn) && is_torn(p + at, n - at)) {
            memcpy(filter->torn, p + at, n - at);
            filter->n_torn = n - at;
            break;
        }
        at += put_one(out, p + at, n - at);
    }
    for (; last && filter->n_torn > 0; filter->n_torn--) {
        fputc('?', out);
    }
}
