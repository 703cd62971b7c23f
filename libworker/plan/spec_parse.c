/* spec_parse.c - a plan's text, from whomever, back to a spec
 *
 * Lines of words with one space in between, read in the one order in which they are written. What
 * was read is written again at the end and must be the same bytes: so there is one text for a spec,
 * whatever a line's own checks let pass. */
#include "libworker/plan/spec.h"

#include "libworker/plan/spec_text.h"
#include "proto/limits.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORDS_MAX = 12,
    ITEMS_MAX = (int)(MS_PLAN_MAX / 8), /* of a list: none of its lines is shorter */
};

struct words { /* of one line; they point into the reader's copy of the text */
    char *word[WORDS_MAX];
    int n;
};

struct reader {
    char *next; /* the line after the current one; NULL: none */
    int line;   /* the current one, from 1 */
    struct words words;
    struct plan_spec *spec;
    int again_use, again_op; /* the last one that is made again */
};

static int bad(const struct reader *r, struct ms_err *err, const char *want)
{
    return ms_fail(err, MS_E_INVALID, "plan line %d: %s", r->line, want);
}

/* ---- words --------------------------------------------------------------------------------------
 */

static int split(struct reader *r, char *line, struct ms_err *err)
{
    r->words.n = 0;
    for (char *at = line; at != NULL;) {
        if (r->words.n == WORDS_MAX) {
            return bad(r, err, "has too many words");
        }
        char *space = strchr(at, ' ');
        if (space != NULL) {
            *space++ = '\0';
        }
        r->words.word[r->words.n++] = at;
        at = space;
    }
    return 0;
}

/* The next line without its LF; NULL, with the error: there is none. */
static char *next_line(struct reader *r, struct ms_err *err)
{
    char *line = r->next;
    r->line++;
    char *lf = line == NULL ? NULL : strchr(line, '\n');
    if (lf == NULL) {
        (void)bad(r, err, "is missing or has no end");
        return NULL;
    }
    *lf = '\0';
    r->next = lf + 1;
    if (lf > line && lf[-1] == '\r') {
        (void)bad(r, err, "ends with CR LF: a plan has LF alone");
        return NULL;
    }
    return line;
}

static int read_words(struct reader *r, struct ms_err *err)
{
    char *line = next_line(r, err);
    return line == NULL ? MS_E_INVALID : split(r, line, err);
}

static int expect(struct reader *r, const char *want, struct ms_err *err)
{
    const char *line = next_line(r, err);
    if (line == NULL) {
        return MS_E_INVALID;
    }
    return strcmp(line, want) == 0
               ? 0
               : ms_fail(err, MS_E_INVALID, "plan line %d: must be '%s'", r->line, want);
}

/* Plain digits, at most `max`; the whole word. */
static int number(const char *word, int64_t min, int64_t max, int64_t *ret)
{
    int64_t value = 0;
    const char *at = word;
    for (; *at >= '0' && *at <= '9' && value <= max; at++) {
        value = value * 10 + (*at - '0');
    }
    if (at == word || *at != '\0' || value < min || value > max) {
        return -1;
    }
    *ret = value;
    return 0;
}

static int int_word(const char *word, int min, int max, int *ret)
{
    int64_t value = 0;
    int rc = number(word, min, max, &value);
    *ret = rc == 0 ? (int)value : *ret;
    return rc;
}

/* A name: printing characters. */
static int token(const char *word, char *ret, size_t size)
{
    size_t n = strlen(word);
    if (n == 0 || n >= size) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        if (word[i] <= ' ' || word[i] > '~') {
            return -1;
        }
    }
    memcpy(ret, word, n + 1);
    return 0;
}

/* "32x3x28x28" */
static int shape_word(char *word, struct shape *ret)
{
    struct shape shape = {0, {0}};
    int64_t count = 1;
    for (char *at = word; at != NULL;) {
        char *x = strchr(at, 'x');
        if (x != NULL) {
            *x++ = '\0';
        }
        if (shape.n_dims == GRAPH_DIMS_MAX ||
            number(at, 1, GRAPH_ELEMENTS_MAX, &shape.dim[shape.n_dims]) < 0 ||
            shape.dim[shape.n_dims] > GRAPH_ELEMENTS_MAX / count) {
            return -1;
        }
        count *= shape.dim[shape.n_dims++];
        at = x;
    }
    *ret = shape;
    return 0;
}

