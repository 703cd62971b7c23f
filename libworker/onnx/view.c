/* view.c - dimensions of a value as atoms of what a layer makes */
#include "libworker/onnx/view.h"

#include <string.h>

/* ---- sizes ---- */

static int64_t batches_of(int64_t size) /* 0: it is a number, or unknown */
{
    return size > SIZE_UNKNOWN && size <= SIZE_UNKNOWN + SIZE_BATCHES_MAX ? size - SIZE_UNKNOWN : 0;
}

static int64_t of_batches(int64_t k)
{
    return k > 0 && k <= SIZE_BATCHES_MAX ? SIZE_UNKNOWN + k : SIZE_UNKNOWN;
}

int64_t size_times(int64_t a, int64_t b)
{
    const int64_t ka = batches_of(a);
    const int64_t kb = batches_of(b);
    int64_t product = 0;
    if (ka > 0 && kb > 0) {
        return SIZE_UNKNOWN;
    }
    const int64_t p = ka > 0 ? ka : a;
    const int64_t q = kb > 0 ? kb : b;
    if (p < 0 || q < 0 || __builtin_mul_overflow(p, q, &product)) {
        return SIZE_UNKNOWN;
    }
    return ka > 0 || kb > 0 ? of_batches(product) : product;
}

int64_t size_over(int64_t a, int64_t b)
{
    const int64_t ka = batches_of(a);
    const int64_t kb = batches_of(b);
    const int64_t p = ka > 0 ? ka : a;
    const int64_t q = kb > 0 ? kb : b;
    if (p < 0 || q <= 0 || p % q != 0 || (kb > 0 && ka == 0)) {
        return SIZE_UNKNOWN;
    }
    return ka > 0 && kb == 0 ? of_batches(p / q) : p / q;
}

/* ---- dimensions ---- */

static void add_atom(struct view *v, enum view_axis axis, int dim)
{
    if (v->size[axis] != 1) {
        v->atom[v->n_atoms++] = (struct view_atom){axis, v->size[axis], 1, dim};
    }
}

struct view view_whole(enum view_form form, const int64_t size[VIEW_AXES])
{
    struct view v = {.form = form, .n_dims = form == VIEW_IMAGES ? 4 : form == VIEW_ROWS ? 2 : 3};
    memcpy(v.size, size, sizeof(v.size));
    add_atom(&v, AXIS_SAMPLE, 0);
    if (form == VIEW_SEQUENCE) {
        add_atom(&v, AXIS_HEIGHT, 1);
        add_atom(&v, AXIS_CHANNEL, 2);
        return v;
    }
    add_atom(&v, AXIS_CHANNEL, 1);
    if (form == VIEW_IMAGES) {
        add_atom(&v, AXIS_HEIGHT, 2);
        add_atom(&v, AXIS_WIDTH, 3);
    }
    return v;
}

int view_atoms(const struct view *v, int dim, const struct view_atom **ret)
{
    int n = 0;
    *ret = NULL;
    for (int i = 0; i < v->n_atoms; i++) {
        if (v->atom[i].dim == dim) {
            *ret = n == 0 ? &v->atom[i] : *ret;
            n++;
        }
    }
    return n;
}

int64_t view_dim(const struct view *v, int dim)
{
    int64_t size = 1;
    for (int i = 0; i < v->n_atoms; i++) {
        size = v->atom[i].dim == dim ? size_times(size, v->atom[i].size) : size;
    }
    return size;
}

/* Neighbours that run on become one. */
static void merge(struct view *v)
{
    int n = 0;
    for (int i = 0; i < v->n_atoms; i++) {
        const struct view_atom a = v->atom[i];
        struct view_atom *last = n > 0 ? &v->atom[n - 1] : NULL;
        const int runs_on = last != NULL && last->dim == a.dim && last->axis == a.axis &&
                            a.size > 0 && last->size > 0 &&
                            last->step == size_times(a.step, a.size);
        if (runs_on) {
            last->size = size_times(last->size, a.size);
            last->step = a.step;
        } else {
            v->atom[n++] = a;
        }
    }
    v->n_atoms = n;
}

static void remove_atom(struct view *v, int i)
{
    memmove(&v->atom[i], &v->atom[i + 1], sizeof(v->atom[0]) * (size_t)(v->n_atoms - i - 1));
    v->n_atoms--;
}

