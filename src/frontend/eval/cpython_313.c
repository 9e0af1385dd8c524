// The tables of CPython 3.13's opcodes.
#include "frontend/eval/cpython.h"

#define NEED_OPCODE_METADATA
#define _PyOpcode_Caches cresset_cache_entries
#define _PyOpcode_Deopt cresset_base_opcode
#include "internal/pycore_opcode_metadata.h"