/* "1024+64", which must begin where the one before ended. */
static int range_word(char *word, int64_t begin, int64_t *ret_offset, int64_t *ret_count)
{
    char *plus = strchr(word, '+');
    if (plus == NULL) {
        return -1;
    }
    *plus = '\0';
    int rc = number(word, begin, begin, ret_offset);
    return rc < 0 ? rc : number(plus + 1, 1, GRAPH_ELEMENTS_MAX - begin, ret_count);
}

/* Is the line in hand of the key and n values? */
static int has_values(const struct reader *r, const char *key, int n, struct ms_err *err)
{
    if (strcmp(r->words.word[0], key) == 0 && r->words.n == n + 1) {
        return 0;
    }
    return ms_fail(err, MS_E_INVALID, "plan line %d: must be '%s' with %d values", r->line, key, n);
}

/* A line of the key and n values. */
static int keyed(struct reader *r, const char *key, int n, struct ms_err *err)
{
    int rc = read_words(r, err);
    return rc < 0 ? rc : has_values(r, key, n, err);
}

static int read_token(struct reader *r, const char *key, char *ret, size_t size, struct ms_err *err)
{
    int rc = keyed(r, key, 1, err);
    return rc < 0 || token(r->words.word[1], ret, size) == 0
               ? rc
               : bad(r, err, "the name is too long or has characters that no name has");
}

static int read_int(struct reader *r, const char *key, int min, int max, int *ret,
                    struct ms_err *err)
{
    int rc = keyed(r, key, 1, err);
    if (rc == 0 && int_word(r->words.word[1], min, max, ret) < 0) {
        rc = ms_fail(err, MS_E_INVALID, "plan line %d: %s must be a number from %d to %d", r->line,
                     key, min, max);
    }
    return rc;
}

/* ---- the parts ----------------------------------------------------------------------------------
 */

static int read_caches(struct reader *r, struct ms_err *err)
{
    struct plan_machine *machine = &r->spec->machine;
    int rc = read_words(r, err);
    if (rc == 0 && r->words.n == 2 && strcmp(r->words.word[0], "caches") == 0) {
        machine->mixed_caches = strcmp(r->words.word[1], "mixed") == 0;
        return machine->mixed_caches ? 0 : bad(r, err, "caches must be two numbers, or 'mixed'");
    }
    rc = rc < 0 ? rc : has_values(r, "caches", PLAN_CACHES, err);
    for (int i = 0; i < PLAN_CACHES && rc == 0; i++) {
        if (number(r->words.word[1 + i], 0, GRAPH_ELEMENTS_MAX, &machine->caches[i]) < 0) {
            rc = bad(r, err, "caches must be two numbers of bytes");
        }
    }
    return rc;
}

static int read_precision(struct reader *r, struct ms_err *err)
{
    int rc = keyed(r, "precision", 1, err);
    for (int dtype = 0; dtype < MS_DTYPES && rc == 0; dtype++) {
        const char *name = spec_precision_name((enum ms_dtype)dtype);
        if (name != NULL && strcmp(r->words.word[1], name) == 0) {
            r->spec->precision = (enum ms_dtype)dtype;
            return 0;
        }
    }
    return rc < 0 ? rc : bad(r, err, "precision must be fp32 or bf16");
}

static int read_bucket_bytes(struct reader *r, struct ms_err *err)
{
    int rc = keyed(r, "bucket_bytes", 1, err);
    return rc < 0 || number(r->words.word[1], 1, GRAPH_ELEMENTS_MAX, &r->spec->bucket_bytes) == 0
               ? rc
               : bad(r, err, "bucket_bytes must be a number of bytes");
}

static int read_head(struct reader *r, struct ms_err *err)
{
    struct plan_spec *s = r->spec;
    int rc = expect(r, SPEC_VERSION, err);
    rc = rc < 0 ? rc : expect(r, SPEC_BITS, err);
    rc = rc < 0 ? rc : read_token(r, "network", s->network, sizeof(s->network), err);
    rc = rc < 0 ? rc : read_int(r, "world", 1, MS_WORKERS_MAX, &s->world, err);
    rc = rc < 0 ? rc : read_int(r, "threads", 1, MS_THREADS_MAX, &s->threads, err);
    rc = rc < 0 ? rc : read_token(r, "isa", s->machine.isa, sizeof(s->machine.isa), err);
    rc = rc < 0 ? rc : read_token(r, "onednn", s->machine.library, sizeof(s->machine.library), err);
    rc = rc < 0 ? rc : read_caches(r, err);
    rc = rc < 0 ? rc : read_precision(r, err);
    rc = rc < 0 ? rc : expect(r, SPEC_DENORMALS, err);
    rc = rc < 0 ? rc : expect(r, SPEC_SUM_TREE, err);
    return rc < 0 ? rc : read_bucket_bytes(r, err);
}

