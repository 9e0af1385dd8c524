// Which locals a frame may still read, by the usual backward data-flow over its bytecode (Aho et al.,
// Compilers, 9.2.5).
#include "frontend/eval/helpers.h"

typedef struct {
  int fallthrough, target, handler;  // instructions that may come next; -1: none
  int used[2], defined;              // slots; -1: none
  int changed;                       // the slot of a cell that gets another content; -1: none
} Flow;

static const uint8_t kFlow[256] = {
#define X(name, operands, flow) [name] = flow,
#include CRESSET_OPCODES
#undef X
};

// A variable counts as read when it is stored and read again.
static void two_in_one(int opcode, int oparg, Flow* flow) {
#ifdef LOAD_FAST_LOAD_FAST
  if (opcode == LOAD_FAST_LOAD_FAST) flow->used[0] = oparg >> 4, flow->used[1] = oparg & 15;
  if (opcode == STORE_FAST_LOAD_FAST) flow->defined = oparg >> 4, flow->used[0] = oparg & 15;
  if (opcode == STORE_FAST_STORE_FAST) flow->defined = oparg >> 4;
#else
  (void)opcode, (void)oparg, (void)flow;
#endif
}

static int read_flows(PyCodeObject* code, int count, Flow* flows) {
  const Unit* units = cresset_written_code(code);
  for (int i = 0; i < count; i++) flows[i] = (Flow){-1, -1, -1, {-1, -1}, -1, -1};
  int oparg = 0;
  for (int at = 0; at < count;) {
    const int opcode = _Py_OPCODE(units[at]);
    oparg = oparg << 8 | _Py_OPARG(units[at]);
    const int next = at + 1 + cresset_cache_entries[opcode];
    Flow* flow = &flows[at];
    const int where = kFlow[opcode];
    flow->fallthrough = next < count && where < GOES_FORWARD ? next : -1;
    if (where == MAY_GO_FORWARD || where == GOES_FORWARD) flow->target = next + oparg;
    if (where == MAY_GO_BACKWARD || where == GOES_BACKWARD) flow->target = next - oparg;
    if (flow->target >= count) return -1;
    Handler handler;
    if (cresset_find_handler(code, at, &handler)) flow->handler = handler.target;
    if (reads_slot(opcode)) flow->used[0] = oparg;
    if (opcode == STORE_FAST) flow->defined = oparg;
    if (opcode == STORE_DEREF || opcode == DELETE_DEREF) flow->changed = oparg;
    two_in_one(opcode, oparg, flow);
    for (int cache = at + 1; cache < next && cache < count; cache++)
      flows[cache].fallthrough = next < count ? next : -1;
    if (opcode != EXTENDED_ARG) oparg = 0;
    at = next;
  }
  return 0;
}

// Sets of slots are rows of words, one row an instruction.
typedef uint64_t Word;
enum { kBits = 64 };

static Word bit_of(int slot, int word) { return slot >= 0 && slot / kBits == word ? (Word)1 << (slot % kBits) : 0; }

static void flow_backwards(const Flow* flows, int count, int words, Word* before) {
  for (int changed = 1; changed;) {
    changed = 0;
    for (int at = count - 1; at >= 0; at--) {
      const Flow* flow = &flows[at];
      for (int word = 0; word < words; word++) {
        Word after = 0;
        if (flow->fallthrough >= 0) after |= before[(size_t)flow->fallthrough * (size_t)words + (size_t)word];
        if (flow->target >= 0) after |= before[(size_t)flow->target * (size_t)words + (size_t)word];
        after &= ~bit_of(flow->defined, word);
        // A handler may begin before the instruction has stored anything.
        if (flow->handler >= 0) after |= before[(size_t)flow->handler * (size_t)words + (size_t)word];
        after |= bit_of(flow->used[0], word) | bit_of(flow->used[1], word);
        Word* row = &before[(size_t)at * (size_t)words + (size_t)word];
        if ((after | *row) != *row) *row |= after, changed = 1;
      }
    }
  }
}

int cresset_eval_live_slots(PyCodeObject* code, int last, uint8_t* live) {
  const int count = (int)Py_SIZE(code), slots = code->co_nlocalsplus, words = slots / kBits + 1;
  Flow* flows = PyMem_Malloc((size_t)count * sizeof(Flow));
  Word* before = PyMem_Calloc((size_t)count, (size_t)words * sizeof(Word));
  if (flows == NULL || before == NULL || read_flows(code, count, flows) < 0) {
    PyMem_Free(flows);
    PyMem_Free(before);
    return -1;
  }
  flow_backwards(flows, count, words, before);
  memset(live, 0, (size_t)slots);
  // The frame continues behind `last`, or in the handler of the instruction's exception.
  Handler handler;
  const int raises = last >= 0 && cresset_find_handler(code, last, &handler);
  const int starts[] = {last + 1 < count ? last + 1 : -1, raises ? handler.target : -1};
  for (int i = 0; i < 2; i++)
    for (int slot = 0; starts[i] >= 0 && slot < slots; slot++)
      live[slot] |= (before[(size_t)starts[i] * (size_t)words + (size_t)(slot / kBits)] >> (slot % kBits)) & 1;
  for (int slot = 0; slot < slots; slot++)
    if (_PyLocals_GetKind(code->co_localspluskinds, slot) & (CO_FAST_CELL | CO_FAST_FREE)) live[slot] = 1;
  PyMem_Free(flows);
  PyMem_Free(before);
  return 0;
}

int cresset_eval_may_change_cell(PyCodeObject* code, int last, int slot) {
  const int count = (int)Py_SIZE(code);
  Flow* flows = PyMem_Malloc((size_t)count * sizeof(Flow));
  uint8_t* seen = PyMem_Calloc((size_t)count, 1);
  int* left = PyMem_Malloc((size_t)count * sizeof(int));
  int found = flows == NULL || seen == NULL || left == NULL || read_flows(code, count, flows) < 0;
  Handler handler;
  const int raises = last >= 0 && cresset_find_handler(code, last, &handler);
  int next[3] = {last + 1 < count ? last + 1 : -1, raises ? handler.target : -1, -1};
  int waiting = 0;
  while (!found) {
    for (int i = 0; i < 3; i++)
      if (next[i] >= 0 && !seen[next[i]]) seen[next[i]] = 1, left[waiting++] = next[i];
    if (waiting == 0) break;
    const Flow* flow = &flows[left[--waiting]];
    found = flow->changed == slot;
    next[0] = flow->fallthrough, next[1] = flow->target, next[2] = flow->handler;
  }
  PyMem_Free(flows);
  PyMem_Free(seen);
  PyMem_Free(left);
  return found;
}

int cresset_eval_drops_value(PyCodeObject* code, int last) {
  const int next = last + 1;
  return next < (int)Py_SIZE(code) && _Py_OPCODE(cresset_written_code(code)[next]) == POP_TOP;
}
