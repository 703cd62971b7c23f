/* path.h - paths that a job names: ${NAME} expanded, and judged before a byte of the file is read
 *
 * A job's owner chooses the path, the worker's user reads. Where the two are one person (`msctl
 * run`, the dynamic cluster) everything is open. A standing worker reads for others: there the
 * operator's lists hold (data_path_restrict), and what is refused is neither opened nor told apart
 * from what does not exist. */
#ifndef DATA_PATH_H
#define DATA_PATH_H

#include "proto/err.h"

#include <dirent.h>
#include <stddef.h>

/* From now on jobs may name these variables (blanks between; a last * stands for anything) and read
 * below these folders (absolute; blanks or colons between), and run programs below those of the
 * third list. "any": no limit; programs "none": jobs run none. For the whole process; before the
 * first job. MS_E_CONFIG says what is wrong with a list. */
int data_path_restrict(const char *variables, const char *roots, const char *programs,
                       struct ms_err *err);

/* May jobs run it here? Links are followed; ret of size bytes is the path without them, by which it
 * is run: who lists a folder answers for who writes to it. MS_E_REFUSED, MS_E_NOT_FOUND,
 * MS_E_INVALID: it is no file that can be executed. */
int data_program_check(const char *path, char *ret, size_t size, struct ms_err *err);

/* Replaces every ${NAME} of path by the environment's value in dst of size bytes. MS_E_INVALID
 * names a variable that is unset or empty, or a result that does not fit; MS_E_REFUSED one that
 * jobs may not use here. */
int data_path_expand(const char *path, char *dst, size_t size, struct ms_err *err);

/* May jobs read there? Links are followed, and what does not exist is judged by the folder above.
 * MS_E_REFUSED. */
int data_path_check(const char *path, struct ms_err *err);

/* Opens a regular file and judges where it really lies, so that no link is swapped in between. */
int data_file_open(const char *path, int *ret_fd, struct ms_err *err);

/* The same for a folder, whose names are as much as is read of it. Closed with closedir. */
int data_folder_open(const char *path, DIR **ret, struct ms_err *err);

/* errno is of an attempt to open path, a file or folder of data: says for whom it is closed.
 * Returns MS_E_NOT_FOUND or MS_E_IO. */
int data_open_fail(const char *path, struct ms_err *err);

/* An error about expanded goes to everybody who may see the job: where the lists hold, it names the
 * path as the job has it, not what the environment made of it. */
void data_path_hide(const char *expanded, const char *path, struct ms_err *err);

#endif