/* A list's length, and room for it. */
static int read_list(struct reader *r, const char *key, size_t item, int *ret_n, void *ret_items,
                     struct ms_err *err)
{
    int n = 0;
    int rc = read_int(r, key, 0, ITEMS_MAX, &n, err);
    void *items = rc < 0 ? NULL : calloc((size_t)n + 1, item);
    if (items == NULL) {
        return rc < 0 ? rc : ms_fail(err, MS_E_NOMEM, "plan: no memory for %d %s", n, key);
    }
    memcpy(ret_items, &items, sizeof(items));
    *ret_n = n;
    return 0;
}

static int read_param(struct reader *r, int64_t begin, struct plan_spec_param *p,
                      struct ms_err *err)
{
    int rc = read_words(r, err);
    char **w = r->words.word;
    int n = r->words.n;
    if (rc < 0) {
        return rc;
    }
    if ((n != 5 && n != 8) || strcmp(w[0], "parameter") != 0 ||
        token(w[1], p->name, sizeof(p->name)) < 0) {
        return bad(r, err, "must be 'parameter' with name, place, layout and shape");
    }
    if (range_word(w[2], begin, &p->offset, &p->count) < 0) {
        return bad(r, err, "the place must begin where the last parameter ends");
    }
    if (token(w[3], p->layout, sizeof(p->layout)) < 0 || shape_word(w[4], &p->shape) < 0) {
        return bad(r, err, "the parameter has no layout and shape");
    }
    if (n == 8 &&
        (strcmp(w[5], "columns") != 0 || token(w[6], p->columns, sizeof(p->columns)) < 0 ||
         shape_word(w[7], &p->columns_shape) < 0)) {
        return bad(r, err, "the parameter's columns have no layout and shape");
    }
    return 0;
}

static int read_params(struct reader *r, struct ms_err *err)
{
    struct plan_spec *s = r->spec;
    int n = 0;
    int rc = read_list(r, "parameters", sizeof(*s->params), &n, &s->params, err);
    int64_t end = 0;
    for (; s->n_params < n && rc == 0; s->n_params += rc == 0) {
        struct plan_spec_param *p = &s->params[s->n_params];
        rc = read_param(r, end, p, err);
        end = p->offset + p->count;
    }
    return rc;
}

static int read_stats(struct reader *r, struct ms_err *err)
{
    struct plan_spec *s = r->spec;
    int n = 0;
    int rc = read_list(r, "statistics", sizeof(*s->stats), &n, &s->stats, err);
    int64_t end = 0;
    for (; s->n_stats < n && rc == 0; s->n_stats += rc == 0) {
        struct plan_spec_stat *stat = &s->stats[s->n_stats];
        rc = keyed(r, "statistic", 2, err);
        if (rc == 0 && (token(r->words.word[1], stat->name, sizeof(stat->name)) < 0 ||
                        range_word(r->words.word[2], end, &stat->offset, &stat->count) < 0)) {
            rc = bad(r, err, "a statistic has a name and begins where the last one ends");
        }
        end = stat->offset + stat->count;
    }
    return rc;
}

static int read_buckets(struct reader *r, struct ms_err *err)
{
    struct plan_spec *s = r->spec;
    int n = 0;
    int rc = read_list(r, "buckets", sizeof(*s->buckets), &n, &s->buckets, err);
    int64_t begin = 0;
    int64_t count = 0;
    for (; s->n_buckets < n && rc == 0; s->n_buckets += rc == 0) {
        rc = keyed(r, "bucket", 1, err);
        if (rc == 0 && range_word(r->words.word[1], begin + count, &begin, &count) < 0) {
            rc = bad(r, err, "a bucket begins where the last one ends");
        }
        s->buckets[s->n_buckets] = (struct plan_bucket){(size_t)begin, (size_t)count};
    }
    return rc;
}

/* ---- uses ---------------------------------------------------------------------------------------
 */