int view_transpose(struct view *v, const int64_t *perm, int n)
{
    struct view to = *v;
    unsigned seen = 0;
    to.n_atoms = 0;
    if (n != v->n_dims) {
        return -1;
    }
    for (int d = 0; d < n; d++) {
        if (perm[d] < 0 || perm[d] >= n || (seen >> perm[d] & 1) != 0) {
            return -1;
        }
        seen |= 1U << perm[d];
        for (int i = 0; i < v->n_atoms; i++) {
            if (v->atom[i].dim == perm[d]) {
                to.atom[to.n_atoms] = v->atom[i];
                to.atom[to.n_atoms++].dim = d;
            }
        }
    }
    *v = to;
    return 0;
}

/* ---- reshape ---- */

struct reshape {
    struct view from; /* atoms from `next` on are left */
    int next;
    struct view to;
};

static int put(struct reshape *r, struct view_atom atom, int dim)
{
    if (r->to.n_atoms == VIEW_ATOMS_MAX) {
        return -1;
    }
    atom.dim = dim;
    r->to.atom[r->to.n_atoms++] = atom;
    return 0;
}

/* All that is left. */
static int put_rest(struct reshape *r, int dim)
{
    int rc = 0;
    for (; r->next < r->from.n_atoms && rc == 0; r->next++) {
        rc = put(r, r->from.atom[r->next], dim);
    }
    return rc;
}

/* Atoms whose product is `size`; the last of them may be cut in two. */
static int put_dim(struct reshape *r, int dim, int64_t size)
{
    while (size != 1) {
        if (r->next == r->from.n_atoms) {
            return -1;
        }
        struct view_atom *a = &r->from.atom[r->next];
        const int64_t left = size_over(size, a->size);
        const int64_t inner = a->axis == AXIS_SAMPLE ? SIZE_UNKNOWN : size_over(a->size, size);
        if (left > 0 || (left != SIZE_UNKNOWN && left < 0)) {
            if (put(r, *a, dim) < 0) {
                return -1;
            }
            r->next++;
            size = left;
        } else if (inner > 0) {
            const struct view_atom outer = {a->axis, size, size_times(a->step, inner), dim};
            if (outer.step < 0 || put(r, outer, dim) < 0) {
                return -1;
            }
            a->size = inner;
            size = 1;
        } else {
            return -1;
        }
    }
    return 0;
}

/* Numbers for -1 and 0; ret_rest: the dimension that has what is left, where sizes are unknown. */
static int resolve(const struct view *v, const int64_t *sizes, int n, int64_t *ret, int *ret_rest)
{
    int64_t total = 1;
    int64_t others = 1;
    int at = -1;
    *ret_rest = -1;
    for (int d = 0; d < v->n_dims; d++) {
        total = size_times(total, view_dim(v, d));
    }
    for (int d = 0; d < n; d++) {
        ret[d] = sizes[d] == 0 ? (d < v->n_dims ? view_dim(v, d) : 0) : sizes[d];
        if (ret[d] == -1 && at >= 0) {
            return -1;
        }
        at = ret[d] == -1 ? d : at;
        others = ret[d] == -1 ? others : size_times(others, ret[d]);
    }
    if (at >= 0) {
        ret[at] = size_over(total, others);
        *ret_rest = total == SIZE_UNKNOWN && at == n - 1 ? at : -1;
    }
    return 0;
}

int view_reshape(struct view *v, const int64_t *sizes, int n)
{
    struct reshape r = {.from = *v, .to = *v};
    int64_t want[VIEW_DIMS_MAX];
    int rest = -1;
    if (n < 1 || n > VIEW_DIMS_MAX || resolve(v, sizes, n, want, &rest) < 0) {
        return -1;
    }
    r.to.n_atoms = 0;
    r.to.n_dims = n;
    for (int d = 0; d < n; d++) {
        const int is_unknown = want[d] == SIZE_UNKNOWN || want[d] == 0;
        const int rc = d == rest ? put_rest(&r, d) : is_unknown ? -1 : put_dim(&r, d, want[d]);
        if (rc < 0) {
            return -1;
        }
    }
    if (r.next < r.from.n_atoms) {
        return -1;
    }
    merge(&r.to);
    *v = r.to;
    return 0;
}

void view_flatten(struct view *v)
{
    for (int i = 0; i < v->n_atoms; i++) {
        v->atom[i].dim = v->atom[i].dim > 0;
    }
    v->n_dims = 2;
    merge(v);
}

/* ---- parts ---- */

/* The dimension's only atom, which is not the batch; -1: there is none, or there are several. */
static int only_atom(const struct view *v, int dim)
{
    int found = -1;
    int n = 0;
    for (int i = 0; i < v->n_atoms; i++) {
        found = v->atom[i].dim == dim ? i : found;
        n += v->atom[i].dim == dim;
    }
    return n == 1 && v->atom[found].axis != AXIS_SAMPLE ? found : -1;
}

