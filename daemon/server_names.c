/* server_names.c - whose connection on a Unix socket this is, before it is taken
 *
 * Root and the daemon's own user are known without asking, so that an admin gets in while a
 * directory hangs. All others wait in front of the door (server_door.c) until their name is known.
 */
#include "daemon/server_state.h"

#include "daemon/account.h"
#include "daemon/names.h"
#include "proto/log.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void server_names_open(struct server *server)
{
    if (account_name((unsigned)geteuid(), server->own_name) < 0) {
        server->own_name[0] = '\0'; /* admin:NUMBER then */
    }
}

static void on_answer(void *arg)
{
    server_names_came(arg);
}

const char *server_mapped_name(const struct server *server, unsigned uid, unsigned account)
{
    const struct who_map *map = &server->options->user_map;
    const char *name = who_map_find(map, uid);
    return name != NULL || account == uid ? name : who_map_find(map, account);
}

/* Two accounts are one owner then, which is meant where user_map says both. */
static void say_shared(const struct who_map *map, int at, unsigned uid)
{
    ms_log(MS_LOG_WARNING,
           "user.shared name=%s uid=%u mapped=%u text=\"user_map gives uid %u the name that the "
           "system gives uid %u: they are one owner; name both in user_map\"",
           map->of[at].name, uid, map->of[at].uid, map->of[at].uid, uid);
}

static void tell_shared(struct server *server, const struct ms_account *account)
{
    const struct who_map *map = &server->options->user_map;
    int at = account->name[0] != '\0' ? who_map_named(map, account->name) : -1;
    if (at >= 0 && !server->is_told[at]) {
        server->is_told[at] = 1;
        say_shared(map, at, account->uid);
    }
}

void server_check_names(const struct options *options)
{
    const struct who_map *map = &options->user_map;
    for (unsigned i = 0; i < map->n; i++) {
        unsigned uid = 0;
        int is_one = 0;
        if (who_map_named(map, map->of[i].name) == (int)i &&
            account_named(map->of[i].name, &uid, &is_one) == 0 && is_one &&
            who_map_find(map, uid) == NULL) {
            say_shared(map, (int)i, uid);
        }
    }
}

static void set_name(struct server_who *ret, const char *name, int is_mapped)
{
    memcpy(ret->account.name, name, strlen(name) + 1);
    ret->is_mapped = is_mapped;
}

static enum server_name ask(struct server *server, unsigned uid, struct server_who *ret)
{
    struct ms_err err = {0, ""};
    if (server->names == NULL &&
        names_create(server->base, account_of_uid, on_answer, server, &server->names, &err) < 0) {
        return SERVER_NAME_FAILED;
    }
    enum names_answer answer = names_find(server->names, uid, &ret->account);
    if (answer != NAMES_KNOWN) {
        return answer == NAMES_PENDING ? SERVER_NAME_LATER : SERVER_NAME_FAILED;
    }
    const char *mapped = server_mapped_name(server, uid, ret->account.uid);
    if (mapped != NULL) {
        set_name(ret, mapped, 1);
    } else {
        tell_shared(server, &ret->account);
    }
    return SERVER_NAME_KNOWN;
}

enum server_name server_name_of(struct server *server, struct listener *listener, int fd,
                                struct server_who *ret)
{
    struct ucred cred;
    socklen_t size = sizeof(cred);
    *ret = (struct server_who){.account = {.uid = (unsigned)-1}};
    if (!listener_is_unix(listener) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0) {
        return SERVER_NAME_KNOWN; /* nothing to ask for */
    }
    ret->account.uid = cred.uid;
    const char *known = who_map_find(&server->options->user_map, cred.uid);
    int is_mapped = known != NULL;
    known = known == NULL && cred.uid == 0 ? "root" : known;
    known = known == NULL && cred.uid == geteuid() ? server->own_name : known;
    if (known == NULL) {
        return ask(server, cred.uid, ret);
    }
    set_name(ret, known, is_mapped);
    return SERVER_NAME_KNOWN;
}

void server_names_forget(struct server *server)
{
    memset(server->is_told, 0, sizeof(server->is_told));
    if (server->names != NULL) {
        names_forget(server->names);
    }
}

void server_names_close(struct server *server)
{
    names_destroy(server->names);
    server->names = NULL;
}