/* "src=aBcd16b": the value behind the key, NULL: the word has another key. */
static const char *value_of(const char *word, const char *key)
{
    size_t n = strlen(key);
    return strncmp(word, key, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

static int op_fact(const char *word, struct plan_spec_op *op)
{
    const struct {
        const char *key;
        char *ret;
    } layouts[] = {{"src", op->src}, {"weights", op->weights}, {"dst", op->dst}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(layouts); i++) {
        const char *value = value_of(word, layouts[i].key);
        if (value != NULL) {
            return token(value, layouts[i].ret, PLAN_TOKEN_MAX);
        }
    }
    const char *relu = value_of(word, "relu");
    if (relu != NULL) {
        return int_word(relu, 1, 2, &op->relu);
    }
    const char *channels = value_of(word, "channels");
    return channels == NULL ? -1 : number(channels, 1, GRAPH_ELEMENTS_MAX, &op->channels);
}

static int read_op(struct reader *r, int after, struct plan_spec_op *op, struct ms_err *err)
{
    int rc = read_words(r, err);
    char **w = r->words.word;
    if (rc < 0) {
        return rc;
    }
    if (r->words.n < 5 || strcmp(w[0], "op") != 0 ||
        int_word(w[1], after + 1, ITEMS_MAX, &op->op) < 0) {
        return bad(r, err, "must be 'op' with a number above the last one's");
    }
    if (token(w[2], op->kind, sizeof(op->kind)) < 0 ||
        token(w[3], op->name, sizeof(op->name)) < 0 ||
        token(w[4], op->impl, sizeof(op->impl)) < 0) {
        return bad(r, err, "an op has a kind, a name and an implementation");
    }
    for (int i = 5; i < r->words.n; i++) {
        if (op_fact(w[i], op) < 0) {
            return bad(r, err, "an op has relu, src, weights, dst and channels, with values");
        }
    }
    return 0;
}

static int read_use(struct reader *r, struct plan_spec_use *use, struct ms_err *err)
{
    int n = 0;
    if (r->words.n != 4 || shape_word(r->words.word[2], &use->batch) < 0 ||
        int_word(r->words.word[3], 1, ITEMS_MAX, &n) < 0) {
        return bad(r, err, "a use has a name, a batch's shape and a number of ops");
    }
    use->ops = calloc((size_t)n, sizeof(*use->ops));
    if (use->ops == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d ops", n);
    }
    int rc = 0;
    for (; use->n_ops < n && rc == 0; use->n_ops += rc == 0) {
        int after = use->n_ops == 0 ? -1 : use->ops[use->n_ops - 1].op;
        rc = read_op(r, after, &use->ops[use->n_ops], err);
    }
    return rc;
}

static int find_use(const char *name)
{
    int use = 0;
    while (use < PLAN_USES && strcmp(plan_use_name((enum plan_use)use), name) != 0) {
        use++;
    }
    return use;
}

/* All uses, and the line after them, which must open the other section. */
static int read_uses(struct reader *r, struct ms_err *err)
{
    int rc = read_words(r, err);
    int last = -1;
    while (rc == 0 && strcmp(r->words.word[0], "use") == 0) {
        int use = r->words.n > 1 ? find_use(r->words.word[1]) : PLAN_USES;
        if (use == PLAN_USES || use <= last) {
            return bad(r, err, "uses are train, tail and evaluation, in this order");
        }
        last = use;
        rc = read_use(r, &r->spec->uses[use], err);
        rc = rc < 0 ? rc : read_words(r, err);
    }
    if (rc == 0 && last < 0) {
        rc = bad(r, err, "must be a 'use': a plan has one at least");
    }
    if (rc == 0 && (r->words.n != 2 || strcmp(r->words.word[0], "section") != 0 ||
                    strcmp(r->words.word[1], "memory") != 0)) {
        rc = bad(r, err, "must be another 'use' or '" SPEC_MEMORY "'");
    }
    return rc;
}

static int mark_again(struct reader *r, struct ms_err *err)
{
    int use = r->words.n == 3 ? find_use(r->words.word[1]) : PLAN_USES;
    int op = 0;
    if (use == PLAN_USES || int_word(r->words.word[2], 0, ITEMS_MAX, &op) < 0) {
        return bad(r, err, "must be 'again' with a use and an op, or '" SPEC_END "'");
    }
    if (use < r->again_use || (use == r->again_use && op <= r->again_op)) {
        return bad(r, err, "what is made again comes in the order of the ops");
    }
    r->again_use = use;
    r->again_op = op;
    struct plan_spec_use *of = &r->spec->uses[use];
    for (int i = 0; i < of->n_ops; i++) {
        if (of->ops[i].op == op) {
            of->ops[i].again = 1;
            return 0;
        }
    }
    return bad(r, err, "names an op that the use has not");
}

/* Parameters have their order: each is looked for behind the last one. */
static int read_mirror(struct reader *r, int *param, struct ms_err *err)
{
    struct plan_spec *s = r->spec;
    char **w = r->words.word;
    if (r->words.n != 3) {
        return bad(r, err, "must be 'mirror' with a parameter and a layout");
    }
    while (*param < s->n_params && strcmp(s->params[*param].name, w[1]) != 0) {
        (*param)++;
    }
    if (*param == s->n_params) {
        return bad(r, err, "names no parameter, or one before the last mirror's");
    }
    char *layout = s->params[(*param)++].mirror;
    return token(w[2], layout, PLAN_TOKEN_MAX) == 0 ? 0 : bad(r, err, "the mirror has no layout");
}

static int read_memory(struct reader *r, struct ms_err *err)
{
    int rc = read_words(r, err);
    int param = 0;
    while (rc == 0 && strcmp(r->words.word[0], "mirror") == 0) {
        rc = read_mirror(r, &param, err);
        rc = rc < 0 ? rc : read_words(r, err);
    }
    while (rc == 0 && strcmp(r->words.word[0], "again") == 0) {
        rc = mark_again(r, err);
        rc = rc < 0 ? rc : read_words(r, err);
    }
    if (rc == 0 && (r->words.n != 1 || strcmp(r->words.word[0], SPEC_END) != 0)) {
        rc = bad(r, err, "must be 'mirror', 'again' or '" SPEC_END "', in this order");
    }
    return rc;
}

/* ---- the whole ----------------------------------------------------------------------------------
 */

static int line_of_difference(const char *a, const char *b)
{
    int line = 1;
    for (; *a == *b && *a != '\0'; a++, b++) {
        line += *a == '\n';
    }
    return line;
}

static int check_canonical(const struct plan_spec *spec, const char *text, size_t size,
                           struct ms_err *err)
{
    char *again = NULL;
    size_t again_size = 0;
    int rc = plan_spec_format(spec, &again, &again_size, err);
    if (rc == 0 && (again_size != size || memcmp(again, text, size) != 0)) {
        rc = ms_fail(err, MS_E_INVALID,
                     "plan line %d: is not as msched writes it: words, their order, zeros in front",
                     line_of_difference(again, text));
    }
    free(again);
    return rc;
}

static int read_text(struct reader *r, struct ms_err *err)
{
    int rc = read_head(r, err);
    rc = rc < 0 ? rc : read_params(r, err);
    rc = rc < 0 ? rc : read_stats(r, err);
    rc = rc < 0 ? rc : read_buckets(r, err);
    rc = rc < 0 ? rc : read_uses(r, err);
    rc = rc < 0 ? rc : read_memory(r, err);
    if (rc == 0 && r->next[0] != '\0') {
        r->line++;
        rc = bad(r, err, "stands after the end");
    }
    return rc;
}

int plan_spec_parse(const char *text, size_t size, struct plan_spec **ret, struct ms_err *err)
{
    if (size > MS_PLAN_MAX) {
        return ms_fail(err, MS_E_INVALID, "plan: %zu bytes, at most %u are allowed", size,
                       MS_PLAN_MAX);
    }
    char *given = malloc(2 * (size + 1)); /* as it came, and a copy that is cut into words */
    struct plan_spec *spec = calloc(1, sizeof(*spec));
    if (given == NULL || spec == NULL) {
        free(given);
        free(spec);
        return ms_fail(err, MS_E_NOMEM, "plan: no memory to read it");
    }
    memcpy(given, text, size);
    given[size] = '\0';
    memcpy(given + size + 1, given, size + 1);
    struct reader r = {.next = given + size + 1, .spec = spec, .again_op = -1};
    int rc = read_text(&r, err);
    rc = rc < 0 ? rc : check_canonical(spec, given, size, err);
    free(given);
    if (rc < 0) {
        plan_spec_destroy(spec);
        return rc;
    }
    *ret = spec;
    return 0;
}