static void drop_dim(struct view *v, int dim)
{
    for (int i = 0; i < v->n_atoms; i++) {
        v->atom[i].dim -= v->atom[i].dim > dim;
    }
    v->n_dims--;
}

int view_cut(struct view *v, int dim, int64_t begin, int64_t count)
{
    const int64_t size = view_dim(v, dim);
    const int i = only_atom(v, dim);
    if (begin < 0 || count < 1 || size < 0 || count > size || begin > size - count) {
        return -1;
    }
    if (count == size) {
        return 0;
    }
    if (i < 0) {
        return -1;
    }
    v->first[v->atom[i].axis] += begin * v->atom[i].step;
    v->atom[i].size = count;
    if (count == 1) {
        remove_atom(v, i);
    }
    return 0;
}

int view_take(struct view *v, int dim, int64_t index)
{
    const struct view_atom *atoms = NULL;
    if (v->n_dims < 2 || view_cut(v, dim, index, 1) < 0 || view_atoms(v, dim, &atoms) > 0) {
        return -1;
    }
    drop_dim(v, dim);
    return 0;
}

/* ---- what it is ---- */

int view_equal(const struct view *a, const struct view *b)
{
    int same = a->form == b->form && a->n_dims == b->n_dims && a->n_atoms == b->n_atoms;
    for (int i = 0; i < VIEW_AXES && same; i++) {
        same = a->first[i] == b->first[i] &&
               (a->size[i] == b->size[i] || a->size[i] < 0 || b->size[i] < 0);
    }
    for (int i = 0; i < a->n_atoms && same; i++) {
        const struct view_atom *x = &a->atom[i];
        const struct view_atom *y = &b->atom[i];
        same = x->axis == y->axis && x->dim == y->dim && x->step == y->step &&
               (x->size == y->size || x->size < 0 || y->size < 0);
    }
    return same;
}

int view_is_whole(const struct view *v, enum view_form form)
{
    const struct view whole = view_whole(form, v->size);
    return v->form == form && view_equal(v, &whole);
}

int view_is_pixels(const struct view *v)
{
    static const int64_t perm[] = {0, 2, 3, 1};
    struct view whole = view_whole(VIEW_IMAGES, v->size);
    (void)view_transpose(&whole, perm, 4);
    return v->form == VIEW_IMAGES && view_equal(v, &whole);
}

/* Is that all of its axis? */
static int is_all(const struct view *v, const struct view_atom *a)
{
    return a->step == 1 && a->size == v->size[a->axis] && v->first[a->axis] == 0;
}

int view_is_tokens(const struct view *v)
{
    const struct view_atom *last = NULL;
    const int n = view_atoms(v, v->n_dims - 1, &last);
    int n_all = 0;
    int n_wanted = 0;
    for (int i = 0; i < v->n_atoms; i++) {
        n_all += is_all(v, &v->atom[i]);
    }
    for (int i = 0; i < VIEW_AXES; i++) {
        n_wanted += v->size[i] != 1;
    }
    const int is_last = v->size[AXIS_CHANNEL] == 1 ? n == 0 : n == 1 && last->axis == AXIS_CHANNEL;
    return v->n_dims > 1 && is_last && n_all == v->n_atoms && n_all == n_wanted;
}

int view_channels(const struct view *v, int64_t *ret_count, int64_t *ret_groups)
{
    const struct view_atom *of[VIEW_ATOMS_MAX];
    int n = 0;
    int runs_on = 1;
    *ret_count = 1;
    *ret_groups = 1;
    for (int i = 0; i < v->n_atoms; i++) {
        if (v->atom[i].axis == AXIS_CHANNEL) {
            runs_on &= n == 0 || of[n - 1]->step == size_times(v->atom[i].size, v->atom[i].step);
            of[n++] = &v->atom[i];
            *ret_count = size_times(*ret_count, v->atom[i].size);
        }
    }
    if (n == 0 || (runs_on && of[n - 1]->step == 1)) {
        return 0;
    }
    const int is_shuffled = n == 2 && of[0]->dim == of[1]->dim && of[0] + 1 == of[1] &&
                            of[0]->step == 1 && of[1]->step == of[0]->size;
    *ret_groups = is_shuffled ? of[1]->size : 1;
    return is_shuffled ? 0 : -1;
}

