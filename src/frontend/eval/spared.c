// Finds in the bytecode a conditional jump over `x = x.method(a, b)` and nothing else.
#include "frontend/eval/bytecode.h"
#include "frontend/eval/helpers.h"

#ifdef POP_JUMP_FORWARD_IF_FALSE
#define JUMPS_IF_FALSE POP_JUMP_FORWARD_IF_FALSE
#else
#define JUMPS_IF_FALSE POP_JUMP_IF_FALSE
#endif

typedef struct {
  const Unit* units;
  int at, end;
} Reader;

static int opcode_at(const Reader* reader) { return reader->at < reader->end ? _Py_OPCODE(reader->units[reader->at]) : -1; }
static int argument_at(const Reader* reader) { return _Py_OPARG(reader->units[reader->at]); }
static void step(Reader* reader) { reader->at += 1 + cresset_cache_entries[opcode_at(reader)]; }

// The name of the method in a look-up for a call, or NULL.
static PyObject* read_method(Reader* reader, PyCodeObject* code) {
  const int opcode = opcode_at(reader), oparg = opcode >= 0 ? argument_at(reader) : 0;
#if PY_VERSION_HEX < 0x030C0000  // in later versions LOAD_METHOD names no instruction
  if (opcode != LOAD_METHOD) return NULL;
  const int name = oparg;
#else
  if (opcode != LOAD_ATTR || (oparg & 1) == 0) return NULL;
  const int name = oparg >> 1;
#endif
  step(reader);
  return PyTuple_GET_ITEM(code->co_names, name);
}

static int add_slot(CressetSparedCall* out, int slot) {
  if (out->count == CRESSET_SPARED_ARGUMENTS) return 0;
  out->slots[out->count] = slot;
  out->constants[out->count++] = NULL;
  return 1;
}

static int read_argument(Reader* reader, PyCodeObject* code, CressetSparedCall* out) {
  const int opcode = opcode_at(reader);
  if (opcode < 0) return 0;
  const int oparg = argument_at(reader);
  if (opcode == LOAD_FAST) {
    if (!add_slot(out, oparg)) return 0;
#ifdef LOAD_FAST_LOAD_FAST
  } else if (opcode == LOAD_FAST_LOAD_FAST) {
    if (!add_slot(out, oparg >> 4) || !add_slot(out, oparg & 15)) return 0;
#endif
  } else if (opcode == LOAD_CONST && out->count < CRESSET_SPARED_ARGUMENTS) {
    out->slots[out->count] = -1;
    out->constants[out->count++] = PyTuple_GET_ITEM(code->co_consts, oparg);
  } else {
    return 0;
  }
  step(reader);
  return 1;
}

int cresset_eval_spared_call(const CressetActivation* activation, CressetSparedCall* out) {
  PyCodeObject* code = activation->code;
  Reader reader = {cresset_written_code(code), activation->instruction, (int)Py_SIZE(code)};
#ifdef TO_BOOL
  const int opcode = opcode_at(&reader);
  if (opcode == TO_BOOL || (opcode == COMPARE_OP && COMPARISON_AS_BOOL(argument_at(&reader)))) step(&reader);
#endif
  if (opcode_at(&reader) != JUMPS_IF_FALSE) return 0;
  const int distance = argument_at(&reader);
  step(&reader);
  reader.end = reader.at + distance;
  if (reader.end > (int)Py_SIZE(code) || opcode_at(&reader) != LOAD_FAST) return 0;
  out->slot = argument_at(&reader);
  out->count = 0;
  step(&reader);
  out->method = read_method(&reader, code);
  if (out->method == NULL) return 0;
  while (read_argument(&reader, code, out)) continue;
#ifdef PRECALL
  if (opcode_at(&reader) != PRECALL) return 0;
  step(&reader);
#endif
  if (opcode_at(&reader) != CALL || argument_at(&reader) != out->count) return 0;
  step(&reader);
  if (opcode_at(&reader) != STORE_FAST || argument_at(&reader) != out->slot) return 0;
  step(&reader);
  return reader.at == reader.end;
}
