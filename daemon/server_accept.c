/* server_accept.c - the listeners: opened or passed in, closed */
#include "daemon/server_state.h"

#include "proto/notify.h"

#include <stdio.h>

enum { FIRST_PASSED_FD = 3 };

static void on_trouble(struct listener *listener, const char *text, void *arg)
{
    char quoted[2 * MS_TEXT_MAX];
    (void)listener;
    server_log(arg, MS_LOG_WARNING, "accept.failed text=%s",
               ms_log_quote(quoted, sizeof(quoted), text));
}

void server_close_listeners(struct server *server)
{
    server_send_away(server);
    for (size_t i = 0; i < server->listeners_n; i++) {
        listener_close(server->listeners[i]);
    }
    server->listeners_n = 0;
    server->listening = 0;
}

/* ---- opening the listeners ----------------------------------------------------------------------
 */

static void add_door(struct server *server)
{
    size_t i = server->listeners_n++;
    doorway_init(&server->doors[i],
                 listener_is_unix(server->listeners[i]) ? MS_HALF_OPEN_UNIX : MS_HALF_OPEN_MAX,
                 server->waiting_max);
}

static int adopt_passed(struct server *server, const struct listener_handler *handler, int *ret_tcp,
                        int *ret_unix, struct ms_err *err)
{
    int n = ms_notify_listen_fds();
    if (n > SERVER_LISTENERS_MAX) {
        return ms_fail(err, MS_E_CONFIG, "%d sockets were passed, at most %d are served", n,
                       SERVER_LISTENERS_MAX);
    }
    for (int i = 0; i < n; i++) {
        struct listener **slot = &server->listeners[server->listeners_n];
        int rc = listener_adopt(server->base, FIRST_PASSED_FD + i, handler, slot, err);
        if (rc < 0) {
            return rc;
        }
        add_door(server);
        *(listener_is_unix(*slot) ? ret_unix : ret_tcp) += 1;
    }
    return 0;
}

static int open_one(struct server *server, const char *address, unsigned mode, gid_t group,
                    const struct listener_handler *handler, struct ms_err *err)
{
    struct listener **slot = &server->listeners[server->listeners_n];
    int rc = listener_open(server->base, address, mode, group, handler, slot, err);
    if (rc == 0) {
        add_door(server);
    }
    return rc;
}

/* Certificates are read where a TCP listener needs them, and judged before anybody is let in. */
static int settle_tls(struct server *server, struct ms_err *err)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        const struct listener *listener = server->listeners[i];
        if (listener_is_unix(listener)) {
            continue;
        }
        int use = options_use_tls(server->options, listener_address(listener),
                                  listener_is_loopback(listener), err);
        if (use < 0) {
            return use;
        }
        server->needs_tls |= use;
    }
    return server->needs_tls ? server_load_tls(server->options, &server->tls, err) : 0;
}

int server_listen(struct server *server, struct ms_err *err)
{
    server_names_open(server);
    const struct options *options = server->options;
    const struct listener_handler handler = {server_accept, on_trouble, server};
    int passed_tcp = 0;
    int passed_unix = 0;
    int rc = adopt_passed(server, &handler, &passed_tcp, &passed_unix, err);
    if (rc == 0 && passed_tcp == 0 && options->listen[0] != '\0') {
        rc = open_one(server, options->listen, 0, (gid_t)-1, &handler, err);
    }
    if (rc == 0 && passed_unix == 0 && options->socket[0] != '\0') {
        char address[MS_PATH_MAX + 8];
        snprintf(address, sizeof(address), "unix:%s", options->socket);
        rc = open_one(server, address, options->socket_mode, options->socket_gid, &handler, err);
    }
    return rc == 0 ? settle_tls(server, err) : rc;
}
