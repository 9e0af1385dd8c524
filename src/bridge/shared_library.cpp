// Nothing of its own: libcresset.so is the bridge and the core in one file, with the C++ API as its only symbols.
#include "cresset/compile.h"
