/* export_norms.h - which weights of a run are parts of norms, which torch calls otherwise */
#ifndef CLI_EXPORT_NORMS_H
#define CLI_EXPORT_NORMS_H

struct export_norms;

/* Those of the network whose job lies beside the weights. Owned; NULL: nothing says what network it
 * is. */
struct export_norms *export_norms_open(const char *weights);
void export_norms_close(struct export_norms *norms); /* NULL allowed */

/* A norm's gamma, beta or moving statistic that has its name from the layer; one that the job or an
 * ONNX model has named is called as whoever reads it does. arg: the norms. */
int export_norms_has(void *arg, const char *name);

#endif
