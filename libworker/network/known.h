/* known.h - the networks of known/<name>.yaml, as embed.py puts their texts into the program */
#ifndef NETWORK_KNOWN_H
#define NETWORK_KNOWN_H

#include <stddef.h>

struct known_network {
    const char *name, *text;
};

extern const struct known_network known_networks[];
extern const size_t n_known_networks;

#endif
