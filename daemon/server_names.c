/* server_names.c - whose connection on a Unix socket this is, before it is taken
 *
 * Root and the daemon's own user are known without asking, so that an admin gets in while a
 * directory hangs. All others wait in front of the door (server_door.c) until their name is known.
 */
#include "daemon/server_state.h"

#include "daemon/names.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void server_names_open(struct server *server)
{
    if (names_from_nss((unsigned)geteuid(), server->own_name) < 0) {
        server->own_name[0] = '\0'; /* admin:NUMBER then */
    }
}

static void on_answer(void *arg)
{
    server_names_came(arg);
}

enum server_name server_name_of(struct server *server, struct listener *listener, int fd,
                                char name[MS_NAME_MAX + 1], int *ret_is_mapped)
{
    struct ucred cred;
    struct ms_err err = {0, ""};
    socklen_t size = sizeof(cred);
    name[0] = '\0';
    *ret_is_mapped = 0;
    if (!listener_is_unix(listener) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0) {
        return SERVER_NAME_KNOWN; /* nothing to ask for */
    }
    const char *known = who_map_find(&server->options->user_map, cred.uid);
    *ret_is_mapped = known != NULL;
    known = known == NULL && cred.uid == 0 ? "root" : known;
    known = known == NULL && cred.uid == geteuid() ? server->own_name : known;
    if (known != NULL) {
        memcpy(name, known, strlen(known) + 1);
        return SERVER_NAME_KNOWN;
    }
    if (server->names == NULL &&
        names_create(server->base, names_from_nss, on_answer, server, &server->names, &err) < 0) {
        return SERVER_NAME_FAILED;
    }
    switch (names_find(server->names, cred.uid, name)) {
    case NAMES_KNOWN:
        return SERVER_NAME_KNOWN;
    case NAMES_PENDING:
        return SERVER_NAME_LATER;
    default:
        return SERVER_NAME_FAILED;
    }
}

void server_names_forget(struct server *server)
{
    if (server->names != NULL) {
        names_forget(server->names);
    }
}

void server_names_close(struct server *server)
{
    names_destroy(server->names);
    server->names = NULL;
}
