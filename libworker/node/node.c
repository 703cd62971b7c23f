/* node.c - who this worker is: names, addresses, cores, memory, instruction set */
#include "libworker/node/node.h"

#include "libworker/host/memory.h"
#include "libworker/host/offer.h"
#include "libworker/node/node_offer.h"
#include "libworker/plan/plan.h"
#include "proto/addr.h"
#include "proto/file_write.h"
#include "proto/regular.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FOLDER_DIGITS = 16 };

/* The kernel's choice of a source address: connect(2) on a datagram socket sends nothing. */
static int reach_from(const char *scheduler, char *ret_ip, size_t size, struct ms_err *err)
{
    struct ms_addr addr;
    struct sockaddr_storage peer;
    struct sockaddr_storage here;
    socklen_t peer_len = 0;
    socklen_t here_len = sizeof(here);
    int rc = ms_addr_parse(scheduler, 0, &addr, err);
    if (rc == 0) {
        rc = ms_addr_resolve(&addr, &peer, &peer_len, err);
    }
    if (rc < 0) {
        return rc;
    }
    int fd = socket(peer.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&peer, peer_len) != 0 ||
        getsockname(fd, (struct sockaddr *)&here, &here_len) != 0) {
        rc = ms_fail_errno(err, MS_E_UNREACHABLE, "no route to the scheduler at %s", scheduler);
    } else if (getnameinfo((struct sockaddr *)&here, here_len, ret_ip, (socklen_t)size, NULL, 0,
                           NI_NUMERICHOST) != 0) {
        rc = ms_fail(err, MS_E_IO, "cannot print the local address towards %s", scheduler);
    }
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

int node_identify(const char *scheduler, const char *node_id, const char *worker_ip,
                  struct node_identity *ret, struct ms_err *err)
{
    struct node_identity self;
    memset(&self, 0, sizeof(self));
    if (gethostname(self.host_name, sizeof(self.host_name) - 1) != 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot read the host name");
    }
    int rc = comm_host_id(self.host_id, sizeof(self.host_id), err);
    if (rc < 0) {
        return rc;
    }
    if (worker_ip != NULL && worker_ip[0] != '\0') {
        snprintf(self.ip, sizeof(self.ip), "%s", worker_ip);
    } else {
        rc = reach_from(scheduler, self.ip, sizeof(self.ip), err);
    }
    if (rc < 0) {
        return rc;
    }
    if (node_id != NULL && node_id[0] != '\0') {
        snprintf(self.node_id, sizeof(self.node_id), "%s", node_id);
    } else {
        uint64_t salt = 0;
        if (getrandom(&salt, sizeof(salt), 0) != (ssize_t)sizeof(salt)) {
            return ms_fail_errno(err, MS_E_IO, "cannot read random bytes for a node id");
        }
        snprintf(self.node_id, sizeof(self.node_id), "%.32s-%d-%08" PRIx32, self.host_name,
                 (int)getpid(), (uint32_t)salt);
    }
    *ret = self;
    return 0;
}

/* Its 16 digits; -1: there are none. */
static int read_digits(const char *path, char digits[FOLDER_DIGITS + 1])
{
    int n = 0;
    FILE *file = NULL;
    if (ms_regular_open(path, "", &file, NULL) < 0) {
        return -1;
    }
    const int is_read = fscanf(file, "%16[0-9a-f]%n", digits, &n) == 1 && n == FOLDER_DIGITS;
    fclose(file);
    return is_read ? 0 : -1;
}

/* Of several that start at once the first one gives it. */
static void make_digits(const char *path)
{
    uint64_t number = 0;
    char digits[FOLDER_DIGITS + 2];
    if (getrandom(&number, sizeof(number), 0) == (ssize_t)sizeof(number)) {
        snprintf(digits, sizeof(digits), "%016" PRIx64 "\n", number);
        (void)ms_file_write(path, digits, strlen(digits), 0644, 1, NULL);
    }
}

uint64_t node_folder(const char *path)
{
    char file[MS_PATH_MAX + 32];
    char digits[FOLDER_DIGITS + 1];
    snprintf(file, sizeof(file), "%s/.msched-folder", path);
    if (read_digits(file, digits) < 0) {
        make_digits(file);
        if (read_digits(file, digits) < 0) {
            return 0;
        }
    }
    return strtoull(digits, NULL, 16);
}

int node_describe(struct node_identity *identity, const struct comm_listener *listener,
                  Ms__Register *ret, struct ms_err *err)
{
    uint64_t incarnation = 0;
    if (getrandom(&incarnation, sizeof(incarnation), 0) != (ssize_t)sizeof(incarnation)) {
        return ms_fail_errno(err, MS_E_IO, "cannot read random bytes for the incarnation");
    }
    struct ms_addr addr = {.is_unix = 0, .port = comm_listener_port(listener)};
    snprintf(addr.host, sizeof(addr.host), "%s", identity->ip);
    ms_addr_format(&addr, identity->data_address);
    snprintf(identity->data_unix, sizeof(identity->data_unix), "%s", comm_listener_unix(listener));
    snprintf(identity->isa, sizeof(identity->isa), "%s", plan_isa());
    snprintf(identity->onednn, sizeof(identity->onednn), "%s", plan_library());
    ret->node_id = identity->node_id;
    ret->incarnation = incarnation | 1; /* never 0 */
    ret->host_name = identity->host_name;
    ret->host_id = identity->host_id;
    ret->data_address = identity->data_address;
    ret->data_unix = identity->data_unix;
    ret->uid = (uint32_t)geteuid();
    node_offer_write(&host_get()->offer, &identity->offer);
    identity->offer.l1d_bytes = (uint64_t)plan_cache_bytes(1); /* that the plans' lines are of */
    identity->offer.l2_bytes = (uint64_t)plan_cache_bytes(2);
    ret->offer = &identity->offer;
    ret->cores = identity->offer.cores;
    uint64_t bytes = memory_available();
    ret->memory_bytes = bytes == MEMORY_UNKNOWN ? 0 : bytes; /* 0: not known */
    ret->isa = identity->isa;
    ret->onednn = identity->onednn;
    ret->pid = (uint32_t)getpid();
    return 0;
}
