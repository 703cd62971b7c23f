/* crowd_from.h - of which crowds somebody is, by the text of his address */
#ifndef CROWD_FROM_H
#define CROWD_FROM_H

#include "daemon/crowd.h"
#include "tests/test.h"

#include <arpa/inet.h>

static inline struct crowd_who from(const char *address)
{
    struct sockaddr_storage name;
    memset(&name, 0, sizeof(name));
    struct sockaddr_in *in = (struct sockaddr_in *)&name;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&name;
    if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, address, &in6->sin6_addr), 1);
        in6->sin6_family = AF_INET6;
    }
    return crowd_who_net((struct sockaddr *)&name);
}

#endif
