// Intentionally empty: libcresset.so is the bridge and the core in a single file, with the C++ API as its only symbols.
#include "cresset/compile.h"