void view_keep_channels(struct view *v)
{
    int64_t count = 1;
    int64_t groups = 1;
    (void)view_channels(v, &count, &groups);
    v->size[AXIS_CHANNEL] = count;
    v->first[AXIS_CHANNEL] = 0;
    for (int i = 0; i < v->n_atoms && groups > 1; i++) {
        if (v->atom[i].axis == AXIS_CHANNEL) {
            v->atom[i].size = count;
            v->atom[i].step = 1;
            remove_atom(v, i + 1); /* two stand side by side */
            groups = 1;
        }
    }
}

int view_make_tokens(struct view *v)
{
    const int has_width = v->size[AXIS_WIDTH] != 1;
    const int has_height = v->size[AXIS_HEIGHT] != 1;
    const int64_t tokens = size_times(v->size[AXIS_HEIGHT], v->size[AXIS_WIDTH]);
    int at = -1;
    for (int i = 0; i < v->n_atoms && at < 0; i++) {
        at = v->atom[i].axis == (has_height ? AXIS_HEIGHT : AXIS_WIDTH) ? i : -1;
    }
    const struct view_atom *a = at >= 0 ? &v->atom[at] : NULL;
    const int is_pair = has_height && has_width;
    const int stands = a != NULL && is_all(v, a) &&
                       (!is_pair || (at + 1 < v->n_atoms && a[1].axis == AXIS_WIDTH &&
                                     a[1].dim == a->dim && is_all(v, &a[1])));
    if (v->form != VIEW_IMAGES || ((has_width || has_height) && !stands) || tokens < 0) {
        return -1;
    }
    if (is_pair) {
        remove_atom(v, at + 1);
    }
    if (at >= 0) {
        v->atom[at].axis = AXIS_HEIGHT;
        v->atom[at].size = tokens;
    }
    v->form = VIEW_SEQUENCE;
    v->size[AXIS_HEIGHT] = tokens;
    v->size[AXIS_WIDTH] = 1;
    return 0;
}

void view_set_channels(struct view *v, int64_t channels)
{
    int dim = v->form == VIEW_SEQUENCE ? v->n_dims - 1 : 1;
    int at = v->n_atoms;
    for (int i = 0; i < v->n_atoms; i++) {
        if (v->atom[i].axis == AXIS_CHANNEL) {
            dim = v->atom[i].dim;
            at = i;
        }
    }
    v->size[AXIS_CHANNEL] = channels;
    if (at < v->n_atoms) {
        v->atom[at].size = channels;
        if (channels == 1) {
            remove_atom(v, at);
        }
        return;
    }
    if (channels == 1 || v->n_atoms == VIEW_ATOMS_MAX) {
        return;
    }
    at = 0;
    while (at < v->n_atoms && v->atom[at].dim <= dim) {
        at++;
    }
    memmove(&v->atom[at + 1], &v->atom[at], sizeof(v->atom[0]) * (size_t)(v->n_atoms - at));
    v->atom[at] = (struct view_atom){AXIS_CHANNEL, channels, 1, dim};
    v->n_atoms++;
}

/* ---- attention ---- */

int view_heads(const struct view *v, int is_turned, int64_t *ret_heads, int64_t *ret_width)
{
    const struct view_atom *tokens = NULL;
    const struct view_atom *width = NULL;
    const int n_tokens = view_atoms(v, v->n_dims - (is_turned ? 1 : 2), &tokens);
    const int n_width = view_atoms(v, v->n_dims - (is_turned ? 2 : 1), &width);
    if (v->form != VIEW_SEQUENCE || v->n_dims < 3 || n_tokens != (v->size[AXIS_HEIGHT] != 1) ||
        (tokens != NULL && (tokens->axis != AXIS_HEIGHT || !is_all(v, tokens))) || n_width > 1 ||
        (width != NULL && (width->axis != AXIS_CHANNEL || width->step != 1))) {
        return -1;
    }
    const int64_t of_head = width != NULL ? width->size : 1; /* one of 1 has no atom */
    const int n_samples = v->size[AXIS_SAMPLE] != 1;
    const int n_before = v->n_atoms - n_tokens - n_width - n_samples;
    const struct view_atom *heads = n_before == 1 ? &v->atom[n_samples] : NULL;
    if (n_before < 0 || n_before > 1 || (n_samples && v->atom[0].axis != AXIS_SAMPLE) ||
        (heads != NULL &&
         (heads->axis != AXIS_CHANNEL || heads->step != of_head || heads->dim >= v->n_dims - 2))) {
        return -1;
    }
    *ret_heads = heads != NULL ? heads->size : 1;
    *ret_width = of_head;
    return 0;
}
