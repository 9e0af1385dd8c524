// The tables of CPython 3.12's opcodes.
#include "frontend/eval/cpython.h"

#define NEED_OPCODE_TABLES
#define _PyOpcode_Caches cresset_cache_entries
#define _PyOpcode_Deopt cresset_base_opcode
#define _PyOpcode_Jump unused_opcode_jump
#include "internal/pycore_opcode.h"
