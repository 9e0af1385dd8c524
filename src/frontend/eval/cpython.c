// Functions for frames, common to all versions, which libpython does not export.
#include "frontend/eval/cpython.h"

const Unit* cresset_written_code(PyCodeObject* code) {
  PyObject* bytes = PyCode_GetCode(code);
  if (bytes == NULL) Py_FatalError("no memory for a copy of bytecode");
  Py_DECREF(bytes);
  return (const Unit*)PyBytes_AS_STRING(bytes);
}

// Chunks of the data stack come from the allocator of object arenas, as CPython's own chunks do.
enum { kChunkBytes = 16 * 1024, kChunkSpare = 1000 };

PyObject** cresset_grow_data_stack(PyThreadState* tstate, size_t slots) {
  size_t bytes = kChunkBytes;
  while (bytes < sizeof(PyObject*) * (slots + kChunkSpare)) bytes *= 2;
  PyObjectArenaAllocator arena;
  PyObject_GetArenaAllocator(&arena);
  _PyStackChunk* chunk = arena.alloc(arena.ctx, bytes);
  if (chunk == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  chunk->previous = tstate->datastack_chunk;
  chunk->size = bytes;
  chunk->top = 0;
  if (tstate->datastack_chunk != NULL) {
    tstate->datastack_chunk->top = (size_t)(tstate->datastack_top - &tstate->datastack_chunk->data[0]);
  }
  tstate->datastack_chunk = chunk;
  tstate->datastack_limit = (PyObject**)((char*)chunk + bytes);
  // The first slot of the first chunk stays free, so that no frame there looks like the first of a chunk to be freed.
  PyObject** place = &chunk->data[chunk->previous == NULL];
  tstate->datastack_top = place + slots;
  return place;
}

void cresset_shrink_data_stack(PyThreadState* tstate) {
  _PyStackChunk* chunk = tstate->datastack_chunk;
  _PyStackChunk* previous = chunk->previous;
  tstate->datastack_top = &previous->data[previous->top];
  tstate->datastack_chunk = previous;
  tstate->datastack_limit = (PyObject**)((char*)previous + previous->size);
  PyObjectArenaAllocator arena;
  PyObject_GetArenaAllocator(&arena);
  arena.free(arena.ctx, chunk, chunk->size);
}

void cresset_move_into_frame_object(PyThreadState* tstate, PyFrameObject* object, Frame* frame) {
  const size_t bytes = (size_t)((char*)&frame->localsplus[frame->stacktop] - (char*)frame);
  memcpy(object->_f_frame_data, frame, bytes);
  Frame* moved = (Frame*)object->_f_frame_data;
  object->f_frame = moved;
  moved->owner = FRAME_OWNED_BY_FRAME_OBJECT;
  // A frame that never reached its first line is marked as begun, because it will never run.
  if (_PyFrame_IsIncomplete(moved)) LAST_INSTRUCTION(moved) = frame_code(moved) + FRAME_CODE(moved)->_co_firsttraceable;
  // The caller is the current frame, since this frame is unlinked. A generator's frame has no caller any more.
  if (frame->previous != NULL) object->f_back = PyThreadState_GetFrame(tstate);
  moved->previous = NULL;
  if (!PyObject_GC_IsTracked((PyObject*)object)) PyObject_GC_Track(object);
}

// Numbers of the exception table: six bits a byte, the most significant first; bit 6 announces another byte.
static const uint8_t* read_number(const uint8_t* at, int* number) {
  int value = *at & 63;
  while (*at & 64) value = (value << 6) | (*++at & 63);
  *number = value;
  return at + 1;
}

int cresset_find_handler(PyCodeObject* code, int instruction, Handler* handler) {
  const uint8_t* at = (const uint8_t*)PyBytes_AS_STRING(code->co_exceptiontable);
  const uint8_t* end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
  while (at < end) {
    int start, size, target, depth;
    at = read_number(at, &start);
    at = read_number(at, &size);
    at = read_number(at, &target);
    at = read_number(at, &depth);
    if (start > instruction) return 0;  // entries are in order
    if (instruction < start + size) {
      *handler = (Handler){.target = target, .depth = depth >> 1, .push_last = depth & 1};
      return 1;
    }
  }
  return 0;
}

// Whether a `finally` may keep the exception; with clean-up alone, it raises again. Code that keeps the exception first
// takes it off the thread's stack of exceptions. Behind the handler lies its own clean-up code, which ends the search.
static int may_keep_exception(PyCodeObject* code, int target) {
  const Unit* units = cresset_written_code(code);
  Handler clean_up;
  if (!cresset_find_handler(code, target + 1, &clean_up) || clean_up.target <= target) return 1;
  for (int i = target + 1; i < clean_up.target; ++i) {
    const int opcode = _Py_OPCODE(units[i]);
    if (opcode == POP_EXCEPT || opcode == CHECK_EXC_MATCH || opcode == CHECK_EG_MATCH) return 1;
  }
  return 0;
}

int cresset_may_catch(PyCodeObject* code, int instruction) {
  const Unit* units = cresset_written_code(code);
  Handler handler = {.target = instruction};
  while (cresset_find_handler(code, handler.target, &handler)) {
    // The clean-up of a handler, and the StopIteration of a generator, raise again.
    if (_Py_OPCODE(units[handler.target]) != PUSH_EXC_INFO) continue;
    if (_Py_OPCODE(units[handler.target + 1]) == WITH_EXCEPT_START) continue;
    if (may_keep_exception(code, handler.target)) return 1;
  }
  return 0;
}
