// Compiles a function once for each vector width; the loader picks the machine's version.
#pragma once

#if defined(__x86_64__) && defined(__linux__)
#define CRESSET_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CRESSET_MULTIVERSION
#endif
